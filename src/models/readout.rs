//! From a decoder's vector to a score for every word.

use crate::layers::fused::{self, RowLoss};
use crate::layers::{Init, Pass};
use burn::module::{Module, Param};
use burn::nn::{Embedding, Linear};
use burn::tensor::Tensor;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An output that is tied is made where there is a table.
const HAS_TABLE: &str = "words that are scored by their embeddings have some";

/// The last product: a projection of its own, or similarity with the target embeddings.
///
/// # Reference
/// Press and Wolf, Using the Output Embedding to Improve Language Models, 2017, for the shared table.
#[derive(Module, Debug)]
pub struct Output {
    projection: Option<Linear>,
    /// Beside the target embeddings; a projection has its own.
    bias: Option<Param<Tensor<1>>>,
}

impl Output {
    /// `logits = W x + b`.
    pub fn projection(d_input: usize, vocab_size: usize, init: &Init) -> Self {
        Self { projection: Some(init.linear(d_input, vocab_size, 1)), bias: None }
    }

    /// `logits = E x` with the target embeddings `E`.
    pub fn tied() -> Self {
        Self { projection: None, bias: None }
    }

    /// `logits = E x + b`.
    pub fn tied_with_bias(vocab_size: usize, init: &Init) -> Self {
        Self { projection: None, bias: Some(init.constant([vocab_size], 0.0)) }
    }

    /// Whether words are scored by their embeddings.
    pub fn is_tied(&self) -> bool {
        self.projection.is_none()
    }

    /// `embedding` is the table of the target, which a projection does without.
    ///
    /// # Shapes
    /// - input: `[batch, len, d_input]`
    /// - output: `[batch, len, vocab_size]`
    pub fn forward(&self, input: Tensor<3>, embedding: Option<&Embedding>, pass: &Pass) -> Tensor<3> {
        match &self.projection {
            Some(projection) => fused::linear_layer(projection, input, pass),
            None => {
                let logits = fused::similarity(input, embedding.expect(HAS_TABLE), pass);
                match &self.bias {
                    Some(bias) => logits + bias.val().unsqueeze(),
                    None => logits,
                }
            }
        }
    }
}

/// The scores of words before the last product is made: as logits, or on the way to the loss.
#[derive(Clone, Debug)]
pub struct Scores<'a> {
    /// `[batch, len, d_input]`.
    pub(super) input: Tensor<3>,
    pub(super) output: &'a Output,
    pub(super) embedding: Option<&'a Embedding>,
}

impl Scores<'_> {
    /// # Shapes
    /// - output: `[batch, len, vocab_size]`
    pub fn logits(self, pass: &mut Pass) -> Tensor<3> {
        let logits = self.output.forward(self.input, self.embedding, pass);
        pass.record("decoder.logits", || logits.clone());
        logits
    }

    /// The smoothed cross-entropy of `targets` and every row's part in it, made without the logits of rows that have none. For
    /// layers that are fused; see [`fused::projected_cross_entropy`].
    pub fn cross_entropy(
        self,
        targets: Vec<Option<u32>>,
        smoothing: f64,
        scale: f64,
    ) -> (Tensor<1>, Vec<Option<RowLoss>>) {
        let weight = match &self.output.projection {
            Some(projection) => (projection.weight.val(), projection.bias.as_ref().map(|bias| bias.val()), false),
            None => {
                let table = self.embedding.expect(HAS_TABLE);
                (table.weight.val(), self.output.bias.as_ref().map(Param::val), true)
            }
        };
        fused::projected_cross_entropy(self.input, weight, targets, smoothing, scale)
    }
}

/// What a recurrent decoder makes of its state before the last product.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ReadoutConfig {
    /// The state `s_t` alone.
    State {},
    /// State and context side by side, `[s_t; c_t]`.
    StateContext {},
    /// `maxout(U s_t + V y_(t-1) + C c_t)`, Bahdanau 2015, appendix A.2.2.
    DeepOutput {
        /// Width after the maximum over pairs.
        d_maxout: usize,
    },
}

/// The layer of [`ReadoutConfig`].
///
/// # Reference
/// Bahdanau 2015, A.2.2; Goodfellow et al., Maxout Networks, 2013. **Differs from the paper:** the deep output reads the new
/// state `s_t`, which has already seen `y_(t-1)` and `c_t`, instead of `s_(t-1)`.
#[derive(Module, Debug)]
pub struct Readout {
    /// `U`, `V` and `C` in one matrix, for the inputs one below the other.
    deep: Option<Linear>,
    #[module(skip)]
    with_context: bool,
}

impl ReadoutConfig {
    /// Makes the layer and says how wide its output is.
    pub fn init(&self, d_state: usize, d_embedding: usize, d_context: usize, init: &Init) -> (Readout, usize) {
        match self {
            Self::State {} => (Readout { deep: None, with_context: false }, d_state),
            Self::StateContext {} => (Readout { deep: None, with_context: true }, d_state + d_context),
            Self::DeepOutput { d_maxout } => {
                let deep = init.linear(d_state + d_embedding + d_context, 2 * d_maxout, 2);
                (Readout { deep: Some(deep), with_context: true }, *d_maxout)
            }
        }
    }
}

impl Readout {
    /// # Shapes
    /// - state: `[batch, len, d_state]`
    /// - embedded: `[batch, len, d_embedding]`, the previous target words
    /// - context: `[batch, len, d_context]`
    pub fn forward(
        &self,
        state: Tensor<3>,
        embedded: Tensor<3>,
        context: Tensor<3>,
        pass: &mut Pass,
        rate: f64,
    ) -> Tensor<3> {
        let read = match &self.deep {
            Some(deep) if pass.fuses(&state.device()) && !pass.has_own_weight(deep.weight.id) => {
                return fused::deep_output([state, embedded, context], deep, pass.next_dropout(rate));
            }
            Some(deep) => {
                let pairs = fused::linear_layer(deep, Tensor::cat(vec![state, embedded, context], 2), pass);
                let half = pairs.dims()[2] / 2;
                pairs.clone().narrow(2, 0, half).max_pair(pairs.narrow(2, half, half))
            }
            None if self.with_context => Tensor::cat(vec![state, context], 2),
            None => state,
        };
        pass.dropout(read, rate)
    }
}
