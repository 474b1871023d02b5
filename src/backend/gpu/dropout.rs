//! Dropout on a GPU: which elements are dropped is computed there, bit for bit as on the host, so that no mask is sent.
//!
//! The numbers are those of [`Stream`](crate::random::Stream), which have 64 bits. Integers of 64 bits are missing on some GPUs, so
//! that the kernel works on halves. burn's own `Dropout` draws from a generator of the device, whose state cannot be saved.

use super::is_computed;
use crate::random::{GAMMA, MIX_FACTORS};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Dispatch, backend_extension};
use burn::tensor::Tensor;
use burn_cubecl::CubeBackend;
use burn_cubecl::cubecl::{self, calculate_cube_count_elemwise, prelude::*};
use burn_cubecl::ops::numeric::empty_device_contiguous_dtype;

/// Backends whose devices compute the factors of dropout.
#[backend_extension(Cube, Fusion: cfg(feature = "fusion"))]
pub trait DropoutBackend: Backend {
    /// What each element of a tensor of that shape is multiplied by.
    #[fusion(dtype = like, shape = like)]
    fn dropout_factors(like: FloatTensor<Self>, key: u64, threshold: u32, kept: f32) -> FloatTensor<Self>;
}

/// What the elements of a tensor like `like` are multiplied by: 0 where 32 bits of the stream with that key are below `threshold`,
/// else `kept`. None where the tensor is not one of 32-bit floats on a device that computes them.
pub fn dropout_factors<const D: usize>(like: &Tensor<D>, key: u64, threshold: u32, kept: f32) -> Option<Tensor<D>> {
    let like = if like.is_autodiff() { like.clone().inner() } else { like.clone() };
    let like = like.into_dispatch();
    if !is_computed(&like) {
        return None;
    }
    Some(Tensor::from_dispatch(Dispatch::dropout_factors(like, key, threshold, kept)))
}

impl DropoutBackend for CubeBackend {
    fn dropout_factors(like: FloatTensor<Self>, key: u64, threshold: u32, kept: f32) -> FloatTensor<Self> {
        let (client, shape) = (like.client.clone(), like.meta.shape().clone());
        let len = shape.num_elements();
        let factors = empty_device_contiguous_dtype(client.clone(), like.device.clone(), shape, like.dtype);
        // Each 64 bits decide two elements.
        let units = len.div_ceil(2);
        let cube_dim = CubeDim::new(&client, units);
        let cube_count = calculate_cube_count_elemwise(&client, units, cube_dim);
        write_factors::launch(
            &client,
            cube_count,
            cube_dim,
            factors.clone().into_buffer_arg(),
            key as u32,
            (key >> 32) as u32,
            threshold,
            kept,
        );
        factors
    }
}

/// 64 bits as two halves.
#[derive(CubeType, Clone, Copy)]
struct Wide {
    low: u32,
    high: u32,
}

#[cube(launch)]
fn write_factors(factors: &mut [f32], key_low: u32, key_high: u32, threshold: u32, kept: f32) {
    let first = 2 * ABSOLUTE_POS;
    if first < factors.len() {
        let position = Wide { low: ABSOLUTE_POS as u32, high: 0u32 };
        let key = Wide { low: key_low, high: key_high };
        let bits = mix(plus(key, times(position, GAMMA)));
        factors[first] = select(bits.low < threshold, 0.0f32, kept);
        if first + 1 < factors.len() {
            factors[first + 1] = select(bits.high < threshold, 0.0f32, kept);
        }
    }
}

/// [`random::mix`](crate::random::mix) in halves.
#[cube]
fn mix(z: Wide) -> Wide {
    let z = times(xor_shifted(z, 30u32), comptime!(MIX_FACTORS[0]));
    let z = times(xor_shifted(z, 27u32), comptime!(MIX_FACTORS[1]));
    xor_shifted(z, 31u32)
}

/// `z ^ (z >> n)`, for `n` from 1 to 31.
#[cube]
fn xor_shifted(z: Wide, #[comptime] n: u32) -> Wide {
    let rest = comptime!(32 - n);
    Wide { low: z.low ^ ((z.low >> n) | (z.high << rest)), high: z.high ^ (z.high >> n) }
}

#[cube]
fn plus(a: Wide, b: Wide) -> Wide {
    let low = a.low + b.low;
    Wide { low, high: a.high + b.high + select(low < a.low, 1u32, 0u32) }
}

/// The lower 64 bits of a product.
#[cube]
fn times(a: Wide, #[comptime] factor: u64) -> Wide {
    let low = comptime!(factor as u32).runtime();
    let high = comptime!((factor >> 32) as u32).runtime();
    Wide { low: a.low * low, high: a.low.mul_hi(low) + a.low * high + a.high * low }
}
