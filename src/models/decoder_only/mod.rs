//! A stack of layers over one sequence: source, separator, target.

mod config;
mod costs;
mod family;
mod joined;
mod seen;

pub use config::DecoderOnlyConfig;

use super::block::{Block, LayerState, RightAligned};
use super::readout::{Output, Scores};
use super::residual::ResidualStream;
use super::stack::Stack;
use super::transformer::{NormPosition, TiedEmbeddings};
use super::{Autoregressive, LengthLimits, Rows, Seq2Seq, Vocabularies, embedding_scale, prefill_by_steps};
use crate::data::batch::Padded;
use crate::error::Result;
use crate::layers::linear::embedding;
use crate::layers::norm::Norm;
use crate::layers::position::{Places, Position, Side};
use crate::layers::{Init, Mask, Pass, indices};
use burn::module::Module;
use burn::nn::Embedding;
use burn::tensor::{Device, Int, Tensor};
use joined::Joined;

impl DecoderOnlyConfig {
    /// Makes the model.
    pub fn init(&self, vocabularies: Vocabularies, init: &Init) -> Result<DecoderOnlyModel> {
        let output = self.tied_embeddings.output(self.d_model, self.output_bias, vocabularies, init)?;
        let all_tied = self.tied_embeddings == TiedEmbeddings::All;
        // Distances to both sides are told apart where both sides are seen.
        let side = if self.sees_whole_source { Side::Encoder } else { Side::Decoder };
        let block = self.block();
        Ok(DecoderOnlyModel {
            source_embedding: (self.reads_source && !all_tied)
                .then(|| init.embedding(vocabularies.source, self.d_model)),
            target_embedding: init.embedding(vocabularies.target, self.d_model),
            position: self.positions.init(self.d_model, self.n_heads, side, init),
            layers: self
                .mixer
                .made(self.n_layers, self.share_layers)
                .iter()
                .map(|own| Block::new(&block, own, 1, &self.positions, init))
                .collect(),
            norm: (self.norm_position == NormPosition::Pre).then(|| block.norm(init)),
            output,
            n_layers: self.n_layers,
            embedding_scale: embedding_scale(self.scales_embeddings, self.d_model),
            embedding_dropout_rate: self.embedding_dropout_rate(),
            reads_source: self.reads_source,
            sees_whole_source: self.sees_whole_source,
            randomized_positions: self.randomized_positions,
            limits: self.limits(),
        })
    }
}

/// A language model that goes on from a source: `x_1 .. x_S </s> <s> y_1 .. y_T </s>` is one sequence, in which each word sees
/// those before it, and the loss is that of the target's words.
///
/// There is no encoder and no cross-attention: the source is read by filling the caches, all words at once, and the target goes
/// on from there. Source and target have tables of their own unless they are tied.
///
/// Without a source it is a language model of plain text, in which each word is predicted from those before it; a prompt is read by
/// [`Autoregressive::prefill`]. What `encode` reads is then the beginning of the text itself, as it stands.
///
/// # Reference
/// Radford et al., Improving Language Understanding by Generative Pre-Training, 2018, section 3.3 (source, delimiter, target);
/// Liu et al., Generating Wikipedia by Summarizing Long Sequences, 2018, section 4.2.3; Raffel et al., Exploring the Limits of
/// Transfer Learning, 2020, section 3.2, for the source that sees all of itself; Radford et al., Language Models are Unsupervised
/// Multitask Learners, 2019, section 2.3, for plain text. **Differs from the papers:** the source's own
/// words are not learnt to be predicted, and embeddings are scaled by the root of the width, as in the other models here.
#[derive(Module, Debug)]
pub struct DecoderOnlyModel {
    source_embedding: Option<Embedding>,
    target_embedding: Embedding,
    position: Position,
    layers: Vec<Block>,
    norm: Option<Norm>,
    output: Output,
    /// How many layers a word goes through; more than are made where layers are shared.
    #[module(skip)]
    n_layers: usize,
    #[module(skip)]
    embedding_scale: f64,
    #[module(skip)]
    embedding_dropout_rate: f64,
    #[module(skip)]
    reads_source: bool,
    #[module(skip)]
    sees_whole_source: bool,
    #[module(skip)]
    randomized_positions: Option<usize>,
    #[module(skip)]
    limits: LengthLimits,
}

/// The sources as they stand in the caches, one row for each sentence.
#[derive(Clone, Debug)]
pub struct DecoderOnlyMemory {
    read: DecoderOnlyState,
    batch: usize,
}

/// What each layer keeps of source and target so far.
#[derive(Clone, Debug)]
pub struct DecoderOnlyState {
    /// One for each depth, also where layers are shared.
    layers: Vec<LayerState>,
    /// The column in which each row begins; nothing if it is the first in all. Rows end in the same column.
    starts: Option<Tensor<1, Int>>,
    /// Columns so far, of the source and of both.
    n_source: usize,
    len: usize,
}

impl Rows for DecoderOnlyState {
    fn select(&self, rows: &Tensor<1, Int>) -> Self {
        Self {
            layers: self.layers.iter().map(|layer| layer.select(rows)).collect(),
            starts: self.starts.clone().map(|starts| starts.select(0, rows.clone())),
            ..*self
        }
    }
}

impl Rows for DecoderOnlyMemory {
    fn select(&self, rows: &Tensor<1, Int>) -> Self {
        Self { read: self.read.select(rows), batch: rows.dims()[0] }
    }
}

impl DecoderOnlyModel {
    /// Whether words are scored by the target embeddings.
    pub fn has_tied_output(&self) -> bool {
        self.output.is_tied()
    }

    fn embed(&self, table: &Embedding, ids: Tensor<2, Int>, pass: &Pass) -> Tensor<3> {
        embedding(ids, table, self.embedding_scale, pass)
    }

    fn embed_source(&self, ids: Tensor<2, Int>, pass: &mut Pass) -> Tensor<3> {
        let embedding = self.source_embedding.as_ref().unwrap_or(&self.target_embedding);
        let embedded = self.embed(embedding, ids, pass);
        pass.watch_input(embedded)
    }

    fn stack(&self) -> Stack<'_> {
        Stack { layers: &self.layers, depth: self.n_layers, norm: &self.norm }
    }

    fn scores_of(&self, stream: ResidualStream, pass: &mut Pass) -> Scores<'_> {
        let input = stream.normalized(&self.norm, pass);
        pass.record("decoder.readout", || input.clone());
        Scores { input, output: &self.output, embedding: Some(&self.target_embedding) }
    }

    /// Fills the caches of layers that have seen nothing with words that end in the same column; what the last layer makes of them.
    fn read(
        &self,
        side: &str,
        x: Tensor<3>,
        rows: &RightAligned,
        layers: &mut [LayerState],
        mask: &Mask,
        pass: &mut Pass,
    ) -> ResidualStream {
        // A row that begins later has smaller distances to the same column: only differences of columns are looked at.
        let positions = self.position.in_attention(0, x.dims()[1], &x.device());
        self.stack().run(side, x, pass, |mixing, depth, stream, pass| {
            mixing.prefill(stream, rows, &mut layers[depth], mask, &positions, pass)
        })
    }

    /// What the layers make of whole sequences, of which `mask` hides what a word may not see.
    fn whole(&self, words: Tensor<3>, places: &Places, mask: &Mask, pass: &mut Pass) -> ResidualStream {
        let positions = self.position.in_attention_at(places, &words.device());
        let x = pass.dropout(self.position.embed_at(words, places), self.embedding_dropout_rate);
        self.stack()
            .run("decoder", x, pass, |mixing, _, stream, pass| mixing.forward(stream, None, mask, &positions, pass))
    }

    /// The scores of every target position, as [`Seq2Seq::forward`] has them.
    pub fn scores(&self, source: &Padded, target_input: &Padded, pass: &mut Pass) -> Scores<'_> {
        if !self.reads_source {
            return self.scores_of_text(target_input, pass);
        }
        let device = source.ids.device();
        let joined = Joined::new(source, target_input);
        let source_words = self.embed_source(source.ids.clone(), pass);
        let target_words = self.embed(&self.target_embedding, target_input.ids.clone(), pass);
        let places = pass.places(self.randomized_positions, joined.len(), 0);
        let mask = joined.mask(self.sees_whole_source, &device);
        let before = pass.n_recorded();
        let stream = self.whole(joined.join(source_words, target_words), &places, &mask, pass);
        // In a batch the sources are not of one length; whoever traces takes one sentence at a time.
        if let Some(n_source) = joined.n_source_of_one() {
            pass.rework(before, |entries| seen::apart(entries, n_source, n_source));
        }
        self.scores_of(joined.target(stream.sum(pass.body())).into(), pass)
    }

    /// The scores of every word of a text that is not the continuation of anything.
    fn scores_of_text(&self, text: &Padded, pass: &mut Pass) -> Scores<'_> {
        let words = self.embed(&self.target_embedding, text.ids.clone(), pass);
        let words = pass.watch_input(words);
        let places = pass.places(self.randomized_positions, text.len(), 0);
        let mask = Mask::causal(text.len(), &words.device());
        let stream = self.whole(words, &places, &mask, pass);
        self.scores_of(stream, pass)
    }
}

impl Autoregressive for DecoderOnlyModel {
    type Memory = DecoderOnlyMemory;
    type State = DecoderOnlyState;

    fn start(&self, memory: &DecoderOnlyMemory, n_beams: usize) -> DecoderOnlyState {
        if n_beams == 1 {
            return memory.read.clone();
        }
        let rows = (0..memory.batch * n_beams).map(|row| row / n_beams);
        memory.read.select(&indices(rows, &self.device()))
    }

    fn step(
        &self,
        previous: Tensor<1, Int>,
        mut state: DecoderOnlyState,
        _memory: &DecoderOnlyMemory,
        pass: &mut Pass,
    ) -> (Tensor<2>, DecoderOnlyState) {
        let device = previous.device();
        let embedded = self.embed(&self.target_embedding, previous.unsqueeze_dim(1), pass);
        let (embedded, mask) = match &state.starts {
            None => (self.position.embed(embedded, state.len), Mask::none()),
            Some(starts) => {
                let places = starts.clone().neg().add_scalar(state.len as i32);
                (self.position.embed_each(embedded, places, state.len), Mask::before(starts, state.len + 1))
            }
        };
        let x = pass.dropout(embedded, self.embedding_dropout_rate);
        pass.record("decoder.embedded", || x.clone());
        let positions = self.position.in_attention(state.len, 1, &device);
        let before = pass.n_recorded();
        let stream = self.stack().run("decoder", x, pass, |mixing, depth, stream, pass| {
            mixing.step(stream, &mut state.layers[depth], &mask, &positions, pass)
        });
        if self.reads_source {
            pass.rework(before, |entries| seen::apart(entries, state.n_source, 0));
        }
        state.len += 1;
        (self.scores_of(stream, pass).logits(pass).squeeze_dim(1), state)
    }

    fn prefill(
        &self,
        tokens: Tensor<2, Int>,
        mut state: DecoderOnlyState,
        memory: &DecoderOnlyMemory,
        n_scored: usize,
        pass: &mut Pass,
    ) -> (Option<Tensor<3>>, DecoderOnlyState) {
        // Behind a source the caches are filled already.
        if state.len > 0 {
            return prefill_by_steps(self, tokens, state, memory, n_scored, pass);
        }
        let ([n_rows, len], device) = (tokens.dims(), tokens.device());
        let rows = RightAligned::new(&vec![len; n_rows], len, &device);
        let embedded = self.position.embed(self.embed(&self.target_embedding, tokens, pass), 0);
        let x = pass.dropout(embedded, self.embedding_dropout_rate);
        let stream = self.read("decoder", x, &rows, &mut state.layers, &Mask::causal(len, &device), pass);
        state.len = len;
        let scored = (n_scored > 0).then(|| self.scores_of(stream.last(n_scored, pass.body()), pass).logits(pass));
        (scored, state)
    }

    fn limits(&self) -> LengthLimits {
        self.limits
    }

    fn device(&self) -> Device {
        self.target_embedding.weight.val().device()
    }
}

impl Seq2Seq for DecoderOnlyModel {
    fn encode(&self, source: &Padded, pass: &mut Pass) -> DecoderOnlyMemory {
        let device = source.ids.device();
        if source.n_tokens() == 0 {
            let read = DecoderOnlyState {
                layers: vec![LayerState::default(); self.n_layers],
                starts: None,
                n_source: 0,
                len: 0,
            };
            return DecoderOnlyMemory { read, batch: source.batch_size() };
        }
        let (len, sees_all) = (source.len(), self.sees_whole_source);
        let rows = RightAligned::new(&source.lengths, len, &device);
        let starts = rows.starts();
        let mask = match &starts {
            Some(starts) => Mask::right_aligned(starts, len, sees_all, &device),
            None if sees_all => Mask::none(),
            None => Mask::causal(len, &device),
        };
        let embedded = self.position.embed(self.embed_source(source.ids.clone(), pass), 0);
        let x = rows.to_right(pass.dropout(embedded, self.embedding_dropout_rate));
        pass.record("encoder.embedded", || x.clone());
        let mut layers = vec![LayerState::default(); self.n_layers];
        let stream = self.read("encoder", x, &rows, &mut layers, &mask, pass);
        pass.record("encoder.output", || stream.normalized(&self.norm, &Pass::inference()));
        let starts = starts.map(|starts| indices(starts, &device));
        let read = DecoderOnlyState { layers, starts, n_source: len, len };
        DecoderOnlyMemory { read, batch: source.batch_size() }
    }

    fn has_causal_encoder(&self) -> bool {
        !self.sees_whole_source
    }

    fn forward(&self, source: &Padded, target_input: &Padded, pass: &mut Pass) -> Tensor<3> {
        self.scores(source, target_input, pass).logits(pass)
    }
}
