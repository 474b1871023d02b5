//! Scaled dot-product attention in several heads as one operation, from packed projections to heads side by side.

use super::mask::Mask;
use super::named::{Arrays, Gradient, Gradients, Output, Tensors, Views, named};
use super::operation::{Backward, Body, Keeps, Operation, run};
use super::residual::written_dropout;
use crate::backend::gpu::{self, Softening};
use crate::backend::is_host;
use crate::kernels::attention::{Bias, Contexts, Heads, Incoming, Projections};
use crate::kernels::dropout::Dropout;
use burn::tensor::ops::AttentionModuleOptions;
use burn::tensor::{Tensor, module};

/// Weights of one attention that may as well be stored for a moment: 64 MiB.
const FEW_WEIGHTS: usize = 1 << 24;

/// The sizes of an attention in several heads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeadSizes {
    /// Heads of queries.
    pub n_heads: usize,
    /// Heads of keys and values: each serves as many neighbouring heads of queries.
    pub n_key_value_heads: usize,
    /// The width of a head.
    pub d_head: usize,
}

/// Where the queries, keys and values come from.
// One exists at a time.
#[allow(clippy::large_enum_variant)]
#[derive(Debug)]
pub enum Projected {
    /// `[batch, len, (n_heads + 2 n_key_value_heads) d_head]`: queries, keys and values of all heads side by side.
    Packed(Tensor<3>),
    /// `[batch, query_len, n_heads d_head]`, and `[batch, key_len, 2 n_key_value_heads d_head]`: keys and values of all heads
    /// side by side.
    Apart(Tensor<3>, Tensor<3>),
}

named! {
    /// What `Attention` takes.
    AttentionInputs {
        /// Queries, or queries, keys and values.
        query: one 3,
        /// Keys and values, where they come from another sequence.
        key_value: maybe 3,
        /// `[1, n_heads, 1, query_len + key_len - 1]` or `[1, n_heads, query_len, key_len]`.
        bias: maybe 4,
    }
}

#[derive(Debug)]
struct Attention {
    sizes: HeadSizes,
    mask: Mask,
    dropout: Option<Dropout>,
}

/// `dropout(softmax(Q K^T / sqrt(d_head) + bias)) V` in every head, hidden keys left out: nothing is split, turned or merged in memory.
/// On slices, the weights are never stored; the backward pass computes a block of them again from the logarithm of each row's sum. There, a
/// mask that is neither of padding nor causal has the form in burn's operations alone.
///
/// # Panics
/// On slices, if there is no query.
///
/// # Shapes
/// - bias: `[1, n_heads, 1, query_len + key_len - 1]`, a number for each distance, from that of the last query to the first key on;
///   or `[1, n_heads, query_len, key_len]`, one for each pair, whose memory grows with the square of the length
/// - output: `[batch, query_len, n_heads d_head]`
///
/// # Reference
/// Vaswani et al. 2017, equation 1; in blocks as in Dao et al., FlashAttention, 2022. **Differs from the paper:** dropout on the
/// weights, as in tensor2tensor.
pub fn attention(
    projected: Projected,
    bias: Option<Tensor<4>>,
    sizes: HeadSizes,
    mask: &Mask,
    dropout: Option<Dropout>,
    body: Body,
) -> Tensor<3> {
    let (query, key_value) = match projected {
        Projected::Packed(packed) => (packed, None),
        Projected::Apart(query, key_value) => (query, Some(key_value)),
    };
    // Slices are read by lengths; a GPU's kernels add what the mask adds, whatever that hides.
    let is_known = mask.is_none() || mask.is_causal() || mask.lengths().is_some();
    let body = if is_known || !is_host(&query.device()) { body } else { Body::Written };
    run(Attention { sizes, mask: mask.clone(), dropout }, AttentionInputs { query, key_value, bias }, body).output
}

impl Attention {
    /// Whether there is something to be done that burn's attention kernel does not.
    fn is_trained(&self, inputs: &AttentionInputs<Tensors>) -> bool {
        let is_tracked = inputs.query.is_autodiff() || inputs.key_value.as_ref().is_some_and(Tensor::is_autodiff);
        self.dropout.is_some() || is_tracked
    }

    fn split(&self, query: Tensor<3>, key_value: Option<Tensor<3>>) -> Split {
        self.sizes.split(match key_value {
            Some(key_value) => Projected::Apart(query, key_value),
            None => Projected::Packed(query),
        })
    }

    fn heads(&self) -> Heads {
        let HeadSizes { n_heads, n_key_value_heads, d_head } = self.sizes;
        let (lengths, is_causal) = (self.mask.lengths(), self.mask.is_causal());
        Heads { n_heads, n_key_value_heads, d_head, lengths, is_causal, dropout: self.dropout }
    }

    fn projections<'a, 'v: 'a>(&self, heads: &'a Heads, inputs: &AttentionInputs<Views<'v>>) -> Projections<'a> {
        let query = inputs.query;
        let key_value = inputs.key_value.unwrap_or(query);
        Projections {
            heads,
            query: query.values,
            key_value: key_value.values,
            bias: inputs.bias.map(|bias| Bias { values: bias.values, is_by_distance: bias.shape[2] < query.shape[1] }),
            batch: query.shape[0],
            query_len: query.shape[1],
            key_len: key_value.shape[1],
            widths: [query.shape[2], key_value.shape[2]],
            key_start: if inputs.key_value.is_some() { 0 } else { heads.n_heads * heads.d_head },
        }
    }
}

impl Operation for Attention {
    type Inputs = AttentionInputs<Tensors>;
    type Outputs = Output<3, Tensors>;
    /// The logarithm of the sum of each row of weights.
    type Kept = Vec<f32>;

    fn keeps(&self) -> Keeps<Self> {
        let inputs = AttentionInputs { query: true, key_value: Some(true), bias: Some(true) };
        Keeps { inputs, outputs: Output { output: true } }
    }

    fn forward(&self, inputs: AttentionInputs<Views>) -> (Output<3, Arrays>, Vec<f32>) {
        let heads = self.heads();
        let projections = self.projections(&heads, &inputs);
        let Contexts { values, log_sums } = projections.forward();
        let shape = [projections.batch, projections.query_len, heads.n_heads * heads.d_head];
        (Output::new(shape, values), log_sums)
    }

    fn backward(&self, of: Backward<Self>) -> AttentionInputs<Gradients> {
        let heads = self.heads();
        let incoming =
            Incoming { gradient: of.gradients.output.values, output: of.outputs.output.values, log_sums: &of.kept };
        let mut gradients = self.projections(&heads, &of.inputs).backward(&incoming, of.needed.bias == Some(true));
        let bias = std::mem::take(&mut gradients.bias);
        AttentionInputs {
            query: Gradient::when(of.needed.query, || match of.needed.key_value {
                Some(_) => gradients.query(),
                None => gradients.packed(),
            }),
            key_value: of.needed.key_value.map(|needed| Gradient::when(needed, || gradients.key_value())),
            bias: of.needed.bias.map(|needed| Gradient::when(needed, || bias)),
        }
    }

    fn written(&self, inputs: AttentionInputs<Tensors>) -> Output<3, Tensors> {
        let is_trained = self.is_trained(&inputs);
        let AttentionInputs { query, key_value, bias } = inputs;
        let Split { query, key, value } = self.split(query, key_value);
        let context = if !is_trained {
            kernel(query, key, value, &self.mask, bias)
        } else {
            let weights = self.mask.softmax(scores(query, key, bias));
            average(written_dropout(weights, self.dropout.as_ref()), value)
        };
        Output { output: merge_heads(context) }
    }

    fn on_gpu(&self, inputs: &AttentionInputs<Tensors>) -> Option<Output<3, Tensors>> {
        let HeadSizes { n_heads, d_head, .. } = self.sizes;
        let [batch, query_len, _] = inputs.query.dims();
        let key_len = inputs.key_value.as_ref().map_or(query_len, |key_value| key_value.dims()[1]);
        // burn's attention has no gradient of its own; without one, it need not keep the weights.
        let is_kept = self.is_trained(inputs) || batch * n_heads * query_len * key_len <= FEW_WEIGHTS;
        if !is_kept || self.mask.has_empty_rows() {
            return None;
        }
        let AttentionInputs { query, key_value, bias } = inputs;
        let heads = gpu::Heads { n_heads, d_head };
        let how = Softening { scale: scale(d_head) as f32, dropout: self.dropout };
        let of_one = |bias: &Tensor<4>| {
            let key_value = key_value.as_ref().filter(|_| query_len == 1 && !self.is_trained(inputs))?;
            let bias = self.mask.bias().map_or_else(|| bias.clone(), |hiding| bias.clone() + hiding.clone());
            gpu::one_query(query, key_value, &bias, heads, how)
        };
        let output = match bias {
            None => gpu::attention(query, key_value.as_ref(), self.mask.bias(), heads, how)?,
            Some(bias) if let Some(output) = of_one(bias) => output,
            Some(bias) => {
                let split = self.split(query.clone(), key_value.clone());
                merge_heads(by_kernels(&split, &self.mask, bias, self.dropout)?)
            }
        };
        Some(Output { output })
    }
}

/// Queries, keys and values, every head by itself.
///
/// # Shapes
/// - query: `[batch, n_heads, query_len, d_head]`
/// - key, value: `[batch, n_key_value_heads, key_len, d_head]`
#[derive(Clone, Debug)]
pub struct Split {
    /// What is compared with the keys.
    pub query: Tensor<4>,
    /// What is compared with the queries.
    pub key: Tensor<4>,
    /// What is averaged.
    pub value: Tensor<4>,
}

impl HeadSizes {
    /// The width of all queries, and that of all keys, which the values have too.
    pub fn widths(&self) -> [usize; 2] {
        [self.n_heads * self.d_head, self.n_key_value_heads * self.d_head]
    }

    /// Every head by itself.
    pub fn split(&self, projected: Projected) -> Split {
        let [d_query, d_key] = self.widths();
        let (query, key_value) = match projected {
            Projected::Apart(query, key_value) => (query, key_value),
            Projected::Packed(packed) => (packed.clone().narrow(2, 0, d_query), packed.narrow(2, d_query, 2 * d_key)),
        };
        let part = |i: usize| split_heads(key_value.clone().narrow(2, i * d_key, d_key), self.n_key_value_heads);
        Split { query: split_heads(query, self.n_heads), key: part(0), value: part(1) }
    }
}

/// `[batch, len, n_heads * d_head]` to `[batch, n_heads, len, d_head]`.
fn split_heads(input: Tensor<3>, n_heads: usize) -> Tensor<4> {
    let [batch, len, width] = input.dims();
    input.reshape([batch, len, n_heads, width / n_heads]).swap_dims(1, 2)
}

/// `[batch, n_heads, len, d_head]` to `[batch, len, n_heads * d_head]`.
pub fn merge_heads(heads: Tensor<4>) -> Tensor<3> {
    let [batch, n_heads, len, d_head] = heads.dims();
    heads.swap_dims(1, 2).reshape([batch, len, n_heads * d_head])
}

/// `Q K^T / sqrt(d_head) + bias`: the query is scaled, since it is the smaller operand.
///
/// With fewer heads of keys than of queries, those that a head of keys serves are laid one below the other as the queries of one head:
/// nothing is repeated.
///
/// # Shapes
/// - output: `[batch, n_heads, query_len, key_len]`
pub fn scores(query: Tensor<4>, key: Tensor<4>, bias: Option<Tensor<4>>) -> Tensor<4> {
    let d_head = query.dims()[3];
    let scores = products(query.mul_scalar(scale(d_head)), key);
    match bias {
        Some(bias) => {
            let [_, _, query_len, key_len] = scores.dims();
            scores + by_pair(bias, [query_len, key_len])
        }
        None => scores,
    }
}

/// `1 / sqrt(d_head)`.
fn scale(d_head: usize) -> f64 {
    (d_head as f64).powf(-0.5)
}

/// `Q K^T`.
fn products(query: Tensor<4>, key: Tensor<4>) -> Tensor<4> {
    let n_heads = query.dims()[1];
    unfold(fold(query, key.dims()[1]).matmul(key.swap_dims(2, 3)), n_heads)
}

/// The bias of every pair, from either form of it.
///
/// # Shapes
/// - bias: `[1, n_heads, 1, query_len + key_len - 1]` or `[1, n_heads, query_len, key_len]`
/// - output: `[1, n_heads, query_len, key_len]`
pub fn by_pair(bias: Tensor<4>, [query_len, key_len]: [usize; 2]) -> Tensor<4> {
    let [_, n_heads, n_rows, n] = bias.dims();
    if n_rows == query_len {
        return bias;
    }
    // A row begins one distance earlier than the row above it. So the table is copied once for each row, and the copies are cut into rows
    // that are one element shorter than the table.
    let copies = bias.repeat_dim(2, query_len).reshape([1, n_heads, 1, query_len * n]);
    let rows = copies.narrow(3, query_len - 1, query_len * (n - 1)).reshape([1, n_heads, query_len, n - 1]);
    rows.narrow(3, 0, key_len)
}

/// The weighted mean of the values.
pub fn average(weights: Tensor<4>, value: Tensor<4>) -> Tensor<4> {
    let n_heads = weights.dims()[1];
    unfold(fold(weights, value.dims()[1]).matmul(value), n_heads)
}

/// The contexts with a bias, by kernels of ours.
fn by_kernels(of: &Split, mask: &Mask, bias: &Tensor<4>, dropout: Option<Dropout>) -> Option<Tensor<4>> {
    let Split { query, key, value } = of;
    let ([_, n_heads, query_len, d_head], [_, n_folded, key_len, _]) = (query.dims(), key.dims());
    let products = gpu::product(&fold(query.clone(), n_folded), &key.clone().swap_dims(2, 3))?;
    let scores = unfold(products, n_heads) * scale(d_head) + by_pair(bias.clone(), [query_len, key_len]);
    let weights = gpu::softmax(&scores, mask.bias(), Softening { scale: 1.0, dropout })?;
    Some(unfold(gpu::product(&fold(weights, n_folded), value)?, n_heads))
}

/// burn's attention kernel, which never stores the matrix of weights on long input, and has no gradient of its own.
pub fn kernel(query: Tensor<4>, key: Tensor<4>, value: Tensor<4>, mask: &Mask, bias: Option<Tensor<4>>) -> Tensor<4> {
    let ([batch, n_heads, query_len, _], [_, n_folded, key_len, _]) = (query.dims(), key.dims());
    let bias = bias.map(|bias| by_pair(bias, [query_len, key_len]));
    if n_folded == n_heads {
        let hidden = mask.hidden().map(|hidden| hidden.clone().expand([batch, n_heads, query_len, key_len]));
        let options = AttentionModuleOptions { is_causal: mask.is_causal(), ..Default::default() };
        return module::attention(query, key, value, hidden, bias, options);
    }
    // The kernel's causal order counts rows, of which there are now several for each position: the mask says it instead.
    let group = n_heads / n_folded;
    let hidden = mask.every_hidden().map(|hidden| {
        let rows = if hidden.dims()[2] == 1 { hidden.clone() } else { hidden.clone().repeat_dim(2, group) };
        rows.expand([batch, n_folded, group * query_len, key_len])
    });
    let bias = bias.map(|bias| fold(bias, n_folded));
    let context = module::attention(fold(query, n_folded), key, value, hidden, bias, Default::default());
    unfold(context, n_heads)
}

/// `[batch, n_heads, len, width]` to `[batch, n_folded, n_heads / n_folded * len, width]`.
fn fold(heads: Tensor<4>, n_folded: usize) -> Tensor<4> {
    let [batch, n_heads, len, width] = heads.dims();
    if n_folded == n_heads { heads } else { heads.reshape([batch, n_folded, n_heads / n_folded * len, width]) }
}

/// The inverse of [`fold`].
fn unfold(folded: Tensor<4>, n_heads: usize) -> Tensor<4> {
    let [batch, n_folded, len, width] = folded.dims();
    if n_folded == n_heads { folded } else { folded.reshape([batch, n_heads, len * n_folded / n_heads, width]) }
}
