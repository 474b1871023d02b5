//! Models that write a target for a source, behind one trait.
//!
//! The seam of the project is in two parts: [`Autoregressive`] writes token by token, and [`Seq2Seq`] reads a source before. Decoding,
//! scoring and explaining know these traits and no model. Their law, tested for every model: stepping = forward = prefill,
//! cached = uncached, batched = single.

mod autoregressive;
mod block;
pub mod costs;
pub mod decoder_only;
pub mod encoder_only;
mod ensemble;
mod family;
mod prepared;
pub mod readout;
mod residual;
pub mod rnn;
mod stack;
pub mod transformer;
pub mod weights;

pub(crate) use autoregressive::prefill_by_steps;
pub use autoregressive::{Autoregressive, LengthLimit, LengthLimits, Rows, Seq2Seq};
pub use decoder_only::{DecoderOnlyConfig, DecoderOnlyModel};
pub use encoder_only::{Answers, EncoderOnlyConfig, EncoderOnlyModel};
pub use ensemble::Ensemble;
pub use family::Family;
pub use prepared::PreparedModel;
pub use readout::Scores;
pub use rnn::{RnnConfig, RnnModel};
pub use transformer::{TiedEmbeddings, TransformerConfig, TransformerDecoder, TransformerEncoder, TransformerModel};

use crate::data::batch::{Batch, Padded};
use crate::error::{Error, Result};
use crate::layers::{Init, Pass};
use burn::module::Module;
use burn::tensor::{Device, Int, Tensor};
use decoder_only::{DecoderOnlyMemory, DecoderOnlyState};
use encoder_only::{EncoderOnlyMemory, EncoderOnlyState};
use rnn::{RnnMemory, RnnState};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use transformer::{TransformerMemory, TransformerState};

/// What vectors of words are multiplied by (Vaswani 2017, section 3.4), or 1.
pub(crate) fn embedding_scale(scales_embeddings: bool, d_model: usize) -> f64 {
    if scales_embeddings { (d_model as f64).sqrt() } else { 1.0 }
}

/// The sizes of the two vocabularies, and whether they are one; of numbers, the channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vocabularies {
    /// Entries of the source vocabulary.
    pub source: usize,
    /// Entries of the target vocabulary.
    pub target: usize,
    /// Whether both sides use the same one.
    pub shared: bool,
}

/// A probability of dropping.
fn check_rate(key: &str, rate: f64) -> Result<()> {
    if (0.0..1.0).contains(&rate) {
        return Ok(());
    }
    Err(Error::config(format!("model.{key}"), format!("must be at least 0 and less than 1, got {rate}")))
}

/// Why a memory or a state of another family is no fault that a user can make.
///
/// Types could say it only if all that knows [`Model`] were generic over its family: every search, measure and page would be compiled
/// four times. A state is made by the model that is handed it a line further on.
const OF_ANOTHER: &str = "a memory and a state belong to the model that made them";

/// What is the same for every family: its variant of a config, of a model, of a memory and of a state, and the way to it.
macro_rules! families {
    ($($(#[$doc:meta])* $family:ident($config:ident, $model:ident, $memory:ident, $state:ident, $table:literal),)*) => {
        /// The choice of a model.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "kind", rename_all = "kebab-case")]
        pub enum ModelConfig {
            $($(#[$doc])* $family($config),)*
        }

        impl ModelConfig {
            /// What its family says of it.
            pub fn family(&self) -> &dyn Family {
                match self {
                    $(Self::$family(config) => config,)*
                }
            }

            /// The same, to be changed.
            pub fn family_mut(&mut self) -> &mut dyn Family {
                match self {
                    $(Self::$family(config) => config,)*
                }
            }

            /// Checks what can be checked before the vocabularies are known.
            pub fn validate(&self) -> Result<()> {
                match self {
                    $(Self::$family(config) => config.validate(),)*
                }
            }

            fn make(&self, vocabularies: Vocabularies, init: &Init) -> Result<Model> {
                self.validate()?;
                Ok(match self {
                    $(Self::$family(config) => Model::$family(config.init(vocabularies, init)?),)*
                })
            }
        }

        /// A model of any family.
        // One exists at a time; boxing would only put a pointer before every call.
        #[allow(clippy::large_enum_variant)]
        #[derive(Module, Debug)]
        pub enum Model {
            $($(#[$doc])* $family($model),)*
        }

        /// The memory of [`Model`].
        // One exists at a time.
        #[allow(clippy::large_enum_variant)]
        #[derive(Clone, Debug)]
        pub enum Memory {
            $($(#[$doc])* $family($memory),)*
        }

        /// The state of [`Model`].
        // One exists at a time.
        #[allow(clippy::large_enum_variant)]
        #[derive(Clone, Debug)]
        pub enum State {
            $($(#[$doc])* $family($state),)*
        }

        impl Rows for Memory {
            fn select(&self, rows: &Tensor<1, Int>) -> Self {
                match self {
                    $(Self::$family(memory) => Self::$family(memory.select(rows)),)*
                }
            }
        }

        impl Rows for State {
            fn select(&self, rows: &Tensor<1, Int>) -> Self {
                match self {
                    $(Self::$family(state) => Self::$family(state.select(rows)),)*
                }
            }
        }

        impl Autoregressive for Model {
            type Memory = Memory;
            type State = State;

            fn start(&self, memory: &Memory, n_beams: usize) -> State {
                match (self, memory) {
                    $((Self::$family(model), Memory::$family(memory)) => State::$family(model.start(memory, n_beams)),)*
                    _ => unreachable!("{OF_ANOTHER}"),
                }
            }

            fn step(&self, previous: Tensor<1, Int>, state: State, memory: &Memory, pass: &mut Pass) -> (Tensor<2>, State) {
                match (self, state, memory) {
                    $((Self::$family(model), State::$family(state), Memory::$family(memory)) => {
                        let (logits, state) = model.step(previous, state, memory, pass);
                        (logits, State::$family(state))
                    })*
                    _ => unreachable!("{OF_ANOTHER}"),
                }
            }

            fn prefill(
                &self,
                tokens: Tensor<2, Int>,
                state: State,
                memory: &Memory,
                n_scored: usize,
                pass: &mut Pass,
            ) -> (Option<Tensor<3>>, State) {
                match (self, state, memory) {
                    $((Self::$family(model), State::$family(state), Memory::$family(memory)) => {
                        let (logits, state) = model.prefill(tokens, state, memory, n_scored, pass);
                        (logits, State::$family(state))
                    })*
                    _ => unreachable!("{OF_ANOTHER}"),
                }
            }

            fn fixed_len(&self, source_len: usize) -> Option<usize> {
                match self {
                    $(Self::$family(model) => model.fixed_len(source_len),)*
                }
            }

            fn answer_len(&self, source_len: usize) -> Option<usize> {
                match self {
                    $(Self::$family(model) => model.answer_len(source_len),)*
                }
            }

            fn limits(&self) -> LengthLimits {
                match self {
                    $(Self::$family(model) => model.limits(),)*
                }
            }

            fn device(&self) -> Device {
                match self {
                    $(Self::$family(model) => model.device(),)*
                }
            }
        }

        impl Seq2Seq for Model {
            fn encode(&self, source: &Padded, pass: &mut Pass) -> Memory {
                match self {
                    $(Self::$family(model) => Memory::$family(model.encode(source, pass)),)*
                }
            }

            fn has_causal_encoder(&self) -> bool {
                match self {
                    $(Self::$family(model) => model.has_causal_encoder(),)*
                }
            }

            fn forward(&self, source: &Padded, target_input: &Padded, pass: &mut Pass) -> Tensor<3> {
                match self {
                    $(Self::$family(model) => model.forward(source, target_input, pass),)*
                }
            }
        }

        impl Model {
            /// The path of the table of embeddings by which words are scored, if there is no projection of its own.
            pub fn tied_table(&self) -> Option<&'static str> {
                match self {
                    $(Self::$family(model) => model.has_tied_output().then_some($table),)*
                }
            }

            /// The scores of a training batch after the true words.
            pub fn scores(&self, batch: &Batch, pass: &mut Pass) -> Scores<'_> {
                match self {
                    $(Self::$family(model) => model.scores(&batch.source, &batch.target_input, pass),)*
                }
            }
        }
    };
}

families! {
    /// A recurrent encoder-decoder, with or without attention.
    Rnn(RnnConfig, RnnModel, RnnMemory, RnnState, "target_embedding.weight"),
    /// A Transformer.
    Transformer(TransformerConfig, TransformerModel, TransformerMemory, TransformerState, "target_embedding.weight"),
    /// A stack of layers over source and target as one sequence.
    DecoderOnly(DecoderOnlyConfig, DecoderOnlyModel, DecoderOnlyMemory, DecoderOnlyState, "target_embedding.weight"),
    /// A stack of layers over the source, with an answer for each token or one for all.
    EncoderOnly(EncoderOnlyConfig, EncoderOnlyModel, EncoderOnlyMemory, EncoderOnlyState, "source_embedding.weight"),
}

impl ModelConfig {
    /// Whether there is a source to go on from; if not, this is a language model of plain text.
    pub fn reads_source(&self) -> bool {
        self.family().reads_source()
    }

    /// Whether it learns from plain text: to go on with it, or to predict its hidden words.
    pub fn learns_from_text(&self) -> bool {
        !self.reads_source() || self.has_masks()
    }

    /// Whether it predicts the hidden words of a text.
    pub fn has_masks(&self) -> bool {
        self.family().answers() == Some(Answers::MaskedWords)
    }

    /// Whether answers are numbers, to a source of numbers.
    pub fn answers_with_numbers(&self) -> bool {
        self.family().answers() == Some(Answers::Values)
    }

    /// Refuses one table for both sides where each has a vocabulary of its own.
    ///
    /// # Errors
    /// If `model.tied_embeddings` is `all`, and vocabularies are not shared.
    pub(crate) fn check_sharing(&self, is_shared: bool) -> Result<()> {
        let tied = match self {
            Self::Transformer(config) => config.tied_embeddings,
            Self::DecoderOnly(config) if config.reads_source => config.tied_embeddings,
            _ => return Ok(()),
        };
        if tied == TiedEmbeddings::All && !is_shared { Err(TiedEmbeddings::needs_one_vocabulary()) } else { Ok(()) }
    }

    /// Makes the model with initial weights that depend on `seed` alone.
    pub fn init(&self, vocabularies: Vocabularies, seed: u64, device: &Device) -> Result<Model> {
        self.make(vocabularies, &Init::new(seed, device))
    }

    /// Makes the model with zeros for weights, which [`weights::apply`] replaces: drawing them takes longer than reading them.
    pub fn blank(&self, vocabularies: Vocabularies, device: &Device) -> Result<Model> {
        self.make(vocabularies, &Init::blank(device))
    }
}

impl Model {
    /// The logits of a training batch: `[batch, target_len, vocab_size]`.
    pub fn forward_batch(&self, batch: &Batch, pass: &mut Pass) -> Tensor<3> {
        self.forward(&batch.source, &batch.target_input, pass)
    }
}
