//! Dropout on a GPU: which elements are dropped is computed there, bit for bit as on the host, so that no mask is sent, nor kept for the
//! backward pass.
//!
//! The numbers are those of [`Stream`](crate::random::Stream), which have 64 bits. Integers of 64 bits are missing on some GPUs, so
//! that the kernel works on halves. burn's own `Dropout` draws from a generator of the device, whose state cannot be saved.

use super::cube::unit_for_each;
use super::node::{Kept, node};
use super::{computed, new_like};
use crate::kernels::dropout::Dropout;
use crate::random::{GAMMA, MIX_FACTORS};
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, backend_extension};
use burn::tensor::Tensor;
use burn_cubecl::CubeBackend;
use burn_cubecl::cubecl::{self, prelude::*};
use burn_cubecl::kernel::into_contiguous;

/// Backends whose devices drop elements.
#[backend_extension(Cube, Fusion: cfg(feature = "fusion"), Autodiff)]
pub trait DropoutBackend: Backend {
    /// The elements, of which some are zero and the others larger.
    #[fusion(meta = |input, _dropout| input.clone())]
    fn dropped(input: FloatTensor<Self>, dropout: Dropout) -> FloatTensor<Self>;

    /// `around + dropped(through)`.
    #[fusion(meta = |around, _through, _dropout| around.clone())]
    fn sum_with_dropped(around: FloatTensor<Self>, through: FloatTensor<Self>, dropout: Dropout) -> FloatTensor<Self>;
}

/// [`dropout`](fn@crate::ops::dropout) by these kernels. None where the tensor is not one of 32-bit floats on a device that has them.
pub fn dropout<const D: usize>(input: &Tensor<D>, dropout: Dropout) -> Option<Tensor<D>> {
    Some(Tensor::from_dispatch(Dispatch::dropped(computed(input)?, dropout)))
}

/// [`add_dropped`](crate::ops::add_dropped) by these kernels. None where the tensors are not ones of 32-bit floats on a device that has
/// them.
pub fn add_dropped<const D: usize>(around: &Tensor<D>, through: &Tensor<D>, dropout: Dropout) -> Option<Tensor<D>> {
    assert_eq!(around.dims(), through.dims(), "what goes by a layer and what has gone through it");
    Some(Tensor::from_dispatch(Dispatch::sum_with_dropped(computed(around)?, computed(through)?, dropout)))
}

#[derive(Clone, Debug)]
struct Dropped(Dropout);

impl<B: DropoutBackend> Kept<B, 1> for Dropped {
    fn gradients(self, gradient: FloatTensor<B>, _needed: [bool; 1]) -> [Option<FloatTensor<B>>; 1] {
        [Some(B::dropped(gradient, self.0))]
    }
}

/// A sum with what is left after dropout, if there is any.
#[derive(Clone, Debug)]
pub(super) struct Added(pub Option<Dropout>);

impl<B: DropoutBackend> Kept<B, 2> for Added {
    fn gradients(self, gradient: FloatTensor<B>, needed: [bool; 2]) -> [Option<FloatTensor<B>>; 2] {
        let of_through = needed[1].then(|| match self.0 {
            Some(dropout) => B::dropped(gradient.clone(), dropout),
            None => gradient.clone(),
        });
        [Some(gradient), of_through]
    }
}

impl<B: DropoutBackend, C: CheckpointStrategy> DropoutBackend for Autodiff<B, C> {
    fn dropped(input: FloatTensor<Self>, dropout: Dropout) -> FloatTensor<Self> {
        let (input, of_input) = input.into_parts();
        node::<B, C, _, 1>([of_input], B::dropped(input, dropout), Dropped(dropout))
    }

    fn sum_with_dropped(around: FloatTensor<Self>, through: FloatTensor<Self>, dropout: Dropout) -> FloatTensor<Self> {
        let [(around, of_around), (through, of_through)] = [around, through].map(|it| it.into_parts());
        let sum = B::sum_with_dropped(around, through, dropout);
        node::<B, C, _, 2>([of_around, of_through], sum, Added(Some(dropout)))
    }
}

/// Dropout in a kernel.
#[derive(CubeType, CubeLaunch)]
pub(super) struct Dropping {
    /// The halves of its key.
    key_low: u32,
    key_high: u32,
    /// Elements whose bits are below it are dropped.
    threshold: u32,
    /// What the others are multiplied by.
    kept: f32,
}

/// It as the argument of a kernel, which does not read that of no dropout.
pub(super) fn dropping(dropout: Option<Dropout>) -> DroppingLaunch {
    let (key, threshold, kept) =
        dropout.map_or((0, 0, 1.0), |dropout| (dropout.key(), dropout.threshold(), dropout.kept()));
    DroppingLaunch::new(key as u32, (key >> 32) as u32, threshold, kept)
}

impl DropoutBackend for CubeBackend {
    fn dropped(input: FloatTensor<Self>, dropout: Dropout) -> FloatTensor<Self> {
        let input = into_contiguous(input);
        let (client, shape) = (input.client.clone(), input.meta.shape().clone());
        let len = shape.num_elements();
        let output = new_like(&input, shape);
        let (cube_count, cube_dim) = unit_for_each(len, &client);
        drop_elements::launch(
            &client,
            cube_count,
            cube_dim,
            input.into_buffer_arg(),
            output.clone().into_buffer_arg(),
            len,
            dropping(Some(dropout)),
        );
        output
    }

    fn sum_with_dropped(around: FloatTensor<Self>, through: FloatTensor<Self>, dropout: Dropout) -> FloatTensor<Self> {
        let [around, through] = [around, through].map(into_contiguous);
        let (client, shape) = (around.client.clone(), around.meta.shape().clone());
        let len = shape.num_elements();
        let output = new_like(&around, shape);
        let (cube_count, cube_dim) = unit_for_each(len, &client);
        add_elements::launch(
            &client,
            cube_count,
            cube_dim,
            around.into_buffer_arg(),
            through.into_buffer_arg(),
            output.clone().into_buffer_arg(),
            len,
            dropping(Some(dropout)),
        );
        output
    }
}

#[cube(launch)]
fn drop_elements(input: &[f32], output: &mut [f32], len: usize, dropping: Dropping) {
    let at = ABSOLUTE_POS;
    if at < len {
        output[at] = input[at] * factor_at(&dropping, at);
    }
}

#[cube(launch)]
fn add_elements(around: &[f32], through: &[f32], output: &mut [f32], len: usize, dropping: Dropping) {
    let at = ABSOLUTE_POS;
    if at < len {
        output[at] = around[at] + through[at] * factor_at(&dropping, at);
    }
}

/// What the element at a place is multiplied by: each 64 bits decide two elements.
#[cube]
pub(super) fn factor_at(dropping: &Dropping, at: usize) -> f32 {
    let position = Wide { low: (at / 2) as u32, high: 0u32 };
    let key = Wide { low: dropping.key_low, high: dropping.key_high };
    let bits = mix(plus(key, times(position, GAMMA)));
    let half = select(at & 1 == 0, bits.low, bits.high);
    select(half < dropping.threshold, 0.0f32, dropping.kept)
}

/// 64 bits as two halves.
#[derive(CubeType, Clone, Copy)]
struct Wide {
    low: u32,
    high: u32,
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
