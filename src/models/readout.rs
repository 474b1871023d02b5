//! From a decoder's vector to a score for every word.

use crate::layers::linear::{linear_layer, similarity, weight_of};
use crate::layers::{Init, Pass};
use crate::ops::{self, RowLosses, Targets};
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
            Some(projection) => linear_layer(projection, input, pass),
            None => {
                let logits = similarity(input, embedding.expect(HAS_TABLE), pass);
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

    /// The loss of `targets`, where it can be made without the logits of rows that have none; see
    /// [`ops::projected_cross_entropy`].
    pub fn cross_entropy(self, targets: Targets, pass: &Pass) -> RowLosses {
        let (weight, bias) = match &self.output.projection {
            Some(projection) => (weight_of(&projection.weight, false, pass), projection.bias.as_ref()),
            None => {
                let table = self.embedding.expect(HAS_TABLE);
                (weight_of(&table.weight, true, pass), self.output.bias.as_ref())
            }
        };
        ops::projected_cross_entropy(self.input, weight, bias.map(Param::val), targets, pass.body())
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
        if let Some(deep) = &self.deep {
            let bias = deep.bias.as_ref().expect("the layer has a bias").val();
            let (weight, dropout) = (weight_of(&deep.weight, false, pass), pass.next_dropout(rate));
            return ops::deep_output([state, embedded, context], weight, bias, dropout, pass.body());
        }
        let read = if self.with_context { Tensor::cat(vec![state, context], 2) } else { state };
        pass.dropout(read, rate)
    }
}
