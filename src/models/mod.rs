//! Models that write a target for a source, behind one trait.
//!
//! [`Seq2Seq`] is the seam of the project: training, decoding, scoring and explaining know this trait and no model. Its law,
//! tested for every model: stepping = forward, cached = uncached, batched = single.

mod block;
pub mod decoder_only;
pub mod encoder_only;
mod ensemble;
mod int8;
pub mod readout;
pub mod rnn;
pub mod transformer;
pub mod weights;

pub use decoder_only::{DecoderOnlyConfig, DecoderOnlyModel};
pub use encoder_only::{Answers, EncoderOnlyConfig, EncoderOnlyModel};
pub use ensemble::Ensemble;
pub use int8::Int8Model;
pub use readout::Scores;
pub use rnn::{RnnConfig, RnnModel};
pub use transformer::{TiedEmbeddings, TransformerConfig, TransformerModel};

use crate::data::batch::{Batch, Padded};
use crate::error::{Error, Result};
use crate::layers::{Init, Pass};
use burn::module::Module;
use burn::tensor::{Device, Int, Tensor};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something with one row per hypothesis or sentence.
pub trait Rows: Sized {
    /// The rows `rows`, in that order: reorders, repeats and drops.
    fn select(&self, rows: &Tensor<1, Int>) -> Self;
}

/// An encoder-decoder.
///
/// Hypotheses are rows. Every sentence of a memory has the same number of them, one after the other, so that row `r` belongs
/// to sentence `r / n_beams`: the beams of a sentence share its memory, which is never repeated.
pub trait Seq2Seq: Sync {
    /// What the encoder has made of the sources.
    type Memory: Rows + Send + Sync;
    /// What the decoder carries from step to step.
    type State: Rows + Send;

    /// Reads the sources.
    fn encode(&self, source: &Padded, pass: &mut Pass) -> Self::Memory;

    /// The state before the first target token, with `n_beams` rows for each sentence.
    fn start(&self, memory: &Self::Memory, n_beams: usize) -> Self::State;

    /// One step: the logits of the token that follows `previous`.
    ///
    /// # Shapes
    /// - previous: `[rows]`
    /// - logits: `[rows, vocab_size]`
    fn step(
        &self,
        previous: Tensor<1, Int>,
        state: Self::State,
        memory: &Self::Memory,
        pass: &mut Pass,
    ) -> (Tensor<2>, Self::State);

    /// The logits of every target position when the decoder is given the true target (teacher forcing).
    ///
    /// # Shapes
    /// - logits: `[batch, target_len, vocab_size]`
    fn forward(&self, source: &Padded, target_input: &Padded, pass: &mut Pass) -> Tensor<3>;

    /// The longest source and target that the model can take.
    fn limits(&self) -> LengthLimits {
        LengthLimits::default()
    }

    /// How many words the answer to a source of so many tokens has, of a model that does not learn where an answer ends.
    fn fixed_len(&self, _source_len: usize) -> Option<usize> {
        None
    }

    /// Where the model's parameters are.
    fn device(&self) -> Device;
}

/// How long a sequence may be, and which key of the config says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LengthLimit {
    /// The most tokens, end symbol included.
    pub len: usize,
    /// The key that sets it.
    pub key: &'static str,
}

/// The limits of both sides; nothing where any length will do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LengthLimits {
    /// Of the source.
    pub source: Option<LengthLimit>,
    /// Of the target.
    pub target: Option<LengthLimit>,
}

/// The choice of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ModelConfig {
    /// A recurrent encoder-decoder, with or without attention.
    Rnn(RnnConfig),
    /// A Transformer.
    Transformer(TransformerConfig),
    /// A stack of layers over source and target as one sequence.
    DecoderOnly(DecoderOnlyConfig),
    /// A stack of layers over the source, with an answer for each token or one for all.
    EncoderOnly(EncoderOnlyConfig),
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

/// A model of either family.
// One exists at a time; boxing would only put a pointer before every call.
#[allow(clippy::large_enum_variant)]
#[derive(Module, Debug)]
pub enum Model {
    /// A recurrent encoder-decoder.
    Rnn(RnnModel),
    /// A Transformer.
    Transformer(TransformerModel),
    /// A stack of layers over source and target as one sequence.
    DecoderOnly(DecoderOnlyModel),
    /// A stack of layers over the source, with an answer for each token or one for all.
    EncoderOnly(EncoderOnlyModel),
}

impl ModelConfig {
    /// Checks what can be checked before the vocabularies are known.
    pub fn validate(&self) -> Result<()> {
        match self {
            Self::Rnn(config) => config.validate(),
            Self::Transformer(config) => config.validate(),
            Self::DecoderOnly(config) => config.validate(),
            Self::EncoderOnly(config) => config.validate(),
        }
    }

    /// Width of the vectors between layers.
    pub fn width(&self) -> usize {
        match self {
            Self::Rnn(config) => config.d_hidden,
            Self::Transformer(config) => config.d_model,
            Self::DecoderOnly(config) => config.d_model,
            Self::EncoderOnly(config) => config.d_model,
        }
    }

    /// The probability of dropping that stands for all others.
    pub fn dropout_rate(&self) -> f64 {
        match self {
            Self::Rnn(config) => config.dropout_rate,
            Self::Transformer(config) => config.dropout_rate,
            Self::DecoderOnly(config) => config.dropout_rate,
            Self::EncoderOnly(config) => config.dropout_rate,
        }
    }

    /// Whether there is a source to go on from; if not, this is a language model of plain text.
    pub fn reads_source(&self) -> bool {
        match self {
            Self::Rnn(_) | Self::Transformer(_) | Self::EncoderOnly(_) => true,
            Self::DecoderOnly(config) => config.reads_source,
        }
    }

    /// The range that positions are drawn from in training, if they are drawn.
    pub fn randomized_positions(&self) -> Option<usize> {
        match self {
            Self::Rnn(_) => None,
            Self::Transformer(config) => config.randomized_positions,
            Self::DecoderOnly(config) => config.randomized_positions,
            Self::EncoderOnly(config) => config.randomized_positions,
        }
    }

    /// Whether it learns from plain text: to go on with it, or to tell its hidden words.
    pub fn learns_from_text(&self) -> bool {
        !self.reads_source() || self.has_masks()
    }

    /// Whether it tells the hidden words of a text.
    pub fn has_masks(&self) -> bool {
        matches!(self, Self::EncoderOnly(config) if config.output == Answers::MaskedWords)
    }

    /// How many words the answer to a source of so many tokens has, its end left out; nothing where that depends on the words.
    pub fn answer_len(&self, source_len: usize) -> Option<usize> {
        match self {
            Self::EncoderOnly(config) => Some(config.answer_len(source_len)),
            Self::Rnn(_) | Self::Transformer(_) | Self::DecoderOnly(_) => None,
        }
    }

    /// Whether answers are numbers, to a source of numbers.
    pub fn answers_with_numbers(&self) -> bool {
        matches!(self, Self::EncoderOnly(config) if config.output == Answers::Values)
    }

    /// The same, to be changed.
    pub fn dropout_rate_mut(&mut self) -> &mut f64 {
        match self {
            Self::Rnn(config) => &mut config.dropout_rate,
            Self::Transformer(config) => &mut config.dropout_rate,
            Self::DecoderOnly(config) => &mut config.dropout_rate,
            Self::EncoderOnly(config) => &mut config.dropout_rate,
        }
    }

    /// Makes the model with initial weights that depend on `seed` alone.
    pub fn init(&self, vocabularies: Vocabularies, seed: u64, device: &Device) -> Result<Model> {
        self.make(vocabularies, &Init::new(seed, device))
    }

    /// Makes the model with zeros for weights, which [`weights::apply`] replaces: drawing them takes longer than reading them.
    pub fn blank(&self, vocabularies: Vocabularies, device: &Device) -> Result<Model> {
        self.make(vocabularies, &Init::blank(device))
    }

    fn make(&self, vocabularies: Vocabularies, init: &Init) -> Result<Model> {
        self.validate()?;
        Ok(match self {
            Self::Rnn(config) => Model::Rnn(config.init(vocabularies, init)?),
            Self::Transformer(config) => Model::Transformer(config.init(vocabularies, init)?),
            Self::DecoderOnly(config) => Model::DecoderOnly(config.init(vocabularies, init)?),
            Self::EncoderOnly(config) => Model::EncoderOnly(config.init(vocabularies, init)?),
        })
    }
}

/// The memory of [`Model`].
// One exists at a time.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Debug)]
pub enum Memory {
    /// Of a recurrent model.
    Rnn(rnn::RnnMemory),
    /// Of a Transformer.
    Transformer(transformer::TransformerMemory),
    /// Of a decoder-only model.
    DecoderOnly(decoder_only::DecoderOnlyMemory),
    /// Of an encoder-only model.
    EncoderOnly(encoder_only::EncoderOnlyMemory),
}

/// The state of [`Model`].
// One exists at a time.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Debug)]
pub enum State {
    /// Of a recurrent model.
    Rnn(rnn::RnnState),
    /// Of a Transformer.
    Transformer(transformer::TransformerState),
    /// Of a decoder-only model.
    DecoderOnly(decoder_only::DecoderOnlyState),
    /// Of an encoder-only model.
    EncoderOnly(encoder_only::EncoderOnlyState),
}

impl Rows for Memory {
    fn select(&self, rows: &Tensor<1, Int>) -> Self {
        match self {
            Self::Rnn(memory) => Self::Rnn(memory.select(rows)),
            Self::Transformer(memory) => Self::Transformer(memory.select(rows)),
            Self::DecoderOnly(memory) => Self::DecoderOnly(memory.select(rows)),
            Self::EncoderOnly(memory) => Self::EncoderOnly(memory.select(rows)),
        }
    }
}

impl Rows for State {
    fn select(&self, rows: &Tensor<1, Int>) -> Self {
        match self {
            Self::Rnn(state) => Self::Rnn(state.select(rows)),
            Self::Transformer(state) => Self::Transformer(state.select(rows)),
            Self::DecoderOnly(state) => Self::DecoderOnly(state.select(rows)),
            Self::EncoderOnly(state) => Self::EncoderOnly(state.select(rows)),
        }
    }
}

impl Seq2Seq for Model {
    type Memory = Memory;
    type State = State;

    fn encode(&self, source: &Padded, pass: &mut Pass) -> Memory {
        match self {
            Self::Rnn(model) => Memory::Rnn(model.encode(source, pass)),
            Self::Transformer(model) => Memory::Transformer(model.encode(source, pass)),
            Self::DecoderOnly(model) => Memory::DecoderOnly(model.encode(source, pass)),
            Self::EncoderOnly(model) => Memory::EncoderOnly(model.encode(source, pass)),
        }
    }

    fn start(&self, memory: &Memory, n_beams: usize) -> State {
        match (self, memory) {
            (Self::Rnn(model), Memory::Rnn(memory)) => State::Rnn(model.start(memory, n_beams)),
            (Self::Transformer(model), Memory::Transformer(memory)) => State::Transformer(model.start(memory, n_beams)),
            (Self::DecoderOnly(model), Memory::DecoderOnly(memory)) => State::DecoderOnly(model.start(memory, n_beams)),
            (Self::EncoderOnly(model), Memory::EncoderOnly(memory)) => State::EncoderOnly(model.start(memory, n_beams)),
            _ => unreachable!("a memory belongs to the model that made it"),
        }
    }

    fn step(&self, previous: Tensor<1, Int>, state: State, memory: &Memory, pass: &mut Pass) -> (Tensor<2>, State) {
        match (self, state, memory) {
            (Self::Rnn(model), State::Rnn(state), Memory::Rnn(memory)) => {
                let (logits, state) = model.step(previous, state, memory, pass);
                (logits, State::Rnn(state))
            }
            (Self::Transformer(model), State::Transformer(state), Memory::Transformer(memory)) => {
                let (logits, state) = model.step(previous, state, memory, pass);
                (logits, State::Transformer(state))
            }
            (Self::DecoderOnly(model), State::DecoderOnly(state), Memory::DecoderOnly(memory)) => {
                let (logits, state) = model.step(previous, state, memory, pass);
                (logits, State::DecoderOnly(state))
            }
            (Self::EncoderOnly(model), State::EncoderOnly(state), Memory::EncoderOnly(memory)) => {
                let (logits, state) = model.step(previous, state, memory, pass);
                (logits, State::EncoderOnly(state))
            }
            _ => unreachable!("a state belongs to the model that made it"),
        }
    }

    fn forward(&self, source: &Padded, target_input: &Padded, pass: &mut Pass) -> Tensor<3> {
        match self {
            Self::Rnn(model) => model.forward(source, target_input, pass),
            Self::Transformer(model) => model.forward(source, target_input, pass),
            Self::DecoderOnly(model) => model.forward(source, target_input, pass),
            Self::EncoderOnly(model) => model.forward(source, target_input, pass),
        }
    }

    fn fixed_len(&self, source_len: usize) -> Option<usize> {
        match self {
            Self::EncoderOnly(model) => model.fixed_len(source_len),
            Self::Rnn(_) | Self::Transformer(_) | Self::DecoderOnly(_) => None,
        }
    }

    fn limits(&self) -> LengthLimits {
        match self {
            Self::Rnn(model) => model.limits(),
            Self::Transformer(model) => model.limits(),
            Self::DecoderOnly(model) => model.limits(),
            Self::EncoderOnly(model) => model.limits(),
        }
    }

    fn device(&self) -> Device {
        match self {
            Self::Rnn(model) => model.device(),
            Self::Transformer(model) => model.device(),
            Self::DecoderOnly(model) => model.device(),
            Self::EncoderOnly(model) => model.device(),
        }
    }
}

impl Model {
    /// The path of the table of embeddings by which words are scored, if there is no projection of its own.
    pub fn tied_table(&self) -> Option<&'static str> {
        let (is_tied, table) = match self {
            Self::Rnn(model) => (model.has_tied_output(), "target_embedding.weight"),
            Self::Transformer(model) => (model.has_tied_output(), "target_embedding.weight"),
            Self::DecoderOnly(model) => (model.has_tied_output(), "target_embedding.weight"),
            Self::EncoderOnly(model) => (model.has_tied_output(), "source_embedding.weight"),
        };
        is_tied.then_some(table)
    }

    /// The scores of a training batch after the true words.
    pub fn scores(&self, batch: &Batch, pass: &mut Pass) -> Scores<'_> {
        match self {
            Self::Rnn(model) => model.scores(&batch.source, &batch.target_input, pass),
            Self::Transformer(model) => model.scores(&batch.source, &batch.target_input, pass),
            Self::DecoderOnly(model) => model.scores(&batch.source, &batch.target_input, pass),
            Self::EncoderOnly(model) => model.scores(&batch.source, &batch.target_input, pass),
        }
    }

    /// The logits of a training batch: `[batch, target_len, vocab_size]`.
    pub fn forward_batch(&self, batch: &Batch, pass: &mut Pass) -> Tensor<3> {
        self.forward(&batch.source, &batch.target_input, pass)
    }
}
