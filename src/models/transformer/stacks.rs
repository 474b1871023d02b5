//! The two stacks of a Transformer over vectors, without words: layers of models of one's own.

use super::layer::{DecoderLayer, DecoderLayers};
use super::{NormPosition, TransformerConfig, TransformerMemory, TransformerState};
use crate::error::Result;
use crate::layers::norm::Norm;
use crate::layers::position::{Places, Position, Side};
use crate::layers::{Init, Mask, Pass};
use crate::models::block::Block;
use crate::models::stack::Stack;
use burn::module::Module;
use burn::tensor::{Device, Tensor};

impl TransformerConfig {
    /// The encoder alone, with weights drawn as burn's own layers draw theirs: from the device, whose `seed` makes them repeatable.
    ///
    /// # Errors
    /// If the values do not go together.
    ///
    /// # Example
    /// ```
    /// use burn::tensor::Tensor;
    /// use lookback::backend::Backend;
    /// use lookback::layers::Pass;
    /// use lookback::models::TransformerConfig;
    ///
    /// # fn main() -> lookback::error::Result<()> {
    /// let device = Backend::Flex.open()?.device;
    /// let config = TransformerConfig { d_model: 8, d_feed_forward: 16, n_heads: 2, ..TransformerConfig::default() };
    /// let encoder = config.init_encoder(&device)?;
    /// // Two sequences of vectors, the second of them padded.
    /// let states = encoder.forward(Tensor::zeros([2, 5, 8], &device), &[5, 3], &mut Pass::inference());
    /// assert_eq!(states.dims(), [2, 5, 8]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn init_encoder(&self, device: &Device) -> Result<TransformerEncoder> {
        TransformerEncoder::new(self, &Init::random(device))
    }

    /// The decoder alone: see [`Self::init_encoder`].
    ///
    /// # Errors
    /// If the values do not go together.
    pub fn init_decoder(&self, device: &Device) -> Result<TransformerDecoder> {
        TransformerDecoder::new(self, &Init::random(device))
    }
}

/// The encoder of a [`TransformerModel`](super::TransformerModel): positions, layers, and the norm behind them.
///
/// # Reference
/// Vaswani et al., Attention Is All You Need, 2017, section 3.1 and figure 1, left; everything that [`TransformerConfig`] offers
/// besides. The keys of the decoder, of embeddings and of the output have no effect here.
#[derive(Module, Debug)]
pub struct TransformerEncoder {
    position: Position,
    layers: Vec<Block>,
    norm: Option<Norm>,
    #[module(skip)]
    depth: usize,
    #[module(skip)]
    dropout_rate: f64,
}

impl TransformerEncoder {
    /// An encoder with weights of `init`.
    ///
    /// # Errors
    /// If the values of the config do not go together.
    pub fn new(config: &TransformerConfig, init: &Init) -> Result<Self> {
        config.validate()?;
        let block = config.block();
        let mixers = config.encoder_mixers().made(config.n_encoder_layers, config.share_layers);
        let layer = |own| Block::new(&block, own, own.n_directions(), &config.positions, init);
        Ok(Self {
            position: config.positions.init(config.d_model, config.n_heads, Side::Encoder, init),
            layers: mixers.iter().map(layer).collect(),
            norm: (config.norm_position == NormPosition::Pre).then(|| block.norm(init)),
            depth: config.n_encoder_layers,
            dropout_rate: config.embedding_dropout_rate(),
        })
    }

    /// What becomes of sequences of so many vectors each, padded to the longest.
    ///
    /// # Shapes
    /// - input, output: `[batch, len, d_model]`
    ///
    /// # Panics
    /// If a position lies beyond a learned table.
    pub fn forward(&self, input: Tensor<3>, lengths: &[usize], pass: &mut Pass) -> Tensor<3> {
        let ([_, len, _], device) = (input.dims(), input.device());
        let mask = Mask::padding(lengths, len, &device);
        let positions = self.position.in_attention(0, len, &device);
        let x = pass.dropout(self.position.embed(input, 0), self.dropout_rate);
        Stack { layers: &self.layers, depth: self.depth, norm: &self.norm }.encode(x, lengths, &mask, &positions, pass)
    }
}

/// The decoder of a [`TransformerModel`](super::TransformerModel): positions, layers that see the past and the source, and the norm
/// behind them.
///
/// # Reference
/// Vaswani et al. 2017, section 3.1 and figure 1, right, as [`TransformerEncoder`].
#[derive(Module, Debug)]
pub struct TransformerDecoder {
    position: Position,
    layers: Vec<DecoderLayer>,
    norm: Option<Norm>,
    #[module(skip)]
    depth: usize,
    #[module(skip)]
    dropout_rate: f64,
}

impl TransformerDecoder {
    /// A decoder with weights of `init`.
    ///
    /// # Errors
    /// If the values of the config do not go together.
    pub fn new(config: &TransformerConfig, init: &Init) -> Result<Self> {
        config.validate()?;
        let mixers = config.decoder_mixers().made(config.n_decoder_layers, config.share_layers);
        Ok(Self {
            position: config.decoder_positions().init(config.d_model, config.n_heads, Side::Decoder, init),
            layers: mixers.iter().map(|own| DecoderLayer::new(config, own, init)).collect(),
            norm: (config.norm_position == NormPosition::Pre).then(|| config.block().norm(init)),
            depth: config.n_decoder_layers,
            dropout_rate: config.embedding_dropout_rate(),
        })
    }

    fn decoder_layers(&self) -> DecoderLayers<'_> {
        DecoderLayers { layers: &self.layers, depth: self.depth }
    }

    /// The source-side work, the same at every step.
    ///
    /// # Shapes
    /// - encoded: `[batch, source_len, d_model]`, sequences of these lengths
    pub fn prepare(&self, encoded: Tensor<3>, lengths: &[usize], pass: &Pass) -> TransformerMemory {
        let mask = Mask::padding(lengths, encoded.dims()[1], &encoded.device());
        self.decoder_layers().prepare(encoded, mask, pass)
    }

    /// Whole targets, each position of which sees those before it and the source.
    ///
    /// # Shapes
    /// - input, output: `[batch, target_len, d_model]`
    pub fn forward(&self, input: Tensor<3>, memory: &TransformerMemory, pass: &mut Pass) -> Tensor<3> {
        let ([_, len, _], device) = (input.dims(), input.device());
        let (causal, positions) = (Mask::causal(len, &device), self.position.in_attention(0, len, &device));
        let x = pass.dropout(self.position.embed(input, 0), self.dropout_rate);
        let stream = self
            .decoder_layers()
            .run(x, memory, pass, |mixing, _, stream, pass| mixing.forward(stream, None, &causal, &positions, pass));
        stream.normalized(&self.norm, pass)
    }

    /// The state before the first position.
    pub fn start(&self) -> TransformerState {
        self.decoder_layers().start()
    }

    /// One position more: the same as [`Self::forward`] has there.
    ///
    /// # Shapes
    /// - input, output: `[rows, 1, d_model]`; the rows of a sentence, one or several, follow each other
    pub fn step(
        &self,
        input: Tensor<3>,
        mut state: TransformerState,
        memory: &TransformerMemory,
        pass: &mut Pass,
    ) -> (Tensor<3>, TransformerState) {
        let place = Places::Following { offset: state.len, len: 1 };
        let positions = self.position.in_attention_at(&place, &input.device());
        let x = pass.dropout(self.position.embed_at(input, &place), self.dropout_rate);
        let stream = self.decoder_layers().step(x, &mut state, &positions, memory, pass);
        (stream.normalized(&self.norm, pass), state)
    }
}
