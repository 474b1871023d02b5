//! Lookback trains, measures and runs attention models, from the RNN encoder-decoder to the Transformer, on any of burn's
//! backends. A decoder that attends *looks back* at the source; hence the name.
//!
//! # The pipeline on one page
//!
//! ```text
//!  text ──data::corpus, data::tasks──▶ Pair ──data::tokenizer──▶ Example ──data::batch──▶ Batch
//!                                                                                          │
//!                 ┌──────────────── models::Seq2Seq, models::Autoregressive ───────────────┤
//!                 │  encode: [batch, source_len] ids ─▶ Memory                             │
//!                 │  start:  Memory ─▶ State            step: (token, State) ─▶ logits     │
//!                 │  forward: whole target, teacher forced ─▶ logits                       │
//!                 └──────┬──────────────────────────────────────┬──────────────────────────┘
//!                        ▼                                      ▼
//!    training: loss, gradients, Adam, checkpoints      decoding: greedy, beam, sampling, scores
//!                        │                                      │
//!                        ▼                                      ▼
//!                  run folder ◀──────────────────────▶ text ──scoring──▶ BLEU, chrF, accuracy, by length
//!                        │
//!                        ├──report──▶ attention maps, alignments, states: data, pictures, pages
//!                        └──compare─▶ several models by source length: one report
//! ```
//!
//! Dependencies point one way: [`error`], [`backend`], [`random`], [`ranks`], [`kernels`] ← [`ops`] ← [`layers`] ← [`models`] ← [`decoding`], [`training`] ←
//! [`experiment`] ← `report` ← `compare`, `serve` ← `cli`; [`data`] and [`scoring`] stand beside and know no model,
//! [`training`] knows no family of models, no config file and no tokenizer. A test keeps it so, down to single files.
//!
#![doc = include_str!("../docs/reference/mechanisms.md")]
//!
//! # Notation
//!
//! Shapes are written as lists of axes, and the axes always have these names:
//!
//! | axis | what it counts |
//! | --- | --- |
//! | `batch` | sentences |
//! | `rows` | hypotheses: `batch` times the beams of each sentence |
//! | `source_len`, `target_len` | tokens, end symbol and padding included |
//! | `query_len`, `key_len` | positions of queries, positions of keys |
//! | `n_heads`, `d_head` | attention heads and the width of each; their product is `d_model` |
//! | `d_model`, `d_embedding`, `d_hidden`, `d_attention` | widths of vectors |
//! | `vocab_size` | entries of a vocabulary |
//!
//! In masks, **true means hidden**. Losses are in nats per target token, end symbols included; an *update* is one step of the
//! optimizer, a *step* one step of the decoder, an *epoch* one pass over the data.
//!
//! # Example
//!
//! A model of untrained numbers, and what it writes:
//!
//! ```
//! use lookback::backend::Backend;
//! use lookback::decoding::{DecodingConfig, Request, decode};
//! use lookback::models::{ModelConfig, TransformerConfig, Vocabularies};
//!
//! # fn main() -> lookback::error::Result<()> {
//! let device = Backend::Flex.open()?.device;
//! let config = TransformerConfig { d_model: 16, d_feed_forward: 32, ..TransformerConfig::default() };
//! let vocabularies = Vocabularies { source: 10, target: 12, shared: false };
//! let model = ModelConfig::Transformer(config).init(vocabularies, 1, &device)?;
//!
//! let requests = [Request::new(vec![4, 7, 5]), Request::new(vec![])];
//! let found = decode(&model, &requests, &DecodingConfig::default(), 1, |_| ());
//! assert_eq!(found.len(), 2);
//! assert!(found[1][0].tokens.is_empty(), "an empty source gives an empty target");
//! # Ok(())
//! # }
//! ```
//!
//! | example | what it shows |
//! | --- | --- |
//! | `own_model` | a layer of attention in somebody's own `#[derive(Module)]`, with an optimizer of burn |
//! | `classifier` | a Transformer encoder in a classifier that burn's own learner trains |
//! | `own_decoder` | a recurrence of one's own, with which this crate searches |
//! | `own_score` | a score function of one's own |
//! | `own_task` | a task of one's own, compared |
//! | `train_and_translate` | a config, a run folder, a translation |
//! | `draw_attention` | the attention of a run, as characters |
//!
//! Layers of their own: [`TransformerEncoder`](models::TransformerEncoder), [`TransformerDecoder`](models::TransformerDecoder),
//! [`RecurrentEncoder`](layers::mixer::RecurrentEncoder), [`SelfAttention`](layers::attention::SelfAttention),
//! [`CrossAttention`](layers::attention::CrossAttention). `init(&device)` of their configs draws weights as burn's layers do; whoever
//! wants the same weights on every backend takes an [`Init`](layers::Init), and whoever wants dropout that can be repeated, or a trace,
//! a [`Pass`](layers::Pass). A model of one's own is trained as those of this crate are through the two traits of [`training`].
//!
//! # Cargo features
//!
//! | feature | what it adds |
//! | --- | --- |
//! | `flex`, `ndarray`, `wgpu`, `vulkan`, `metal`, `cuda` | a backend; at least one is needed |
//! | `cli` | the command line, with the four below; on by default |
//! | `report` | explanations, attention maps, comparisons: texts, pages and pictures |
//! | `serve` | models over HTTP |
//! | `mpi` | training by several processes, which `mpirun` starts; needs the development files of an MPI and of libclang |
//! | `fetch` | corpora from the net |
//! | `tui` | burn-train's dashboard in the terminal |
// burn's types are deep: autodiff of dispatch of backends.
#![recursion_limit = "256"]
// These panic where nobody reads any more; `notice` does not.
#![deny(clippy::print_stderr, clippy::print_stdout)]
// What the command line alone needs stands where it belongs all the same.
#![cfg_attr(not(feature = "cli"), allow(dead_code, unused_imports))]

pub mod backend;
#[cfg(feature = "cli")]
pub mod cli;
#[cfg(feature = "report")]
pub mod compare;
pub mod data;
pub mod decoding;
pub mod error;
pub mod experiment;
mod files;
pub mod interop;
pub mod layers;
mod mapped;
mod memory;
pub mod models;
pub mod notice;
pub mod ops;
mod panics;
pub mod pool;
mod program;
pub mod ranks;
#[cfg(feature = "report")]
pub mod report;
pub mod scoring;
#[cfg(feature = "serve")]
pub mod serve;
pub mod signal;
pub mod training;
pub mod trust;

#[doc(inline)]
pub use lookback_kernels as kernels;
#[doc(inline)]
pub use lookback_kernels::random;
