//! The Transformer encoder-decoder.

use super::readout::Output;
use super::{Rows, Seq2Seq, Vocabularies};
use crate::data::batch::Padded;
use crate::error::{Error, Result};
use crate::layers::attention::multi_head::{CrossAttention, KeyValue, SelfAttention};
use crate::layers::feed_forward::{Activation, FeedForward};
use crate::layers::position::{Position, PositionConfig};
use crate::layers::{Init, Mask, Pass};
use burn::module::Module;
use burn::nn::{Embedding, LayerNorm};
use burn::tensor::{Device, Int, Tensor};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where layer normalization stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NormPosition {
    /// `x + f(norm(x))`, and one norm after the last layer (Xiong et al. 2020): trains without a warm-up.
    Pre,
    /// `norm(x + f(x))`, as in Vaswani 2017.
    Post,
}

/// Which tables share their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TiedEmbeddings {
    /// None.
    None,
    /// The target embedding and the output projection.
    TargetOutput,
    /// Source embedding, target embedding and output projection; needs a shared vocabulary.
    All,
}

/// `[model]` with `kind = "transformer"`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TransformerConfig {
    /// Width of the vectors between layers.
    pub d_model: usize,
    /// Width inside the feed-forward networks.
    pub d_feed_forward: usize,
    /// Attention heads; they divide `d_model`.
    pub n_heads: usize,
    /// Encoder layers.
    pub n_encoder_layers: usize,
    /// Decoder layers.
    pub n_decoder_layers: usize,
    /// Probability of dropping an element of an embedding or of a sublayer's output.
    pub dropout_rate: f64,
    /// Probability of dropping an attention weight.
    pub attention_dropout_rate: f64,
    /// Probability of dropping an element inside a feed-forward network.
    pub activation_dropout_rate: f64,
    /// Where layer normalization stands.
    pub norm_position: NormPosition,
    /// The non-linearity of the feed-forward networks.
    pub activation: Activation,
    /// The position scheme of both sides.
    pub positions: PositionConfig,
    /// Which tables share their numbers.
    pub tied_embeddings: TiedEmbeddings,
}

impl Default for TransformerConfig {
    fn default() -> Self {
        Self {
            d_model: 256,
            d_feed_forward: 1024,
            n_heads: 4,
            n_encoder_layers: 3,
            n_decoder_layers: 3,
            dropout_rate: 0.1,
            attention_dropout_rate: 0.0,
            activation_dropout_rate: 0.0,
            norm_position: NormPosition::Pre,
            activation: Activation::Relu,
            positions: PositionConfig::Sinusoidal,
            tied_embeddings: TiedEmbeddings::None,
        }
    }
}

impl TransformerConfig {
    /// Checks the values against each other.
    pub fn validate(&self) -> Result<()> {
        for (key, value) in [
            ("d_model", self.d_model),
            ("d_feed_forward", self.d_feed_forward),
            ("n_heads", self.n_heads),
            ("n_encoder_layers", self.n_encoder_layers),
            ("n_decoder_layers", self.n_decoder_layers),
        ] {
            if value == 0 {
                return Err(Error::config(format!("model.{key}"), "must be at least 1, got 0"));
            }
        }
        if !self.d_model.is_multiple_of(self.n_heads) {
            let message = format!("must divide model.d_model, got {} and {}", self.n_heads, self.d_model);
            return Err(Error::config("model.n_heads", message));
        }
        for (key, rate) in [
            ("dropout_rate", self.dropout_rate),
            ("attention_dropout_rate", self.attention_dropout_rate),
            ("activation_dropout_rate", self.activation_dropout_rate),
        ] {
            check_rate(key, rate)?;
        }
        if self.positions.max_len() == Some(0) {
            return Err(Error::config("model.positions.max_len", "must be at least 1, got 0"));
        }
        Ok(())
    }

    /// Makes the model.
    pub fn init(&self, vocabularies: Vocabularies, init: &Init) -> Result<TransformerModel> {
        if self.tied_embeddings == TiedEmbeddings::All && !vocabularies.shared {
            let message = "\"all\" needs one vocabulary for both sides: set tokenizer.shared = true, or tie \"target-output\"";
            return Err(Error::config("model.tied_embeddings", message));
        }
        let all_tied = self.tied_embeddings == TiedEmbeddings::All;
        let output = match self.tied_embeddings {
            TiedEmbeddings::None => Output::projection(self.d_model, vocabularies.target, init),
            _ => Output::tied(),
        };
        let has_final_norm = self.norm_position == NormPosition::Pre;
        let norm = || has_final_norm.then(|| init.layer_norm(self.d_model));
        Ok(TransformerModel {
            source_embedding: (!all_tied).then(|| init.embedding(vocabularies.source, self.d_model)),
            target_embedding: init.embedding(vocabularies.target, self.d_model),
            position: self.positions.init(self.d_model, init),
            encoder: (0..self.n_encoder_layers).map(|_| EncoderLayer::new(self, init)).collect(),
            encoder_norm: norm(),
            decoder: (0..self.n_decoder_layers).map(|_| DecoderLayer::new(self, init)).collect(),
            decoder_norm: norm(),
            output,
            d_model: self.d_model,
            dropout_rate: self.dropout_rate,
            max_len: self.positions.max_len(),
        })
    }
}

/// A probability of dropping.
pub(super) fn check_rate(key: &str, rate: f64) -> Result<()> {
    if (0.0..1.0).contains(&rate) {
        return Ok(());
    }
    Err(Error::config(format!("model.{key}"), format!("must be at least 0 and less than 1, got {rate}")))
}

/// `x + dropout(f(x))` with the norm before or after.
#[derive(Module, Debug)]
struct Residual {
    norm: LayerNorm,
    #[module(skip)]
    position: NormPosition,
    #[module(skip)]
    dropout_rate: f64,
}

impl Residual {
    fn new(config: &TransformerConfig, init: &Init) -> Self {
        Self {
            norm: init.layer_norm(config.d_model),
            position: config.norm_position,
            dropout_rate: config.dropout_rate,
        }
    }

    fn around(
        &self,
        input: Tensor<3>,
        pass: &mut Pass,
        sublayer: impl FnOnce(Tensor<3>, &mut Pass) -> Tensor<3>,
    ) -> Tensor<3> {
        match self.position {
            NormPosition::Pre => {
                let output = sublayer(self.norm.forward(input.clone()), pass);
                input + pass.dropout(output, self.dropout_rate)
            }
            NormPosition::Post => {
                let output = sublayer(input.clone(), pass);
                self.norm.forward(input + pass.dropout(output, self.dropout_rate))
            }
        }
    }
}

/// Self-attention and a feed-forward network (Vaswani 2017, figure 1, left).
#[derive(Module, Debug)]
struct EncoderLayer {
    attention: SelfAttention,
    attention_residual: Residual,
    feed_forward: FeedForward,
    feed_forward_residual: Residual,
}

impl EncoderLayer {
    fn new(config: &TransformerConfig, init: &Init) -> Self {
        Self {
            attention: SelfAttention::new(config.d_model, config.n_heads, config.attention_dropout_rate, init),
            attention_residual: Residual::new(config, init),
            feed_forward: feed_forward(config, init),
            feed_forward_residual: Residual::new(config, init),
        }
    }

    fn forward(&self, x: Tensor<3>, mask: &Mask, pass: &mut Pass) -> Tensor<3> {
        let x = self.attention_residual.around(x, pass, |x, pass| {
            pass.scoped("self_attention", |pass| self.attention.forward(x, mask, pass))
        });
        self.feed_forward_residual.around(x, pass, |x, pass| self.feed_forward.forward(x, pass))
    }
}

fn feed_forward(config: &TransformerConfig, init: &Init) -> FeedForward {
    let (d, d_inner) = (config.d_model, config.d_feed_forward);
    FeedForward::new(d, d_inner, config.activation, config.activation_dropout_rate, init)
}

/// Masked self-attention, attention to the source, and a feed-forward network (Vaswani 2017, figure 1, right).
#[derive(Module, Debug)]
struct DecoderLayer {
    self_attention: SelfAttention,
    self_residual: Residual,
    cross_attention: CrossAttention,
    cross_residual: Residual,
    feed_forward: FeedForward,
    feed_forward_residual: Residual,
}

impl DecoderLayer {
    fn new(config: &TransformerConfig, init: &Init) -> Self {
        let (d, heads, rate) = (config.d_model, config.n_heads, config.attention_dropout_rate);
        Self {
            self_attention: SelfAttention::new(d, heads, rate, init),
            self_residual: Residual::new(config, init),
            cross_attention: CrossAttention::new(d, heads, rate, init),
            cross_residual: Residual::new(config, init),
            feed_forward: feed_forward(config, init),
            feed_forward_residual: Residual::new(config, init),
        }
    }

    /// The sublayers after self-attention, which are the same for a whole sentence and for one step.
    fn after_self_attention(&self, x: Tensor<3>, memory: &KeyValue, mask: &Mask, pass: &mut Pass) -> Tensor<3> {
        let [rows, len, d] = x.dims();
        // The beams of a sentence are queries of one attention: the memory is never repeated.
        let batch = memory.key.dims()[0];
        let x = x.reshape([batch, rows * len / batch, d]);
        let x = self.cross_residual.around(x, pass, |x, pass| {
            pass.scoped("cross_attention", |pass| self.cross_attention.forward(x, memory, mask, pass))
        });
        let x = self.feed_forward_residual.around(x, pass, |x, pass| self.feed_forward.forward(x, pass));
        x.reshape([rows, len, d])
    }
}

/// A Transformer encoder-decoder.
///
/// # Reference
/// Vaswani et al., Attention Is All You Need, 2017. Embeddings are scaled by the square root of `d_model` (section 3.4).
#[derive(Module, Debug)]
pub struct TransformerModel {
    source_embedding: Option<Embedding>,
    target_embedding: Embedding,
    position: Position,
    encoder: Vec<EncoderLayer>,
    encoder_norm: Option<LayerNorm>,
    decoder: Vec<DecoderLayer>,
    decoder_norm: Option<LayerNorm>,
    output: Output,
    #[module(skip)]
    d_model: usize,
    #[module(skip)]
    dropout_rate: f64,
    #[module(skip)]
    max_len: Option<usize>,
}

/// The sources as the decoder's layers see them.
#[derive(Clone, Debug)]
pub struct TransformerMemory {
    layers: Vec<KeyValue>,
    mask: Mask,
}

/// Keys and values of the target so far, for each layer.
#[derive(Clone, Debug)]
pub struct TransformerState {
    layers: Vec<Option<KeyValue>>,
    len: usize,
}

impl Rows for TransformerMemory {
    fn select(&self, rows: &Tensor<1, Int>) -> Self {
        let layers = self.layers.iter().map(|layer| layer.select(rows)).collect();
        Self { layers, mask: self.mask.select(rows) }
    }
}

impl Rows for TransformerState {
    fn select(&self, rows: &Tensor<1, Int>) -> Self {
        let layers = self.layers.iter().map(|layer| layer.as_ref().map(|layer| layer.select(rows))).collect();
        Self { layers, len: self.len }
    }
}

impl TransformerModel {
    fn embed(&self, embedding: &Embedding, ids: Tensor<2, Int>, offset: usize, pass: &mut Pass) -> Tensor<3> {
        let scaled = embedding.forward(ids).mul_scalar((self.d_model as f64).sqrt());
        pass.dropout(self.position.forward(scaled, offset), self.dropout_rate)
    }

    fn logits(&self, x: Tensor<3>) -> Tensor<3> {
        let x = normalized(&self.decoder_norm, x);
        self.output.forward(x, &self.target_embedding)
    }
}

fn normalized(norm: &Option<LayerNorm>, x: Tensor<3>) -> Tensor<3> {
    match norm {
        Some(norm) => norm.forward(x),
        None => x,
    }
}

impl Seq2Seq for TransformerModel {
    type Memory = TransformerMemory;
    type State = TransformerState;

    fn encode(&self, source: &Padded, pass: &mut Pass) -> TransformerMemory {
        let mask = Mask::padding(&source.lengths, source.len(), &source.ids.device());
        let embedding = self.source_embedding.as_ref().unwrap_or(&self.target_embedding);
        let mut x = self.embed(embedding, source.ids.clone(), 0, pass);
        for (i, layer) in self.encoder.iter().enumerate() {
            x = pass.scoped(format_args!("encoder.{i}"), |pass| layer.forward(x, &mask, pass));
        }
        let x = normalized(&self.encoder_norm, x);
        let layers = self.decoder.iter().map(|layer| layer.cross_attention.prepare(x.clone())).collect();
        TransformerMemory { layers, mask }
    }

    fn start(&self, _memory: &TransformerMemory, _n_beams: usize) -> TransformerState {
        TransformerState { layers: vec![None; self.decoder.len()], len: 0 }
    }

    fn step(
        &self,
        previous: Tensor<1, Int>,
        mut state: TransformerState,
        memory: &TransformerMemory,
        pass: &mut Pass,
    ) -> (Tensor<2>, TransformerState) {
        let mut x = self.embed(&self.target_embedding, previous.unsqueeze_dim(1), state.len, pass);
        for (i, layer) in self.decoder.iter().enumerate() {
            x = pass.scoped(format_args!("decoder.{i}"), |pass| {
                let x = layer.self_residual.around(x, pass, |x, pass| {
                    let cache = &mut state.layers[i];
                    pass.scoped("self_attention", |pass| layer.self_attention.step(x, cache, pass))
                });
                layer.after_self_attention(x, &memory.layers[i], &memory.mask, pass)
            });
        }
        state.len += 1;
        (self.logits(x).squeeze_dim(1), state)
    }

    fn forward(&self, source: &Padded, target_input: &Padded, pass: &mut Pass) -> Tensor<3> {
        let memory = self.encode(source, pass);
        // Padding follows the real tokens, so whoever may not see the future does not see padding either.
        let causal = Mask::causal(target_input.len(), &target_input.ids.device());
        let mut x = self.embed(&self.target_embedding, target_input.ids.clone(), 0, pass);
        for (i, layer) in self.decoder.iter().enumerate() {
            x = pass.scoped(format_args!("decoder.{i}"), |pass| {
                let x = layer.self_residual.around(x, pass, |x, pass| {
                    pass.scoped("self_attention", |pass| layer.self_attention.forward(x, &causal, pass))
                });
                layer.after_self_attention(x, &memory.layers[i], &memory.mask, pass)
            });
        }
        self.logits(x)
    }

    fn max_len(&self) -> Option<usize> {
        self.max_len
    }

    fn device(&self) -> Device {
        self.target_embedding.weight.val().device()
    }
}
