//! A stack of layers over the source alone, which answers for each of its tokens, or once for all.

mod config;
mod costs;
mod family;
mod reading;
mod transform;

pub use config::{Answers, EncoderOnlyConfig};

use super::block::Block;
use super::readout::{Output, Scores};
use super::residual::NormPosition;
use super::stack::Stack;
use super::{Autoregressive, LengthLimits, Rows, Seq2Seq, Vocabularies, embedding_scale};
use crate::data::batch::Padded;
use crate::error::{Error, Result};
use crate::layers::norm::Norm;
use crate::layers::position::{Position, Side};
use crate::layers::{Init, Mask, Pass, indices};
use burn::module::{Module, Param};
use burn::tensor::{Device, Int, Tensor};
use reading::Reading;
use transform::Transform;

impl EncoderOnlyConfig {
    /// Makes the model.
    pub fn init(&self, vocabularies: Vocabularies, init: &Init) -> Result<EncoderOnlyModel> {
        if self.output == Answers::MaskedWords && !vocabularies.shared {
            let message = "is \"masked-words\", whose answers are words of the text, but source and target have vocabularies of their \
                           own; learn it from plain text (data.text)";
            return Err(Error::config("model.output", message));
        }
        let output = match self.tied_embeddings {
            true => Output::tied_with_bias(vocabularies.target, init),
            false => Output::projection(self.d_model, vocabularies.target, init),
        };
        let side = if self.is_causal { Side::Decoder } else { Side::Encoder };
        let block = self.block();
        let layers = self.mixer.made(self.n_layers, self.share_layers);
        let n_directions =
            |own: &crate::layers::mixer::MixerConfig| if self.is_causal { 1 } else { own.n_directions() };
        Ok(EncoderOnlyModel {
            source_embedding: Reading::new(self.output, vocabularies.source, self.d_model, init),
            position: self.positions.init(self.d_model, self.n_heads, side, init),
            layers: layers
                .iter()
                .map(|own| Block::new(&block, own, n_directions(own), &self.positions, init))
                .collect(),
            norm: (self.norm_position == NormPosition::Pre).then(|| block.norm(init)),
            embedding_norm: self.normalizes_embeddings.then(|| block.norm(init)),
            transform: self.transforms_output.then(|| Transform::new(&block, init)),
            output,
            end: (self.output == Answers::Class).then(|| init.normal([self.d_model], 1.0)),
            n_layers: self.n_layers,
            embedding_scale: embedding_scale(self.scales_embeddings, self.d_model),
            embedding_dropout_rate: self.embedding_dropout_rate(),
            is_causal: self.is_causal,
            answers: self.output,
            randomized_positions: self.randomized_positions,
            limits: self.limits(),
        })
    }
}

/// An encoder whose states are answers: `y_i = softmax(W h_i + b)` for each token, or `y = softmax(W h + b)` with the state `h` of
/// the end symbol for the whole source. Tokens see each other in both directions, or with `is_causal` only those before them.
///
/// It is behind the same trait as the models that write: the words of its answer do not depend on each other, so that all of
/// them are there once the source has been read, and a step takes the next. After the last tag comes that of the source's own end
/// symbol, which it learns to be the end; after a class, a vector that is learnt for nothing else. Masked words are tags whose
/// names are the words of the text itself: the answer to a token that is hidden is the word that it was.
///
/// # Reference
/// Devlin et al., BERT, 2019, section 3 and figure 4 (classes and tags over a bidirectional stack), section 3.1 (masked words); Graves and Schmidhuber,
/// Framewise Phoneme Classification with Bidirectional LSTM, 2005, for tags by recurrences. **Differs from BERT:** a class is
/// read off a token behind the text and not before it, so that causal models and recurrences have seen everything there.
#[derive(Module, Debug)]
pub struct EncoderOnlyModel {
    source_embedding: Reading,
    position: Position,
    layers: Vec<Block>,
    norm: Option<Norm>,
    /// Before the first layer.
    embedding_norm: Option<Norm>,
    /// Before the last product.
    transform: Option<Transform>,
    output: Output,
    /// What the end of an answer of one word is read off.
    end: Option<Param<Tensor<1>>>,
    /// How many layers a token goes through; more than are made where layers are shared.
    #[module(skip)]
    n_layers: usize,
    #[module(skip)]
    embedding_scale: f64,
    #[module(skip)]
    embedding_dropout_rate: f64,
    #[module(skip)]
    is_causal: bool,
    #[module(skip)]
    answers: Answers,
    #[module(skip)]
    randomized_positions: Option<usize>,
    #[module(skip)]
    limits: LengthLimits,
}

/// What the answers are read off: a vector for each, that of the end last.
///
/// # Shapes
/// - states: `[batch, len, d_model]`
/// - last: `[batch]`, the place of each row's end
#[derive(Clone, Debug)]
pub struct EncoderOnlyMemory {
    states: Tensor<3>,
    last: Tensor<1, Int>,
}

/// How many words of the answer have been taken.
#[derive(Clone, Copy, Debug, Default)]
pub struct EncoderOnlyState {
    taken: usize,
}

impl Rows for EncoderOnlyMemory {
    fn select(&self, rows: &Tensor<1, Int>) -> Self {
        Self { states: self.states.clone().select(0, rows.clone()), last: self.last.clone().select(0, rows.clone()) }
    }
}

impl Rows for EncoderOnlyState {
    fn select(&self, _rows: &Tensor<1, Int>) -> Self {
        *self
    }
}

impl EncoderOnlyMemory {
    /// The vectors of the answer's words `places`; beyond the end, that of the end.
    fn at(&self, places: std::ops::Range<usize>) -> Tensor<3> {
        let [batch, len, d] = self.states.dims();
        let n = places.len();
        let wanted = indices(places, &self.states.device()).reshape([1, n]).repeat_dim(0, batch);
        let last = self.last.clone().reshape([batch, 1]).repeat_dim(1, n);
        let first = indices((0..batch).map(|row| row * len), &self.states.device()).reshape([batch, 1]);
        let rows = wanted.min_pair(last) + first.repeat_dim(1, n);
        self.states.clone().reshape([batch * len, d]).select(0, rows.reshape([batch * n])).reshape([batch, n, d])
    }
}

impl EncoderOnlyModel {
    /// Whether words are scored by their embeddings.
    pub(super) fn has_tied_output(&self) -> bool {
        self.output.is_tied()
    }

    fn scores_of(&self, states: Tensor<3>, pass: &mut Pass) -> Scores<'_> {
        let input = match &self.transform {
            Some(transform) => transform.forward(states, pass),
            None => states,
        };
        pass.record("decoder.readout", || input.clone());
        Scores { input, output: &self.output, embedding: self.source_embedding.table() }
    }

    /// The scores of every word of the answer, as [`Seq2Seq::forward`] has them.
    pub fn scores(&self, source: &Padded, target_input: &Padded, pass: &mut Pass) -> Scores<'_> {
        let memory = self.encode(source, pass);
        self.scores_of(memory.at(0..target_input.len()), pass)
    }

    /// The state of each row's end symbol, and what the end of the answer is read off.
    fn of_whole(&self, states: Tensor<3>, lengths: &[usize]) -> Tensor<3> {
        let [batch, len, d] = states.dims();
        let last = indices(lengths.iter().enumerate().map(|(row, length)| row * len + length - 1), &states.device());
        let whole = states.reshape([batch * len, d]).select(0, last).reshape([batch, 1, d]);
        match &self.end {
            Some(end) => Tensor::cat(vec![whole, end.val().reshape([1, 1, d]).repeat_dim(0, batch)], 1),
            None => whole,
        }
    }
}

impl Autoregressive for EncoderOnlyModel {
    type Memory = EncoderOnlyMemory;
    type State = EncoderOnlyState;

    fn start(&self, _memory: &EncoderOnlyMemory, _n_beams: usize) -> EncoderOnlyState {
        EncoderOnlyState::default()
    }

    fn step(
        &self,
        previous: Tensor<1, Int>,
        state: EncoderOnlyState,
        memory: &EncoderOnlyMemory,
        pass: &mut Pass,
    ) -> (Tensor<2>, EncoderOnlyState) {
        let answer = memory.at(state.taken..state.taken + 1);
        let [batch, _, d] = answer.dims();
        let n_beams = previous.dims()[0] / batch;
        let rows = answer.repeat_dim(1, n_beams).reshape([batch * n_beams, 1, d]);
        (self.scores_of(rows, pass).logits(pass).squeeze_dim(1), EncoderOnlyState { taken: state.taken + 1 })
    }

    fn fixed_len(&self, source_len: usize) -> Option<usize> {
        (self.answers == Answers::MaskedWords).then_some(source_len)
    }

    fn answer_len(&self, source_len: usize) -> Option<usize> {
        Some(self.answers.len(source_len))
    }

    fn limits(&self) -> LengthLimits {
        self.limits
    }

    fn device(&self) -> Device {
        self.source_embedding.device()
    }
}

impl Seq2Seq for EncoderOnlyModel {
    fn encode(&self, source: &Padded, pass: &mut Pass) -> EncoderOnlyMemory {
        let (device, len) = (source.ids.device(), source.len());
        // Padding follows the real tokens, so whoever may not see the future does not see padding either.
        let mask =
            if self.is_causal { Mask::causal(len, &device) } else { Mask::padding(&source.lengths, len, &device) };
        let places = pass.places(self.randomized_positions, len, 0);
        let positions = self.position.in_attention_at(&places, &device);
        let embedded = self.source_embedding.forward(source, self.embedding_scale, pass);
        let embedded = pass.watch_input(self.position.embed_at(embedded, &places));
        let embedded = match &self.embedding_norm {
            Some(norm) => norm.forward(embedded, pass),
            None => embedded,
        };
        let x = pass.dropout(embedded, self.embedding_dropout_rate);
        pass.record("encoder.embedded", || x.clone());
        let stack = Stack { layers: &self.layers, depth: self.n_layers, norm: &self.norm };
        let states = stack.encode(x, &source.lengths, &mask, &positions, pass);
        pass.record("encoder.output", || states.clone());
        let last = |of: fn(usize) -> usize| indices(source.lengths.iter().map(|length| of(*length)), &device);
        match self.answers {
            Answers::Tags | Answers::MaskedWords | Answers::Values => {
                EncoderOnlyMemory { states, last: last(|length| length - 1) }
            }
            Answers::Class => EncoderOnlyMemory { states: self.of_whole(states, &source.lengths), last: last(|_| 1) },
        }
    }

    fn has_causal_encoder(&self) -> bool {
        self.is_causal
    }

    fn forward(&self, source: &Padded, target_input: &Padded, pass: &mut Pass) -> Tensor<3> {
        self.scores(source, target_input, pass).logits(pass)
    }
}
