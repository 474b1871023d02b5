//! The Transformer encoder-decoder.

mod config;
mod costs;
mod family;
mod layer;
mod stacks;
mod state;

pub use super::residual::NormPosition;
pub use config::{TiedEmbeddings, TransformerConfig};
pub use stacks::{TransformerDecoder, TransformerEncoder};
pub use state::{TransformerMemory, TransformerState};

use super::block::{Block, RightAligned};
use super::readout::{Output, Scores};
use super::residual::ResidualStream;
use super::stack::Stack;
use super::{Autoregressive, LengthLimits, Seq2Seq, Vocabularies, embedding_scale, prefill_by_steps};
use crate::data::batch::Padded;
use crate::error::Result;
use crate::layers::linear::embedding;
use crate::layers::mixer::MixerConfig;
use crate::layers::norm::Norm;
use crate::layers::position::{Places, Position, PositionConfig, Side};
use crate::layers::{Init, Mask, Pass};
use burn::module::Module;
use burn::nn::Embedding;
use burn::tensor::{Device, Int, Tensor};
use layer::{DecoderLayer, DecoderLayers};

/// The stacks, whose positions are drawn apart.
const ENCODER: u64 = 0;
const DECODER: u64 = 1;

impl TransformerConfig {
    /// Makes the model.
    pub fn init(&self, vocabularies: Vocabularies, init: &Init) -> Result<TransformerModel> {
        let output = self.tied_embeddings.output(self.d_model, self.output_bias, vocabularies, init)?;
        let all_tied = self.tied_embeddings == TiedEmbeddings::All;
        let has_final_norm = self.norm_position == NormPosition::Pre;
        let block = self.block();
        let norm = || has_final_norm.then(|| block.norm(init));
        let position = |config: &PositionConfig, side| config.init(self.d_model, self.n_heads, side, init);
        let encoder_layers = self.encoder_mixers().made(self.n_encoder_layers, self.share_layers);
        let decoder_layers = self.decoder_mixers().made(self.n_decoder_layers, self.share_layers);
        let encoder_layer = |own: &MixerConfig| Block::new(&block, own, own.n_directions(), &self.positions, init);
        let has_own_positions = self.decoder_positions.is_some() || self.positions.depends_on_side();
        Ok(TransformerModel {
            source_embedding: (!all_tied).then(|| init.embedding(vocabularies.source, self.d_model)),
            target_embedding: init.embedding(vocabularies.target, self.d_model),
            position: position(&self.positions, Side::Encoder),
            decoder_position: has_own_positions.then(|| position(self.decoder_positions(), Side::Decoder)),
            encoder: encoder_layers.iter().map(encoder_layer).collect(),
            encoder_norm: norm(),
            decoder: decoder_layers.iter().map(|mixer| DecoderLayer::new(self, mixer, init)).collect(),
            decoder_norm: norm(),
            output,
            randomized_positions: self.randomized_positions,
            depths: [self.n_encoder_layers, self.n_decoder_layers],
            embedding_scale: embedding_scale(self.scales_embeddings, self.d_model),
            embedding_dropout_rate: self.embedding_dropout_rate(),
            limits: self.limits(),
        })
    }
}

/// A Transformer encoder-decoder.
///
/// # Reference
/// Vaswani et al., Attention Is All You Need, 2017. Embeddings are scaled by the square root of `d_model` (section 3.4),
/// if the config does not say otherwise.
#[derive(Module, Debug)]
pub struct TransformerModel {
    source_embedding: Option<Embedding>,
    target_embedding: Embedding,
    /// Of the encoder; of both sides where they can share it.
    position: Position,
    decoder_position: Option<Position>,
    encoder: Vec<Block>,
    encoder_norm: Option<Norm>,
    decoder: Vec<DecoderLayer>,
    decoder_norm: Option<Norm>,
    output: Output,
    /// How many layers encoder and decoder go through; more than are made where layers are shared.
    #[module(skip)]
    depths: [usize; 2],
    #[module(skip)]
    embedding_scale: f64,
    #[module(skip)]
    embedding_dropout_rate: f64,
    #[module(skip)]
    limits: LengthLimits,
    #[module(skip)]
    randomized_positions: Option<usize>,
}

impl TransformerModel {
    fn embed(&self, table: &Embedding, ids: Tensor<2, Int>, pass: &Pass) -> Tensor<3> {
        embedding(ids, table, self.embedding_scale, pass)
    }

    fn decoder_layers(&self) -> DecoderLayers<'_> {
        DecoderLayers { layers: &self.decoder, depth: self.depths[1] }
    }

    fn decoder_position(&self) -> &Position {
        self.decoder_position.as_ref().unwrap_or(&self.position)
    }

    /// The target's words at these positions, as the decoder's first layer sees them.
    fn embed_target(&self, ids: Tensor<2, Int>, places: &Places, pass: &mut Pass) -> Tensor<3> {
        let embedded = self.decoder_position().embed_at(self.embed(&self.target_embedding, ids, pass), places);
        pass.dropout(embedded, self.embedding_dropout_rate)
    }

    fn scores_of(&self, stream: ResidualStream, pass: &mut Pass) -> Scores<'_> {
        let input = stream.normalized(&self.decoder_norm, pass);
        pass.record("decoder.readout", || input.clone());
        Scores { input, output: &self.output, embedding: Some(&self.target_embedding) }
    }

    /// The scores of every target position, as [`Seq2Seq::forward`] has them.
    pub fn scores(&self, source: &Padded, target_input: &Padded, pass: &mut Pass) -> Scores<'_> {
        let memory = self.encode(source, pass);
        // Padding follows the real tokens, so whoever may not see the future does not see padding either.
        let device = target_input.ids.device();
        let causal = Mask::causal(target_input.len(), &device);
        let places = pass.places(self.randomized_positions, target_input.len(), DECODER);
        let positions = self.decoder_position().in_attention_at(&places, &device);
        let x = self.embed_target(target_input.ids.clone(), &places, pass);
        let stream = self
            .decoder_layers()
            .run(x, &memory, pass, |mixing, _, stream, pass| mixing.forward(stream, None, &causal, &positions, pass));
        self.scores_of(stream, pass)
    }
}

impl TransformerModel {
    /// Whether words are scored by the target embeddings.
    pub fn has_tied_output(&self) -> bool {
        self.output.is_tied()
    }
}

impl Autoregressive for TransformerModel {
    type Memory = TransformerMemory;
    type State = TransformerState;

    fn start(&self, _memory: &TransformerMemory, _n_beams: usize) -> TransformerState {
        self.decoder_layers().start()
    }

    fn step(
        &self,
        previous: Tensor<1, Int>,
        mut state: TransformerState,
        memory: &TransformerMemory,
        pass: &mut Pass,
    ) -> (Tensor<2>, TransformerState) {
        let place = Places::Following { offset: state.len, len: 1 };
        let positions = self.decoder_position().in_attention_at(&place, &previous.device());
        let x = self.embed_target(previous.unsqueeze_dim(1), &place, pass);
        pass.record("decoder.embedded", || x.clone());
        let stream = self.decoder_layers().step(x, &mut state, &positions, memory, pass);
        (self.scores_of(stream, pass).logits(pass).squeeze_dim(1), state)
    }

    fn prefill(
        &self,
        tokens: Tensor<2, Int>,
        mut state: TransformerState,
        memory: &TransformerMemory,
        n_scored: usize,
        pass: &mut Pass,
    ) -> (Option<Tensor<3>>, TransformerState) {
        if state.len > 0 {
            return prefill_by_steps(self, tokens, state, memory, n_scored, pass);
        }
        let ([n_rows, len], device) = (tokens.dims(), tokens.device());
        let (causal, rows) = (Mask::causal(len, &device), RightAligned::new(&vec![len; n_rows], len, &device));
        let places = Places::Following { offset: 0, len };
        let positions = self.decoder_position().in_attention_at(&places, &device);
        let x = self.embed_target(tokens, &places, pass);
        let stream = self.decoder_layers().run(x, memory, pass, |mixing, depth, stream, pass| {
            mixing.prefill(stream, &rows, &mut state.layers[depth], &causal, &positions, pass)
        });
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

impl Seq2Seq for TransformerModel {
    fn encode(&self, source: &Padded, pass: &mut Pass) -> TransformerMemory {
        let device = source.ids.device();
        let mask = Mask::padding(&source.lengths, source.len(), &device);
        let places = pass.places(self.randomized_positions, source.len(), ENCODER);
        let positions = self.position.in_attention_at(&places, &device);
        let embedding = self.source_embedding.as_ref().unwrap_or(&self.target_embedding);
        let embedded = self.position.embed_at(self.embed(embedding, source.ids.clone(), pass), &places);
        let embedded = pass.watch_input(embedded);
        let x = pass.dropout(embedded, self.embedding_dropout_rate);
        pass.record("encoder.embedded", || x.clone());
        let stack = Stack { layers: &self.encoder, depth: self.depths[0], norm: &self.encoder_norm };
        let x = stack.encode(x, &source.lengths, &mask, &positions, pass);
        pass.record("encoder.output", || x.clone());
        self.decoder_layers().prepare(x, mask, pass)
    }

    fn forward(&self, source: &Padded, target_input: &Padded, pass: &mut Pass) -> Tensor<3> {
        self.scores(source, target_input, pass).logits(pass)
    }
}
