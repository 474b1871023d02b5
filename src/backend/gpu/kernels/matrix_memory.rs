//! Memories that are matrices, on a GPU, where no gradient is asked for: one launch for all positions, as many as a step of a decoder reads or
//! a whole sentence, where burn's operations take some hundred. Each head of a row is carried from position to position.

use super::cube::{cube_for_each, sum_of_cube};
use super::functions::{logistic, silu, softplus};
use super::{computed_plain, is_roomy, new_like};
use crate::backend::gpu::Remembered;
use crate::kernels::matrix_memory::{GLA_TEMPERATURE, MOST_DECAY, MemoryConfig, Rule, TINY};
use crate::kernels::recurrence::Reading;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Dispatch, backend_extension};
use burn::tensor::Tensor;
use burn_cubecl::CubeBackend;
use burn_cubecl::cubecl::{self, prelude::*};
use burn_cubecl::kernel::into_contiguous;

/// The widest head: a unit holds a number for each of its rows, and a cube has a unit for each of its columns.
const WIDEST_HEAD: usize = 128;

/// What a memory is beside its tensors. Tensors that it does not have are of one element.
#[derive(Clone, Copy, Debug)]
pub struct Remembering {
    config: MemoryConfig,
    is_backward: bool,
    has_lengths: bool,
    has_state: bool,
}

/// Backends that carry a memory through all positions.
#[backend_extension(Cube, Fusion: cfg(feature = "fusion"))]
pub trait MatrixMemoryKernels: Backend {
    /// What is read, `[rows, len, d]`, and the memory after the last position, `[rows, n_heads, d_head, d_value]`.
    #[fusion(meta = |packed, _rates, _decay, _norm, _state, _lengths, how| {
        let of = |shape: burn::tensor::Shape| burn::backend::fusion::custom::TensorSpec::new(shape, packed.dtype);
        let [rows, len, d] = [packed.shape[0], packed.shape[1], packed.shape[2] / how.config.rule.n_packed()];
        let (n_heads, d_head) = (how.config.n_heads, d / how.config.n_heads);
        (of([rows, len, d].into()), of([rows, n_heads, d_head, how.config.rule.d_value(d_head)].into()))
    })]
    fn remembered(
        packed: FloatTensor<Self>,
        rates: FloatTensor<Self>,
        decay: FloatTensor<Self>,
        norm: FloatTensor<Self>,
        state: FloatTensor<Self>,
        lengths: FloatTensor<Self>,
        how: Remembering,
    ) -> (FloatTensor<Self>, FloatTensor<Self>);
}

/// [`matrix_memory`](crate::ops::matrix_memory()) by this kernel. None where a tensor has a graph, where heads are wide, or where the tensors
/// are not ones of 32-bit floats on a device that has it.
pub fn matrix_memory(config: MemoryConfig, memory: &Remembered, reading: &Reading) -> Option<(Tensor<3>, Tensor<4>)> {
    let Remembered { packed, rates, decay, norm, state } = *memory;
    let device = packed.device();
    let [rows, len, width] = packed.dims();
    let MemoryConfig { rule, n_heads, .. } = config;
    let d = width / rule.n_packed();
    let of_rates = if rule == Rule::GatedLinear { d } else { rule.n_rates() * n_heads };
    let of_state = [rows, n_heads, d / n_heads, rule.d_value(d / n_heads)];
    assert!(
        width == rule.n_packed() * d
            && d.is_multiple_of(n_heads)
            && rates.map(Tensor::dims) == (rule != Rule::Linear).then_some([rows, len, of_rates])
            && decay.map(Tensor::dims) == (rule == Rule::GatedDelta).then_some([n_heads])
            && norm.map(Tensor::dims) == (rule != Rule::Linear).then_some([d / n_heads])
            && state.is_none_or(|state| state.dims() == of_state),
        "{rule:?} of {n_heads} heads: {memory:?}"
    );
    let packed = computed_plain(packed)?;
    if rows * len == 0 || d / n_heads > WIDEST_HEAD || !is_roomy(&packed) {
        return None;
    }
    let lengths = reading.cut(len).map(|lengths| Tensor::<1>::from_data(lengths.as_slice(), &device));
    let how = Remembering {
        config,
        is_backward: reading.is_backward,
        has_lengths: lengths.is_some(),
        has_state: state.is_some(),
    };
    let nothing = || Tensor::<1>::empty([1], &device);
    let (read, after) = Dispatch::remembered(
        packed,
        rates.map_or_else(|| computed_plain(&nothing()), computed_plain)?,
        decay.map_or_else(|| computed_plain(&nothing()), computed_plain)?,
        norm.map_or_else(|| computed_plain(&nothing()), computed_plain)?,
        state.map_or_else(|| computed_plain(&nothing()), computed_plain)?,
        computed_plain(&lengths.unwrap_or_else(nothing))?,
        how,
    );
    Some((Tensor::from_dispatch(read), Tensor::from_dispatch(after)))
}

impl MatrixMemoryKernels for CubeBackend {
    fn remembered(
        packed: FloatTensor<Self>,
        rates: FloatTensor<Self>,
        decay: FloatTensor<Self>,
        norm: FloatTensor<Self>,
        state: FloatTensor<Self>,
        lengths: FloatTensor<Self>,
        how: Remembering,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let [packed, rates, decay] = [packed, rates, decay].map(into_contiguous);
        let [norm, state, lengths] = [norm, state, lengths].map(into_contiguous);
        let Remembering { config, is_backward, has_lengths, has_state } = how;
        let MemoryConfig { rule, n_heads, most_replaced, epsilon } = config;
        let [rows, len, width] = [0, 1, 2].map(|axis| packed.meta.shape()[axis]);
        let d = width / rule.n_packed();
        let d_head = d / n_heads;
        let d_value = rule.d_value(d_head);
        let read = new_like(&packed, [rows, len, d].into());
        let after = new_like(&packed, [rows, n_heads, d_head, d_value].into());
        let n_units = d_value.next_power_of_two() as u32;
        remember::launch(
            &packed.client.clone(),
            cube_for_each(rows * n_heads),
            CubeDim::new_1d(n_units),
            packed.into_buffer_arg(),
            rates.into_buffer_arg(),
            decay.into_buffer_arg(),
            norm.into_buffer_arg(),
            state.into_buffer_arg(),
            lengths.into_buffer_arg(),
            read.clone().into_buffer_arg(),
            after.clone().into_buffer_arg(),
            rows * n_heads,
            len,
            n_heads,
            most_replaced as f32,
            epsilon as f32,
            is_backward,
            has_lengths,
            has_state,
            rule,
            d_head,
            n_units,
        );
        (read, after)
    }
}

/// Each cube a head of a row, through all of its positions; each unit a column of the memory, and the element of queries, keys and values
/// that has the same number. The equations are those of [`MatrixMemory`](crate::layers::mixer::MatrixMemory).
// A kernel has no variable without a value: what every branch sets is set before. Outer conditions are decided when it is compiled.
#[allow(clippy::too_many_arguments, clippy::collapsible_if, unused_assignments)]
#[cube(launch)]
fn remember(
    packed: &[f32],
    rates: &[f32],
    decay: &[f32],
    norm: &[f32],
    state: &[f32],
    lengths: &[f32],
    read: &mut [f32],
    after: &mut [f32],
    n: usize,
    len: usize,
    n_heads: usize,
    most_replaced: f32,
    epsilon: f32,
    #[comptime] is_backward: bool,
    #[comptime] has_lengths: bool,
    #[comptime] has_state: bool,
    #[comptime] rule: Rule,
    #[comptime] d_head: usize,
    #[comptime] n_units: u32,
) {
    let own_head = CUBE_POS;
    if own_head < n {
        let row = own_head / n_heads;
        let head = own_head % n_heads;
        let unit = UNIT_POS as usize;
        let width = comptime!(d_head).runtime();
        let d = n_heads * width;
        let n_packed = comptime!(rule.n_packed()).runtime();
        let d_value = comptime!(rule.d_value(d_head)).runtime();
        let tiny = comptime!(TINY as f32).runtime();
        let is_element = unit < width;
        let is_column = unit < d_value;
        let of_state = own_head * width * d_value + unit;

        let mut column = Array::<f32>::new(d_head);
        for i in 0..width {
            column[i] = 0.0f32;
            if comptime!(has_state) {
                if is_column {
                    column[i] = state[of_state + i * d_value];
                }
            }
        }
        let mut queries = Shared::<[f32]>::new_slice(comptime!(n_units as usize));
        let mut keys = Shared::<[f32]>::new_slice(comptime!(n_units as usize));
        let mut kept = Shared::<[f32]>::new_slice(comptime!(n_units as usize));
        let mut answers = Shared::<[f32]>::new_slice(comptime!(n_units as usize));

        for i in 0..len {
            let mut position = i;
            if comptime!(is_backward) {
                position = len - 1 - i;
            }
            let token = row * len + position;
            let at = token * n_packed * d + head * width + unit;
            let mut query = 0.0f32;
            let mut key = 0.0f32;
            let mut value = 0.0f32;
            let mut keeps = 1.0f32;
            let mut rate = 1.0f32;
            if is_element {
                query = packed[at];
                key = packed[at + d];
                value = packed[at + 2 * d];
            }
            if comptime!(rule == Rule::Linear) {
                // elu(x) + 1; the exponential of what is not below zero is not used, and must not overflow.
                query = select(query < 0.0f32, min(query, 0.0f32).exp(), query + 1.0f32);
                key = select(key < 0.0f32, min(key, 0.0f32).exp(), key + 1.0f32);
                value = select(is_element, value, 1.0f32);
            } else if comptime!(rule == Rule::GatedLinear) {
                query /= f32::cast_from(width).sqrt();
                if is_element {
                    let log = -softplus(-rates[token * d + head * width + unit])
                        / comptime!(GLA_TEMPERATURE as f32).runtime();
                    let least = comptime!(MOST_DECAY as f32).runtime();
                    // What is not a number stays so.
                    keeps = select(log < least, least, log).exp();
                }
            } else {
                query = silu(query);
                key = silu(key);
                value = silu(value);
                query /= (sum_of_cube(query * query, n_units) + tiny).sqrt();
                key /= (sum_of_cube(key * key, n_units) + tiny).sqrt();
                let of_rate = token * comptime!(rule.n_rates()).runtime() * n_heads + head;
                rate = most_replaced * logistic(rates[of_rate]);
                if comptime!(rule == Rule::GatedDelta) {
                    keeps = (-decay[head].exp() * softplus(rates[of_rate + n_heads])).exp();
                }
            }
            queries[unit] = query;
            keys[unit] = key;
            kept[unit] = keeps;
            sync_cube();

            let mut is_real = true;
            if comptime!(has_lengths) {
                is_real = f32::cast_from(position) < lengths[row];
            }
            let mut missing = value;
            if comptime!(rule.is_delta()) {
                for i in 0..width {
                    missing -= kept[i] * keys[i] * column[i];
                }
            }
            let written = rate * missing;
            let mut found = 0.0f32;
            for i in 0..width {
                let new = kept[i] * column[i] + keys[i] * written;
                found += queries[i] * new;
                column[i] = select(is_real, new, column[i]);
            }

            let mut answer = found;
            if comptime!(rule == Rule::Linear) {
                answers[unit] = found;
                sync_cube();
                answer = found / (answers[width] + tiny);
            } else {
                let own = select(is_element, found * found, 0.0f32);
                let size = (sum_of_cube(own, n_units) / f32::cast_from(width) + epsilon).sqrt();
                if is_element {
                    answer = found / size * norm[unit];
                    if comptime!(rule.is_gated()) {
                        answer *= silu(packed[at + 3 * d]);
                    }
                }
            }
            if is_element {
                read[token * d + head * width + unit] = select(is_real, answer, 0.0f32);
            }
            // Every unit has read what the next position overwrites.
            sync_cube();
        }
        if is_column {
            for i in 0..width {
                after[of_state + i * d_value] = column[i];
            }
        }
    }
}
