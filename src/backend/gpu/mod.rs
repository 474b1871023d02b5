//! Kernels of ours for GPUs. Each takes 32-bit floats on a device that compiles it, and says none elsewhere: burn's operations do the same
//! then.

#[cfg(not(any(feature = "wgpu", feature = "cuda")))]
mod absent;
#[cfg(any(feature = "wgpu", feature = "cuda"))]
mod adam;
#[cfg(any(feature = "wgpu", feature = "cuda"))]
mod dropout;
#[cfg(any(feature = "wgpu", feature = "cuda"))]
mod squares;

#[cfg(not(any(feature = "wgpu", feature = "cuda")))]
pub use absent::{adam_step, dropout_factors, sums_of_squares};
#[cfg(any(feature = "wgpu", feature = "cuda"))]
pub use adam::adam_step;
#[cfg(any(feature = "wgpu", feature = "cuda"))]
pub use dropout::dropout_factors;
#[cfg(any(feature = "wgpu", feature = "cuda"))]
pub use squares::sums_of_squares;

/// The numbers of an update that are the same for every element.
#[derive(Clone, Copy, Debug)]
pub struct AdamStep {
    /// Decay of the mean of the gradients, and of that of their squares.
    pub decays: [f32; 2],
    /// What a gradient is multiplied by.
    pub scale: f32,
    /// What the mean gradient is multiplied by: the learning rate, and the correction of the mean.
    pub rate: f32,
    /// What the mean square is multiplied by before its root.
    pub root: f32,
    /// What is left of a weight, without its gradient.
    pub keep: f32,
    /// Added to the root.
    pub epsilon: f32,
}

/// Whether our kernels take the tensor.
#[cfg(any(feature = "wgpu", feature = "cuda"))]
fn is_computed(tensor: &burn::backend::DispatchTensor) -> bool {
    use burn::backend::{DispatchTensorKind, TensorMetadata};
    matches!(tensor.kind, DispatchTensorKind::Cube(_)) && tensor.dtype() == burn::tensor::DType::F32
}
