//! A matrix that is written and read at every position, in chunks: products of matrices inside a chunk, the state between.

use super::linear::product_on_gpu;
use super::operation::Body;
use crate::kernels::matrix_memory::Rule;
use burn::tensor::{Bool, Device, Tensor, TensorData};

/// Positions of a chunk: what is done inside grows with it for each position, what is done between chunks falls.
const CHUNK: usize = 32;
/// The same where every element of a key has a decay of its own: what decays by `e^-5` a position can be undone over sixteen
/// positions in 32 bits, and over more it cannot.
const VECTOR_CHUNK: usize = 16;

/// Positions of a chunk of a long sequence.
pub fn chunk_of(rule: Rule) -> usize {
    if rule == Rule::GatedLinear { VECTOR_CHUNK } else { CHUNK }
}

/// What a memory is written with and asked.
///
/// # Shapes
/// - query, key: `[rows, n_heads, len, d_key]`
/// - value: `[rows, n_heads, len, d_value]`
/// - log_decay: `[rows, n_heads, len, 1 or d_key]`, at most 0
/// - rate: `[rows, n_heads, len, 1]`, of the delta rule
pub(super) struct Sequence {
    pub query: Tensor<4>,
    pub key: Tensor<4>,
    pub value: Tensor<4>,
    pub log_decay: Option<Tensor<4>>,
    pub rate: Option<Tensor<4>>,
}

/// What every position reads, and the memory after the last.
///
/// For a chunk that begins with memory `S`, with `g_t` the product of its decays up to `t` and `r_t` its rates:
///
/// - what is written, `u_t = r_t (v_t - g_t S^T k_t - sum_(i<t) (g_t / g_i) (k_t . k_i) u_i)`, a triangular system that is
///   solved for all right sides at once; without a rate `u_t = v_t`
/// - what is read, `o_t = g_t S^T q_t + sum_(i<=t) (g_t / g_i) (q_t . k_i) u_i`
/// - the next memory, `g_C S + sum_i (g_C / g_i) k_i u_i^T`
///
/// # Shapes
/// - state, output's second: `[rows, n_heads, d_key, d_value]`
/// - output's first: `[rows, n_heads, len, d_value]`
pub(super) fn read(sequence: Sequence, state: Option<Tensor<4>>, body: Body) -> (Tensor<4>, Tensor<4>) {
    let [rows, n_heads, len, d_key] = sequence.query.dims();
    let d_value = sequence.value.dims()[3];
    let device = sequence.query.device();
    let has_vectors = sequence.log_decay.as_ref().is_some_and(|decay| decay.dims()[3] > 1);
    // One head needs no vector: its decay is a number.
    let longest = if has_vectors { VECTOR_CHUNK } else { CHUNK };
    let size = longest.min(len.next_power_of_two());
    let n = len.div_ceil(size);
    // What is added to fill the last chunk has keys of zero, rates of zero and no decay: it changes nothing.
    let cut = |x: Tensor<4>| {
        let width = x.dims()[3];
        let missing = n * size - len;
        let whole = match missing {
            0 => x,
            _ => Tensor::cat(vec![x, Tensor::zeros([rows, n_heads, missing, width], &device)], 2),
        };
        whole.reshape([rows * n_heads, n, size, width])
    };
    let [query, key, value] = [sequence.query, sequence.key, sequence.value].map(cut);
    let rate = sequence.rate.map(cut);
    let decay = sequence.log_decay.map(|log| Decay::new(cut(log), body));
    let future = triangle(size, &device, |query, key| key > query);
    let masked = |products: Tensor<4>| products.mask_fill(future.clone(), 0.0);
    // Inside every chunk, all of them at once.
    let (asked, kept) = match &decay {
        Some(decay) => (query.clone() * decay.since_start.clone(), key.clone() * decay.until_end.clone()),
        None => (query.clone(), key.clone()),
    };
    let between = |from: Tensor<4>, to: Tensor<4>| match &decay {
        None => product_on_gpu(from, to.swap_dims(2, 3), body),
        Some(decay) if has_vectors => {
            let (from, to) = (from * decay.since_start.clone(), to * decay.before_start.clone());
            product_on_gpu(from, to.swap_dims(2, 3), body)
        }
        Some(decay) => product_on_gpu(from, to.swap_dims(2, 3), body) * decay.between(&future),
    };
    let scores = masked(between(query, key.clone()));
    let (written, corrections) = match rate {
        None => (value, None),
        Some(rate) => {
            let same = masked(between(key.clone(), key.clone()) * rate.clone());
            let now = triangle(size, &device, |query, key| key == query);
            let same = same.mask_fill(now, 0.0).reshape([rows * n_heads * n, size, size]);
            let solved = inverse(same, body);
            let solved = solved.reshape([rows * n_heads, n, size, size]);
            let of_state = match &decay {
                Some(decay) => key * decay.since_start.clone(),
                None => key,
            };
            let written = product_on_gpu(solved.clone(), value * rate.clone(), body);
            (written, Some(product_on_gpu(solved, of_state * rate, body)))
        }
    };
    // From chunk to chunk.
    let mut memory = state.map(|state| state.reshape([rows * n_heads, d_key, d_value]));
    let chunk = |x: &Tensor<4>, i: usize| x.clone().narrow(1, i, 1).squeeze_dim::<3>(1);
    let mut outputs = Vec::with_capacity(n);
    for i in 0..n {
        let mut written = chunk(&written, i);
        if let (Some(memory), Some(corrections)) = (&memory, &corrections) {
            written = written - product_on_gpu(chunk(corrections, i), memory.clone(), body);
        }
        let mut output = product_on_gpu(chunk(&scores, i), written.clone(), body);
        let mut next = product_on_gpu(chunk(&kept, i).swap_dims(1, 2), written, body);
        if let Some(memory) = memory {
            output = output + product_on_gpu(chunk(&asked, i), memory.clone(), body);
            let left = match &decay {
                Some(decay) => memory * chunk(&decay.whole, i).swap_dims(1, 2),
                None => memory,
            };
            next = next + left;
        }
        outputs.push(output);
        memory = Some(next);
    }
    let output = Tensor::cat(outputs, 1).reshape([rows, n_heads, n * size, d_value]).narrow(2, 0, len);
    let memory = memory.expect("a sequence has a position").reshape([rows, n_heads, d_key, d_value]);
    (output, memory)
}

/// What is left of the memory from one position of a chunk to another.
struct Decay {
    /// Logarithms, summed from the start of the chunk.
    total: Tensor<4>,
    /// From the start to each position.
    since_start: Tensor<4>,
    /// The inverse.
    before_start: Tensor<4>,
    /// From each position to the end.
    until_end: Tensor<4>,
    /// From the start to the end.
    whole: Tensor<4>,
}

impl Decay {
    /// From logarithms `[.., n, size, width]`.
    fn new(log: Tensor<4>, body: Body) -> Self {
        let [rows, n, size, _] = log.dims();
        let ones: Vec<f32> = (0..size * size).map(|i| if i % size <= i / size { 1.0 } else { 0.0 }).collect();
        let ones = Tensor::<4>::from_data(TensorData::new(ones, [1, 1, size, size]), &log.device());
        let total = product_on_gpu(ones.expand([rows, n, size, size]), log, body);
        let end = total.clone().narrow(2, size - 1, 1);
        Self {
            since_start: total.clone().exp(),
            before_start: total.clone().neg().exp(),
            until_end: (end.clone() - total.clone()).exp(),
            whole: end.exp(),
            total,
        }
    }

    /// Of each pair of positions, where a position has one number; zero for what is in the future.
    fn between(&self, future: &Tensor<4, Bool>) -> Tensor<4> {
        let difference = self.total.clone() - self.total.clone().swap_dims(2, 3);
        // Into the future the exponential would be above one, and could be infinite.
        difference.mask_fill(future.clone(), -1e9).exp()
    }
}

/// `(I + A)^-1` of matrices `[n, size, size]` for `A` with numbers below its diagonal only, the size a power of two, half by half:
/// `[[B, 0], [C, D]]^-1 = [[B^-1, 0], [-D^-1 C B^-1, D^-1]]`.
///
/// The sum of powers of `-A` would take as many products and no cutting, but its terms grow like binomials where keys repeat,
/// and 32 bits lose what is left of them.
fn inverse(matrices: Tensor<3>, body: Body) -> Tensor<3> {
    let [n, size, _] = matrices.dims();
    let device = matrices.device();
    if size == 1 {
        return Tensor::ones([n, 1, 1], &device);
    }
    let half = size / 2;
    let quarter = |row: usize, column: usize| matrices.clone().narrow(1, row, half).narrow(2, column, half);
    let halves = inverse(Tensor::cat(vec![quarter(0, 0), quarter(half, half)], 0), body);
    let (first, second) = (halves.clone().narrow(0, 0, n), halves.narrow(0, n, n));
    let corner = product_on_gpu(second.clone(), quarter(half, 0), body);
    let corner = product_on_gpu(corner, first.clone(), body).neg();
    let top = Tensor::cat(vec![first, Tensor::zeros([n, half, half], &device)], 2);
    Tensor::cat(vec![top, Tensor::cat(vec![corner, second], 2)], 1)
}

/// The pairs of positions of which `is_in` is true: `[1, 1, size, size]`.
fn triangle(size: usize, device: &Device, is_in: impl Fn(usize, usize) -> bool) -> Tensor<4, Bool> {
    let pairs: Vec<bool> = (0..size * size).map(|i| is_in(i / size, i % size)).collect();
    Tensor::from_data(TensorData::new(pairs, [1, 1, size, size]), device)
}
