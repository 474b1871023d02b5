//! What a program without GPU backends has in place of the kernels.

use super::{Heads, Recurrent, Remembered, Softening, Unrolled};
use crate::kernels::adam::AdamStep;
use crate::kernels::cell::CellKind;
use crate::kernels::cross_entropy::Weighting;
use crate::kernels::dropout::Dropout;
use crate::kernels::linear_recurrence::Gating;
use crate::kernels::matrix_memory::MemoryConfig;
use crate::kernels::recurrence::Reading;
use burn::backend::DispatchTensor;
use burn::tensor::Tensor;

/// None.
pub fn adam_steps(_: &[[Tensor<1>; 4]], _: AdamStep) -> Option<Vec<[Tensor<1>; 3]>> {
    None
}

/// None.
pub fn add_dropped<const D: usize>(_: &Tensor<D>, _: &Tensor<D>, _: Dropout) -> Option<Tensor<D>> {
    None
}

/// None.
pub fn alignment_network(_: &Tensor<3>, _: &Tensor<3>, _: &Tensor<2>) -> Option<Tensor<3>> {
    None
}

/// None.
pub fn attention(
    _: &Tensor<3>,
    _: Option<&Tensor<3>>,
    _: Option<&Tensor<4>>,
    _: Heads,
    _: Softening,
) -> Option<Tensor<3>> {
    None
}

/// None.
pub fn cell_step(
    _: CellKind,
    _: [&Tensor<2>; 3],
    _: Option<&Tensor<2>>,
    _: Option<&Tensor<1>>,
) -> Option<(Tensor<2>, Option<Tensor<2>>)> {
    None
}

/// None.
pub fn convolution(_: &Tensor<3>, _: &Tensor<2>, _: &Tensor<3>) -> Option<Tensor<3>> {
    None
}

/// None.
pub fn cross_entropy(_: &Tensor<3>, _: &[Option<u32>], _: Weighting) -> Option<(Tensor<1>, Tensor<1>)> {
    None
}

/// None.
pub fn dropout<const D: usize>(_: &Tensor<D>, _: Dropout) -> Option<Tensor<D>> {
    None
}

/// None.
pub fn layer_norm<const D: usize>(_: &Tensor<D>, _: &Tensor<1>, _: &Tensor<1>, _: f64) -> Option<Tensor<D>> {
    None
}

/// None.
pub fn rms_norm<const D: usize>(_: &Tensor<D>, _: &Tensor<1>, _: f64) -> Option<Tensor<D>> {
    None
}

/// None.
pub fn likeliest(_: &Tensor<2>, _: usize, _: usize) -> Option<Tensor<2>> {
    None
}

/// None.
pub fn linear<const D: usize>(_: &Tensor<D>, _: &Tensor<2>, _: bool, _: Option<&Tensor<1>>) -> Option<Tensor<D>> {
    None
}

/// None.
pub fn linear_recurrence(
    _: Gating,
    _: &Tensor<3>,
    _: &Tensor<2>,
    _: Option<&Tensor<1>>,
    _: &Reading,
) -> Option<Tensor<3>> {
    None
}

/// None.
pub fn matrix_memory(_: MemoryConfig, _: &Remembered, _: &Reading) -> Option<(Tensor<3>, Tensor<4>)> {
    None
}

/// None.
pub fn norm_of_sum<const D: usize>(
    _: [&Tensor<D>; 2],
    _: Option<Dropout>,
    _: &Tensor<1>,
    _: Option<&Tensor<1>>,
    _: f64,
) -> Option<Tensor<D>> {
    None
}

/// None.
pub fn norm_with_sum<const D: usize>(
    _: [&Tensor<D>; 2],
    _: Option<Dropout>,
    _: &Tensor<1>,
    _: Option<&Tensor<1>>,
    _: f64,
) -> Option<[Tensor<D>; 2]> {
    None
}

/// None.
pub fn one_query(_: &Tensor<3>, _: &Tensor<3>, _: &Tensor<4>, _: Heads, _: Softening) -> Option<Tensor<3>> {
    None
}

/// None.
pub fn product<const D: usize>(_: &Tensor<D>, _: &Tensor<D>) -> Option<Tensor<D>> {
    None
}

/// None.
pub fn rectified_linear<const D: usize>(_: &Tensor<D>, _: &Tensor<2>, _: &Tensor<1>) -> Option<Tensor<D>> {
    None
}

/// None.
pub fn rectify(_: &Tensor<3>, _: &Tensor<1>, _: Option<Dropout>) -> Option<Tensor<3>> {
    None
}

/// None.
pub fn recurrent_layer(_: Recurrent, _: CellKind, _: &Reading) -> Option<Unrolled> {
    None
}

/// None.
pub fn rotate(_: &Tensor<3>, _: &Tensor<4>, _: &Tensor<4>, _: usize) -> Option<Tensor<3>> {
    None
}

/// None.
pub fn softmax(_: &Tensor<4>, _: Option<&Tensor<4>>, _: Softening) -> Option<Tensor<4>> {
    None
}

/// None.
pub fn sums_of_squares(_: &[Tensor<1>]) -> Option<Tensor<1>> {
    None
}

/// None does.
pub fn takes(_: &DispatchTensor) -> bool {
    false
}
