//! Attention of a recurrent decoder over its source, for queries that do not wait for each other.

use super::linear::product_on_gpu;
use super::mask::Mask;
use super::named::{Arrays, Flags, Gradient, Gradients, Output, Tensors, View, Views, named};
use super::operation::{Backward, Body, Keeps, Operation, run};
use crate::backend::gpu::{self, Softening};
use crate::kernels::alignment::{AlignmentScore, Layer};
use burn::tensor::Tensor;

named! {
    /// What `Contexts` takes.
    ContextsInputs {
        /// `[batch, query_len, d_key]`.
        query: one 3,
        /// `[batch, source_len, d_key]`.
        keys: one 3,
        /// `[batch, source_len, d_value]`.
        values: one 3,
        /// The last layer of a score that is a network: `[d_key, 1]`.
        vector: maybe 2,
    }
}

/// Attention over the source for queries that do not wait for each other.
#[derive(Debug)]
struct Contexts {
    score: AlignmentScore,
    mask: Mask,
}

/// The context of every query. See [`Alignment`](crate::layers::attention::alignment::Alignment).
///
/// # Shapes
/// - query: `[batch, query_len, d_key]`
/// - keys: `[batch, source_len, d_key]`
/// - values: `[batch, source_len, d_value]`
/// - vector: `[d_key, 1]`, the last layer of a score that is a network
/// - mask: which positions of each source are real
/// - output: `[batch, query_len, d_value]`
///
/// # Reference
/// Bahdanau 2015, A.1.2, and Luong 2015, equations 7 and 8.
pub fn contexts(
    score: AlignmentScore,
    query: Tensor<3>,
    keys: Tensor<3>,
    values: Tensor<3>,
    vector: Option<Tensor<2>>,
    mask: &Mask,
    body: Body,
) -> Tensor<3> {
    run(Contexts { score, mask: mask.clone() }, ContextsInputs { query, keys, values, vector }, body).output
}

impl Contexts {
    fn on_slices<'a, 'v: 'a>(&self, inputs: &ContextsInputs<Views<'v>>, lengths: Option<&'a [usize]>) -> Layer<'a> {
        let [batch, query_len, _] = inputs.query.shape;
        Layer {
            score: self.score,
            queries: inputs.query.values,
            keys: inputs.keys.values,
            values: inputs.values.values,
            vector: inputs.vector.map(|vector: View<'v, 2>| vector.values).unwrap_or_default(),
            lengths,
            batch,
            query_len,
            source_len: inputs.keys.shape[1],
        }
    }
}

impl Operation for Contexts {
    type Inputs = ContextsInputs<Tensors>;
    type Outputs = Output<3, Tensors>;
    /// The weights: `[batch, query_len, source_len]`.
    type Kept = Vec<f32>;

    fn keeps(&self) -> Keeps<Self> {
        Keeps {
            inputs: ContextsInputs { query: true, keys: true, values: true, vector: Some(true) },
            outputs: Output::<3, Flags>::none(),
        }
    }

    fn forward(&self, inputs: ContextsInputs<Views>) -> (Output<3, Arrays>, Vec<f32>) {
        let ([batch, query_len, _], d_value) = (inputs.query.shape, inputs.values.shape[2]);
        let lengths = self.mask.lengths();
        let [contexts, weights] = self.on_slices(&inputs, lengths.as_deref()).forward();
        (Output::new([batch, query_len, d_value], contexts), weights)
    }

    fn backward(&self, of: Backward<Self>) -> ContextsInputs<Gradients> {
        let lengths = self.mask.lengths();
        let layer = self.on_slices(&of.inputs, lengths.as_deref());
        let found = layer.backward(&of.kept, of.gradients.output.values);
        ContextsInputs {
            query: Gradient::New(found.queries),
            keys: Gradient::New(found.keys),
            values: Gradient::New(found.values),
            vector: of.needed.vector.map(|_| Gradient::New(found.vector)),
        }
    }

    fn written(&self, inputs: ContextsInputs<Tensors>) -> Output<3, Tensors> {
        let ContextsInputs { query, keys, values, vector } = inputs;
        let source = WrittenSource { keys, values, vector, mask: self.mask.clone() };
        Output { output: source.contexts(self.score, query, Body::Written) }
    }

    fn on_gpu(&self, inputs: &ContextsInputs<Tensors>) -> Option<Output<3, Tensors>> {
        let ContextsInputs { query, keys, values, vector } = inputs;
        let (keys, values, vector) = (keys.clone(), values.clone(), vector.clone());
        let source = WrittenSource { keys, values, vector, mask: self.mask.clone() };
        Some(Output { output: source.contexts(self.score, query.clone(), Body::Fused) })
    }
}

/// What is attended to, elsewhere than on slices.
pub(super) struct WrittenSource {
    keys: Tensor<3>,
    values: Tensor<3>,
    vector: Option<Tensor<2>>,
    mask: Mask,
}

impl WrittenSource {
    pub(super) fn new(
        keys: Tensor<3>,
        values: Tensor<3>,
        vector: Option<Tensor<2>>,
        lengths: Option<&[usize]>,
    ) -> Self {
        let [_, source_len, _] = keys.dims();
        let mask = lengths.map_or_else(Mask::none, |lengths| Mask::padding(lengths, source_len, &keys.device()));
        Self { keys, values, vector, mask }
    }

    /// The context of every query: `[batch, query_len, d_key]` to `[batch, query_len, d_value]`. If `body` allows it, by kernels of ours for
    /// a GPU.
    pub(super) fn contexts(&self, score: AlignmentScore, query: Tensor<3>, body: Body) -> Tensor<3> {
        let (scores, scale) = match score {
            AlignmentScore::Dot { scale } => (product_on_gpu(query, self.keys.clone().swap_dims(1, 2), body), scale),
            AlignmentScore::Network => {
                let vector = self.vector.clone().expect("a network has a last layer");
                let by_kernel = match body {
                    Body::Fused => gpu::alignment_network(&query, &self.keys, &vector),
                    Body::Written => None,
                };
                (by_kernel.unwrap_or_else(|| alignment_network(query, self.keys.clone(), vector)), 1.0)
            }
        };
        let scores: Tensor<4> = scores.unsqueeze_dim(1);
        let by_kernel = match body {
            Body::Fused if !self.mask.has_empty_rows() => {
                gpu::softmax(&scores, self.mask.bias(), Softening { scale, dropout: None })
            }
            _ => None,
        };
        let weights = by_kernel.unwrap_or_else(|| {
            let is_scaled = matches!(score, AlignmentScore::Dot { .. });
            self.mask.softmax(if is_scaled { scores.mul_scalar(scale) } else { scores })
        });
        product_on_gpu(weights.squeeze_dim::<3>(1), self.values.clone(), body)
    }
}

/// `v^T tanh(q + k)` for every pair of a projected query and a projected key.
///
/// # Shapes
/// - query: `[batch, query_len, d_attention]`
/// - keys: `[batch, source_len, d_attention]`
/// - vector: `[d_attention, 1]`
/// - output: `[batch, query_len, source_len]`
pub fn alignment_network(query: Tensor<3>, keys: Tensor<3>, vector: Tensor<2>) -> Tensor<3> {
    let [batch, query_len, d_attention] = query.dims();
    let source_len = keys.dims()[1];
    let sums = keys.unsqueeze_dim::<4>(1) + query.unsqueeze_dim::<4>(2);
    let scores = sums.tanh().reshape([batch * query_len * source_len, d_attention]).matmul(vector);
    scores.reshape([batch, query_len, source_len])
}
