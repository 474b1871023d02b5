//! What a program without GPU backends has in place of the kernels.

use super::AdamStep;
use burn::tensor::Tensor;

/// None.
pub fn adam_step(_: &Tensor<1>, _: &Tensor<1>, _: &Tensor<1>, _: &Tensor<1>, _: AdamStep) -> Option<[Tensor<1>; 3]> {
    None
}

/// None.
pub fn dropout_factors<const D: usize>(_: &Tensor<D>, _: u64, _: u32, _: f32) -> Option<Tensor<D>> {
    None
}

/// None.
pub fn sums_of_squares(_: &[Tensor<1>]) -> Option<Tensor<1>> {
    None
}
