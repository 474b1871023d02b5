//! Every operation with inputs of random sizes. The first word of a case is the name of the operation's type.

use super::Leaves;
use burn::tensor::{Device, Int, Tensor, TensorData};
use lookback::kernels::activation::Activation;
use lookback::kernels::alignment::AlignmentScore;
use lookback::kernels::cell::CellKind;
use lookback::kernels::cross_entropy::Weighting;
use lookback::kernels::dropout::Dropout;
use lookback::kernels::linear_recurrence::Gating;
use lookback::kernels::matrix_memory::{MemoryConfig, Rule};
use lookback::kernels::recurrence::Reading;
use lookback::layers::Mask;
use lookback::models::weights::to_vec;
use lookback::ops::steps::CellState;
use lookback::ops::{
    self, Body, CellParameters, HeadSizes, MemoryParameters, Placement, Projected, Rows, StepAttention, Targets, Weight,
};
use lookback::random::{Purpose, Stream};
use proptest::prelude::*;
use std::sync::Arc;

/// The sizes that operations take what they need of.
#[derive(Clone, Debug)]
pub struct Sizes {
    batch: usize,
    len: usize,
    key_len: usize,
    width: usize,
    inner: usize,
    n_key_value_heads: usize,
    group: usize,
    d_head: usize,
    /// Real positions of each sentence, in thousandths of the length.
    lengths: Option<Vec<usize>>,
    is_causal: bool,
    has_bias: bool,
    is_transposed: bool,
    dropout_rate: f64,
    /// Chooses among kinds.
    choice: usize,
}

/// Lengths on both sides of what a block of attention holds (256 queries, 512 keys), widths on both sides of what instructions take.
pub fn sizes() -> impl Strategy<Value = Sizes> {
    let len = prop_oneof![8 => 1usize..12, 1 => 60usize..70, 1 => 254usize..259];
    let key_len = prop_oneof![8 => 1usize..12, 1 => 60usize..70, 1 => 510usize..515];
    let numbers = (1usize..4, len, key_len, 1usize..40, 1usize..40, 1usize..3, 1usize..4, 1usize..6);
    let lengths = prop::option::of(prop::collection::vec(0usize..=1000, 3));
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), prop_oneof![Just(0.0), Just(0.3)], 0usize..60);
    (numbers, lengths, flags).prop_map(|(numbers, lengths, flags)| {
        let (batch, len, key_len, width, inner, n_key_value_heads, group, d_head) = numbers;
        let (is_causal, has_bias, is_transposed, dropout_rate, choice) = flags;
        Sizes {
            batch,
            len,
            key_len,
            width,
            inner,
            n_key_value_heads,
            group,
            d_head,
            lengths,
            is_causal,
            has_bias,
            is_transposed,
            dropout_rate,
            choice,
        }
    })
}

impl Sizes {
    /// One for devices that compile a kernel for every shape.
    pub fn small() -> Self {
        Self {
            batch: 2,
            len: 4,
            key_len: 3,
            width: 6,
            inner: 5,
            n_key_value_heads: 1,
            group: 2,
            d_head: 3,
            lengths: Some(vec![1000, 700, 0]),
            is_causal: false,
            has_bias: true,
            is_transposed: true,
            dropout_rate: 0.3,
            choice: 1,
        }
    }

    /// On both sides of the units that share a row on a GPU, with what its kernels can do without, with other masks, cells, scores and
    /// activations. No row is empty: what has kernels.
    pub fn of_kernels() -> [Self; 6] {
        let small = Self { lengths: None, has_bias: false, is_transposed: false, choice: 0, ..Self::small() };
        let large = Self { batch: 3, len: 70, key_len: 130, width: 200, inner: 90, d_head: 8, ..small.clone() };
        let parts = |parts: [usize; 3]| Some(parts.to_vec());
        [
            Self { is_causal: true, dropout_rate: 0.0, ..small.clone() },
            Self { lengths: parts([1000, 700, 400]), has_bias: true, is_transposed: true, choice: 10, ..small },
            Self { is_causal: true, choice: 20, ..large.clone() },
            Self { lengths: parts([1000, 700, 20]), dropout_rate: 0.0, has_bias: true, choice: 15, ..large.clone() },
            Self { lengths: parts([1000, 300, 20]), is_transposed: true, choice: 34, ..large.clone() },
            Self { lengths: parts([1000, 300, 20]), n_key_value_heads: 2, len: 1, choice: 20, ..large },
        ]
    }

    fn dropout(&self) -> Option<Dropout> {
        (self.dropout_rate > 0.0).then(|| Dropout::new(Stream::new(1, Purpose::Dropout, &[2, 3]), self.dropout_rate))
    }

    fn lengths(&self, len: usize) -> Option<Arc<[usize]>> {
        let parts = self.lengths.as_ref()?;
        Some(parts[..self.batch].iter().map(|part| part * len / 1000).collect())
    }

    /// The same, of sentences that have a word at least.
    fn real_lengths(&self, len: usize) -> Option<Arc<[usize]>> {
        Some(self.lengths(len)?.iter().map(|length| (*length).max(1)).collect())
    }

    fn one_of<T: Copy>(&self, choices: &[T]) -> T {
        choices[self.choice % choices.len()]
    }
}

/// Calls an operation and returns its outputs.
pub type Run = fn(&mut Leaves, &Sizes, Body) -> Vec<Tensor<1>>;

/// Every operation.
pub const CASES: &[(&str, Run)] = &[
    ("Linear", linear),
    ("FeedForward", feed_forward),
    ("Drop", dropout),
    ("AddDropped", add_dropped),
    ("LayerNorm", layer_norm),
    ("RmsNorm", rms_norm),
    ("LayerNorm of sum", layer_norm_of_sum),
    ("LayerNorm with sum", layer_norm_with_sum),
    ("RmsNorm with sum", rms_norm_with_sum),
    ("Embedding", embedding),
    ("Rotate", rotate),
    ("Attention packed", attention_packed),
    ("Attention apart", attention_apart),
    ("CrossEntropy", cross_entropy),
    ("ProjectedCrossEntropy", projected_cross_entropy),
    ("DeepOutput", deep_output),
    ("CellStep", cell_step),
    ("Contexts", contexts),
    ("Layer alone", recurrent_layer),
    ("Layer with attention", attentive_layer),
    ("Recurrence", linear_recurrence),
    ("MatrixMemory", matrix_memory),
    ("Convolution", convolution),
];

fn flat<const D: usize>(tensor: Tensor<D>) -> Tensor<1> {
    let len: usize = tensor.dims().iter().product();
    tensor.reshape([len])
}

fn linear(leaves: &mut Leaves, sizes: &Sizes, body: Body) -> Vec<Tensor<1>> {
    let input = leaves.leaf("input", [sizes.batch, sizes.len, sizes.width], 2.0);
    let shape = if sizes.is_transposed { [sizes.inner, sizes.width] } else { [sizes.width, sizes.inner] };
    let matrix = leaves.leaf("weight", shape, 2.0);
    let bias = sizes.has_bias.then(|| leaves.leaf("bias", [sizes.inner], 2.0));
    let weight = Weight { is_transposed: sizes.is_transposed, ..Weight::plain(matrix) };
    vec![flat(ops::linear(input, weight, bias, body))]
}

fn feed_forward(leaves: &mut Leaves, sizes: &Sizes, body: Body) -> Vec<Tensor<1>> {
    use Activation::{Gelu, GeluTanh, Relu, Silu, Swiglu};
    let activation = sizes.one_of(&[Relu, Gelu, GeluTanh, Silu, Swiglu]);
    let (d_model, d_inner) = (sizes.width, sizes.inner);
    let input = leaves.leaf("input", [sizes.batch, sizes.len, d_model], 4.0);
    let packed = activation.n_packed() * d_inner;
    let inner = (Weight::plain(leaves.leaf("inner", [d_model, packed], 1.0)), leaves.leaf("inner bias", [packed], 1.0));
    let outer =
        (Weight::plain(leaves.leaf("outer", [d_inner, d_model], 1.0)), leaves.leaf("outer bias", [d_model], 1.0));
    vec![flat(ops::feed_forward(input, [inner, outer], activation, sizes.dropout(), body))]
}

fn dropout(leaves: &mut Leaves, sizes: &Sizes, body: Body) -> Vec<Tensor<1>> {
    let input = leaves.leaf("input", [sizes.batch, sizes.len, sizes.width], 2.0);
    let dropout = Dropout::new(Stream::new(1, Purpose::Dropout, &[2]), 0.4);
    vec![flat(ops::dropout(input, dropout, body))]
}

fn add_dropped(leaves: &mut Leaves, sizes: &Sizes, body: Body) -> Vec<Tensor<1>> {
    let shape = [sizes.batch, sizes.len, sizes.width];
    let (around, through) = (leaves.leaf("around", shape, 2.0), leaves.leaf("through", shape, 2.0));
    vec![flat(ops::add_dropped(around, through, sizes.dropout(), body))]
}

fn layer_norm(leaves: &mut Leaves, sizes: &Sizes, body: Body) -> Vec<Tensor<1>> {
    // Of one or two numbers, the gradient is rounding alone.
    let width = sizes.width + 4;
    let input = leaves.leaf("input", [sizes.batch, sizes.len, width], 2.0);
    let (gamma, beta) = (leaves.leaf("gamma", [width], 2.0), leaves.leaf("beta", [width], 2.0));
    vec![flat(ops::layer_norm(input, gamma, beta, 1e-5, body))]
}

fn rms_norm(leaves: &mut Leaves, sizes: &Sizes, body: Body) -> Vec<Tensor<1>> {
    let width = sizes.width + 4;
    let input = leaves.leaf("input", [sizes.batch, sizes.len, width], 2.0);
    vec![flat(ops::rms_norm(input, leaves.leaf("gamma", [width], 2.0), 1e-5, body))]
}

/// What goes around a layer, what has gone through it, a scale and a shift.
fn summands(leaves: &mut Leaves, sizes: &Sizes) -> ([Tensor<3>; 2], Tensor<1>, Tensor<1>) {
    let width = sizes.width + 4;
    let shape = [sizes.batch, sizes.len, width];
    let both = [leaves.leaf("around", shape, 2.0), leaves.leaf("through", shape, 2.0)];
    (both, leaves.leaf("gamma", [width], 2.0), leaves.leaf("beta", [width], 2.0))
}

fn layer_norm_of_sum(leaves: &mut Leaves, sizes: &Sizes, body: Body) -> Vec<Tensor<1>> {
    let (both, gamma, beta) = summands(leaves, sizes);
    vec![flat(ops::norm_of_sum(both, sizes.dropout(), gamma, Some(beta), 1e-5, body))]
}

fn layer_norm_with_sum(leaves: &mut Leaves, sizes: &Sizes, body: Body) -> Vec<Tensor<1>> {
    let (both, gamma, beta) = summands(leaves, sizes);
    ops::norm_with_sum(both, sizes.dropout(), gamma, Some(beta), 1e-5, body).map(flat).to_vec()
}

fn rms_norm_with_sum(leaves: &mut Leaves, sizes: &Sizes, body: Body) -> Vec<Tensor<1>> {
    let (both, gamma, _) = summands(leaves, sizes);
    ops::norm_with_sum(both, sizes.dropout(), gamma, None, 1e-5, body).map(flat).to_vec()
}

fn embedding(leaves: &mut Leaves, sizes: &Sizes, body: Body) -> Vec<Tensor<1>> {
    let (batch, len, n_words) = (sizes.batch, sizes.len, sizes.inner);
    let ids: Vec<i32> = (0..batch * len).map(|i| (i * 7 % n_words) as i32).collect();
    let ids = Tensor::<2, Int>::from_data(TensorData::new(ids, [batch, len]), leaves.device);
    let table = leaves.leaf("table", [n_words, sizes.width], 2.0);
    vec![flat(ops::embedding(ids, table, if sizes.has_bias { 1.5 } else { 1.0 }, body))]
}

fn rotate(leaves: &mut Leaves, sizes: &Sizes, body: Body) -> Vec<Tensor<1>> {
    let (half, n_heads) = (sizes.d_head, sizes.n_key_value_heads + sizes.group);
    let packed = leaves.leaf("packed", [sizes.batch, sizes.len, n_heads * 2 * half], 2.0);
    let table = |value: fn(f32) -> f32| {
        let values: Vec<f32> = (0..sizes.len * half).map(|i| value(i as f32 * 0.3)).collect();
        Tensor::from_data(TensorData::new(values, [1, 1, sizes.len, half]), leaves.device)
    };
    let n_turned = if sizes.has_bias { n_heads } else { sizes.group };
    vec![flat(ops::rotate(packed, table(f32::cos), table(f32::sin), n_turned, body))]
}

fn attention(
    leaves: &mut Leaves,
    sizes: &Sizes,
    projected: Projected,
    [query_len, key_len]: [usize; 2],
    mask: Mask,
    body: Body,
) -> Vec<Tensor<1>> {
    let n_heads = sizes.n_key_value_heads * sizes.group;
    let shape = if sizes.choice.is_multiple_of(2) {
        [1, n_heads, query_len, key_len]
    } else {
        [1, n_heads, 1, query_len + key_len - 1]
    };
    let bias = sizes.has_bias.then(|| leaves.leaf("bias", shape, 3.0));
    let heads = HeadSizes { n_heads, n_key_value_heads: sizes.n_key_value_heads, d_head: sizes.d_head };
    vec![flat(ops::attention(projected, bias, heads, &mask, sizes.dropout(), body))]
}

fn attention_packed(leaves: &mut Leaves, sizes: &Sizes, body: Body) -> Vec<Tensor<1>> {
    let width = sizes.n_key_value_heads * (sizes.group + 2) * sizes.d_head;
    let packed = leaves.leaf("packed", [sizes.batch, sizes.len, width], 6.0);
    let mask = match (sizes.is_causal, sizes.lengths(sizes.len)) {
        (true, _) => Mask::causal(sizes.len, leaves.device),
        (_, Some(lengths)) => Mask::padding(&lengths, sizes.len, leaves.device),
        _ => Mask::none(),
    };
    attention(leaves, sizes, Projected::Packed(packed), [sizes.len; 2], mask, body)
}

fn attention_apart(leaves: &mut Leaves, sizes: &Sizes, body: Body) -> Vec<Tensor<1>> {
    let (len, key_len) = (sizes.len, sizes.key_len);
    let d_key = sizes.n_key_value_heads * sizes.d_head;
    let query = leaves.leaf("query", [sizes.batch, len, sizes.group * d_key], 6.0);
    let key_value = leaves.leaf("key and value", [sizes.batch, key_len, 2 * d_key], 6.0);
    let mask = match sizes.lengths(key_len) {
        Some(lengths) => Mask::padding(&lengths, key_len, leaves.device),
        None => Mask::none(),
    };
    attention(leaves, sizes, Projected::Apart(query, key_value), [len, key_len], mask, body)
}

fn targets(sizes: &Sizes, vocab_size: usize) -> Targets {
    let word = |i: usize| (i % 3 != 1).then_some((i * 5 % vocab_size) as u32);
    let smoothing = if sizes.has_bias { 0.1 } else { 0.0 };
    Targets { words: (0..sizes.batch * sizes.len).map(word).collect(), weighting: Weighting { smoothing, scale: 0.5 } }
}

/// The sums over all rows: smoothed loss, cross-entropy, rows that are correct.
fn sums(rows: Rows, device: &Device) -> Tensor<1> {
    match rows {
        Rows::OnDevice(sums) => sums,
        Rows::Known(rows) => {
            let mut sums = [0.0; 3];
            for row in rows.into_iter().flatten() {
                let parts = [row.smoothed, row.cross_entropy, f64::from(u8::from(row.is_correct))];
                sums.iter_mut().zip(parts).for_each(|(sum, part)| *sum += part);
            }
            Tensor::from_data(TensorData::from(sums.map(|sum| sum as f32)), device)
        }
    }
}

fn cross_entropy(leaves: &mut Leaves, sizes: &Sizes, body: Body) -> Vec<Tensor<1>> {
    let vocab_size = sizes.inner + 1;
    let logits = leaves.leaf("logits", [sizes.batch, sizes.len, vocab_size], 6.0);
    let found = ops::cross_entropy(logits, targets(sizes, vocab_size), body);
    vec![found.loss, sums(found.rows, leaves.device)]
}

fn projected_cross_entropy(leaves: &mut Leaves, sizes: &Sizes, body: Body) -> Vec<Tensor<1>> {
    let (d, vocab_size) = (sizes.width, sizes.inner + 1);
    let input = leaves.leaf("input", [sizes.batch, sizes.len, d], 2.0);
    let shape = if sizes.is_transposed { [vocab_size, d] } else { [d, vocab_size] };
    let weight = Weight { is_transposed: sizes.is_transposed, ..Weight::plain(leaves.leaf("weight", shape, 1.0)) };
    let bias = sizes.has_bias.then(|| leaves.leaf("bias", [vocab_size], 2.0));
    let found = ops::projected_cross_entropy(input, weight, bias, targets(sizes, vocab_size), body);
    vec![found.loss, sums(found.rows, leaves.device)]
}

fn deep_output(leaves: &mut Leaves, sizes: &Sizes, body: Body) -> Vec<Tensor<1>> {
    let (batch, len) = (sizes.batch, sizes.len);
    let widths = [sizes.width, sizes.inner, sizes.d_head];
    let [state, embedded, context] =
        [0, 1, 2].map(|i| leaves.leaf(["state", "embedded", "context"][i], [batch, len, widths[i]], 2.0));
    let weight = Weight::plain(leaves.leaf("weight", [widths.iter().sum(), 2 * sizes.inner], 1.0));
    let bias = leaves.leaf("bias", [2 * sizes.inner], 1.0);
    vec![flat(ops::deep_output([state, embedded, context], weight, bias, sizes.dropout(), body))]
}

const CELLS: [CellKind; 3] = [CellKind::Gru, CellKind::Lstm, CellKind::Vanilla];

fn start(leaves: &mut Leaves, kind: CellKind, rows: usize, d: usize) -> CellState {
    let hidden = leaves.leaf("start", [rows, d], 1.0);
    CellState { hidden, memory: (kind == CellKind::Lstm).then(|| leaves.leaf("memory", [rows, d], 1.0)) }
}

fn candidate_bias(leaves: &mut Leaves, kind: CellKind, d: usize) -> Option<Tensor<1>> {
    (kind == CellKind::Gru).then(|| leaves.leaf("candidate bias", [d], 1.0))
}

fn cell_step(leaves: &mut Leaves, sizes: &Sizes, body: Body) -> Vec<Tensor<1>> {
    let (kind, rows, d) = (sizes.one_of(&CELLS), sizes.batch * sizes.len, sizes.width);
    let width = kind.n_gates() * d;
    let (projected, recurrent) =
        (leaves.leaf("projected", [rows, width], 2.0), leaves.leaf("recurrent", [rows, width], 2.0));
    let state = start(leaves, kind, rows, d);
    let bias = candidate_bias(leaves, kind, d);
    let CellState { hidden, memory } = ops::cell_step(kind, projected, recurrent, state, bias, body);
    [hidden].into_iter().chain(memory).map(flat).collect()
}

fn score(sizes: &Sizes) -> AlignmentScore {
    sizes.one_of(&[AlignmentScore::Network, AlignmentScore::Dot { scale: 0.7 }])
}

fn contexts(leaves: &mut Leaves, sizes: &Sizes, body: Body) -> Vec<Tensor<1>> {
    let (batch, key_len, d_key, d_value) = (sizes.batch, sizes.key_len, sizes.width, sizes.inner);
    let query = leaves.leaf("query", [batch, sizes.len, d_key], 4.0);
    let (keys, values) =
        (leaves.leaf("keys", [batch, key_len, d_key], 4.0), leaves.leaf("values", [batch, key_len, d_value], 4.0));
    let score = score(sizes);
    let vector = (score == AlignmentScore::Network).then(|| leaves.leaf("vector", [d_key, 1], 4.0));
    let lengths = sizes.real_lengths(key_len);
    let mask = lengths.map_or_else(Mask::none, |lengths| Mask::padding(&lengths, key_len, leaves.device));
    vec![flat(ops::contexts(score, query, keys, values, vector, &mask, body))]
}

/// A layer's inputs. Long sentences would only repeat what short ones do.
fn layer(leaves: &mut Leaves, sizes: &Sizes) -> (Tensor<3>, CellState, CellParameters) {
    let (kind, len, d) = (sizes.one_of(&CELLS), sizes.len.min(12), sizes.width.min(20));
    let width = kind.n_gates() * d;
    let gates = leaves.leaf("gates", [sizes.batch, len, width], 2.0);
    let state = start(leaves, kind, sizes.batch, d);
    let recurrent = leaves.leaf("recurrent", [d, width], 1.0);
    (gates, state, CellParameters { kind, recurrent, candidate_bias: candidate_bias(leaves, kind, d) })
}

fn recurrent_layer(leaves: &mut Leaves, sizes: &Sizes, body: Body) -> Vec<Tensor<1>> {
    let (gates, state, parameters) = layer(leaves, sizes);
    let lengths = sizes.real_lengths(gates.dims()[1]);
    let reading = Reading { is_backward: sizes.is_transposed, lengths };
    let (states, last) = ops::recurrent_layer(gates, state, parameters, reading, body);
    [flat(states), flat(last.hidden)].into_iter().chain(last.memory.map(flat)).collect()
}

fn attentive_layer(leaves: &mut Leaves, sizes: &Sizes, body: Body) -> Vec<Tensor<1>> {
    let (gates, state, parameters) = layer(leaves, sizes);
    let (batch, key_len, d) = (sizes.batch, sizes.key_len.min(12), state.hidden.dims()[1]);
    let (width, d_value) = (gates.dims()[2], sizes.inner.min(20));
    let score = score(sizes);
    let is_network = score == AlignmentScore::Network;
    let d_key = if is_network { sizes.d_head } else { d };
    let attention = StepAttention {
        keys: leaves.leaf("keys", [batch, key_len, d_key], 2.0),
        values: leaves.leaf("values", [batch, key_len, d_value], 2.0),
        lengths: sizes.real_lengths(key_len),
        score,
        network: is_network.then(|| (leaves.leaf("query", [d, d_key], 1.0), leaves.leaf("vector", [d_key, 1], 2.0))),
        placement: match sizes.has_bias {
            true => Placement::Before { context_input: leaves.leaf("context input", [d_value, width], 1.0) },
            false => Placement::After {
                attentional: leaves.leaf("attentional", [d_value + d, d], 1.0),
                attentional_bias: leaves.leaf("attentional bias", [d], 1.0),
                feeding: leaves.leaf("feeding", [d, width], 1.0),
            },
        },
    };
    let (states, contexts) = ops::attentive_layer(gates, state, parameters, attention, body);
    vec![flat(states), flat(contexts)]
}

fn linear_recurrence(leaves: &mut Leaves, sizes: &Sizes, body: Body) -> Vec<Tensor<1>> {
    let gating = sizes.one_of(&[Gating::RgLru, Gating::MinGru, Gating::MinLstm, Gating::Ssru]);
    let (batch, len, d) = (sizes.batch, sizes.len.min(70), sizes.width);
    let gates = leaves.leaf("gates", [batch, len, gating.n_gates() * d], 3.0);
    let start = leaves.leaf("start", [batch, d], 1.0);
    // Models begin with decays of 4 to 9.
    let decay = (gating == Gating::RgLru).then(|| leaves.leaf("decay", [d], 2.0).add_scalar(sizes.inner as f64 % 7.0));
    let reading = Reading { is_backward: sizes.is_transposed, lengths: sizes.lengths(len) };
    vec![flat(ops::linear_recurrence(gating, gates, start, decay, reading, body))]
}

fn matrix_memory(leaves: &mut Leaves, sizes: &Sizes, body: Body) -> Vec<Tensor<1>> {
    let rule = sizes.one_of(&[Rule::GatedLinear, Rule::GatedDelta, Rule::Linear, Rule::Delta]);
    let (rows, len, n_heads) = (sizes.batch, sizes.len.min(70), sizes.n_key_value_heads * sizes.group);
    // On both sides of what a strip holds.
    let d_head = if sizes.is_causal { sizes.width } else { sizes.d_head };
    let d = n_heads * d_head;
    let packed = leaves.leaf("packed", [rows, len, rule.n_packed() * d], 3.0);
    let of_each = if rule == Rule::GatedLinear { d } else { n_heads };
    // What gated linear attention keeps has a least, which rates below -80 reach.
    let scale = if rule == Rule::GatedLinear && sizes.has_bias { 120.0 } else { 4.0 };
    let parameters = MemoryParameters {
        rates: (rule != Rule::Linear).then(|| leaves.leaf("rates", [rows, len, rule.n_rates() * of_each], scale)),
        decay: (rule == Rule::GatedDelta).then(|| leaves.leaf("decay", [n_heads], 2.0)),
        norm: (rule != Rule::Linear).then(|| leaves.leaf("norm", [d_head], 1.0)),
    };
    let shape = [rows, n_heads, d_head, rule.d_value(d_head)];
    // Linear attention divides by the sum of weights, which is above zero.
    let state = sizes.has_bias.then(|| match rule {
        Rule::Linear => leaves.leaf("state", shape, 1.0).add_scalar(1.1),
        _ => leaves.leaf("state", shape, 1.0),
    });
    let reading = Reading { is_backward: sizes.is_transposed, lengths: sizes.lengths(len) };
    let most_replaced = if sizes.is_causal { 2.0 } else { 1.0 };
    let config = MemoryConfig { rule, n_heads, most_replaced, epsilon: 1e-5 };
    let (read, state) = ops::matrix_memory(config, packed, parameters, state, reading, body);
    vec![flat(read), flat(state)]
}

fn convolution(leaves: &mut Leaves, sizes: &Sizes, body: Body) -> Vec<Tensor<1>> {
    let (rows, d, width) = (sizes.batch, sizes.width, 2 + sizes.choice % 4);
    let input = leaves.leaf("input", [rows, sizes.len, d], 2.0);
    let weight = leaves.leaf("weight", [width, d], 1.0);
    let past = leaves.leaf("past", [rows, width - 1, d], 2.0);
    let (output, next) = ops::convolution(input, weight, past, body);
    vec![flat(output), flat(next)]
}

/// The outputs of operations for an input in which one number is `bad`.
pub fn with_bad_number(bad: f32, body: Body, device: &Device) -> Vec<(&'static str, Vec<f32>)> {
    let input = |shape: [usize; 3]| {
        let mut values: Vec<f32> = (0..shape.iter().product()).map(|i| 0.1 * (i % 7) as f32 + 0.1).collect();
        values[0] = bad;
        Tensor::<3>::from_data(TensorData::new(values, shape), device)
    };
    let ones = |shape: [usize; 2]| Tensor::<2>::ones(shape, device);
    let zeros = |len: usize| Tensor::<1>::zeros([len], device);
    let heads = HeadSizes { n_heads: 1, n_key_value_heads: 1, d_head: 2 };
    let mut found = vec![
        ("linear", to_vec(ops::linear(input([1, 2, 3]), Weight::plain(ones([3, 4])), None, body))),
        ("attention, one query", {
            let key_value = input([1, 3, 4]) * 0.0 + 1.0;
            to_vec(ops::attention(
                Projected::Apart(input([1, 1, 2]), key_value),
                None,
                heads,
                &Mask::none(),
                None,
                body,
            ))
        }),
        ("attention, many queries", {
            let mask = Mask::causal(5, device);
            to_vec(ops::attention(Projected::Packed(input([1, 5, 6])), None, heads, &mask, None, body))
        }),
        ("maxout", {
            let parts = [input([1, 1, 2]), Tensor::ones([1, 1, 2], device), Tensor::ones([1, 1, 2], device)];
            to_vec(ops::deep_output(parts, Weight::plain(ones([6, 4])), zeros(4), None, body))
        }),
    ];
    found.push(("layer norm", to_vec(ops::layer_norm(input([1, 2, 5]), zeros(5) + 1.0, zeros(5), 1e-5, body))));
    found.push(("root mean square", to_vec(ops::rms_norm(input([1, 2, 5]), zeros(5) + 1.0, 1e-5, body))));
    let targets = Targets { words: vec![Some(1), Some(2)], weighting: Weighting { smoothing: 0.1, scale: 1.0 } };
    found.push(("cross-entropy", to_vec(ops::cross_entropy(input([1, 2, 3]), targets, body).loss)));
    // Gates that are infinite are open or closed, which is right.
    for kind in CELLS.into_iter().filter(|_| bad.is_nan()) {
        let part = |len: usize| input([1, 2, len]).reshape([2, len]);
        let state = CellState { hidden: ones([2, 3]), memory: (kind == CellKind::Lstm).then(|| ones([2, 3])) };
        let bias = (kind == CellKind::Gru).then(|| zeros(3));
        let width = 3 * kind.n_gates();
        let after = ops::cell_step(kind, part(width), Tensor::ones([2, width], device), state, bias, body);
        found.push(("cell", to_vec(after.hidden)));
    }
    for activation in [Activation::Relu, Activation::Gelu, Activation::GeluTanh, Activation::Silu, Activation::Swiglu] {
        let inner = (Weight::plain(ones([2, 3 * activation.n_packed()])), zeros(3 * activation.n_packed()));
        let outer = (Weight::plain(ones([3, 2])), zeros(2));
        found.push((
            "feed-forward",
            to_vec(ops::feed_forward(input([1, 2, 2]), [inner, outer], activation, None, body)),
        ));
    }
    for rule in [Rule::Linear, Rule::GatedLinear, Rule::Delta, Rule::GatedDelta] {
        // One for each head, or for each element of a key.
        let n_rates = if rule == Rule::GatedLinear { 4 } else { 2 * rule.n_rates() };
        let parameters = MemoryParameters {
            rates: (n_rates > 0).then(|| Tensor::ones([1, 3, n_rates], device)),
            decay: (rule == Rule::GatedDelta).then(|| zeros(2)),
            norm: (rule != Rule::Linear).then(|| Tensor::ones([2], device)),
        };
        let config = MemoryConfig { rule, n_heads: 2, most_replaced: 1.0, epsilon: 1e-5 };
        let packed = input([1, 3, 4 * rule.n_packed()]);
        let (read, _) = ops::matrix_memory(config, packed, parameters, None, Reading::default(), body);
        found.push(("matrix memory", to_vec(read)));
    }
    found
}
