//! The kernels, and the nodes of burn's graph that hold their gradients.

mod adam;
mod alignment;
mod attention;
mod convolution;
mod cube;
mod dropout;
mod functions;
mod heads;
mod likeliest;
mod linear_recurrence;
mod loss;
mod matrix_memory;
mod node;
mod norm;
mod one_query;
mod product;
mod rectifier;
mod recurrence;
mod rotation;
mod softmax;
mod squares;

pub use adam::adam_steps;
pub use alignment::alignment_network;
pub use attention::attention;
pub use convolution::convolution;
pub use dropout::{add_dropped, dropout};
pub use likeliest::likeliest;
pub use linear_recurrence::linear_recurrence;
pub use loss::cross_entropy;
pub use matrix_memory::matrix_memory;
pub use norm::{layer_norm, norm_of_sum, norm_with_sum, rms_norm};
pub use one_query::one_query;
pub use product::{linear, product};
pub use rectifier::{rectified_linear, rectify};
pub use recurrence::{cell_step, recurrent_layer};
pub use rotation::rotate;
pub use softmax::softmax;
pub use squares::sums_of_squares;

use burn::backend::{DispatchTensor, DispatchTensorKind, TensorMetadata};
use burn::tensor::{DType, Shape, Tensor};
use burn_cubecl::cubecl::client::Client;
use burn_cubecl::ops::numeric::empty_device_contiguous_dtype;
use burn_cubecl::tensor::CubeTensor;

/// Whether our kernels take the tensor: it consists of 32-bit floats on a GPU, and no more of them than 32 bits count.
pub fn takes(tensor: &DispatchTensor) -> bool {
    fn is_cube(kind: &DispatchTensorKind) -> bool {
        match kind {
            DispatchTensorKind::Autodiff(inner) => is_cube(inner),
            DispatchTensorKind::Cube(_) => true,
            #[allow(unreachable_patterns)]
            _ => false,
        }
    }
    is_cube(&tensor.kind) && tensor.dtype() == DType::F32 && are_counted(&tensor.shape())
}

/// Whether the elements of such a tensor are no more than 32 bits count, as the kernels do.
fn are_counted(shape: &[usize]) -> bool {
    shape.iter().product::<usize>() <= u32::MAX as usize
}

/// The tensor as our kernels take it, if they do.
fn computed<const D: usize>(tensor: &Tensor<D>) -> Option<DispatchTensor> {
    let tensor = tensor.clone().into_dispatch();
    takes(&tensor).then_some(tensor)
}

/// The same of a tensor without a graph, for kernels that have no gradients.
fn computed_plain<const D: usize>(tensor: &Tensor<D>) -> Option<DispatchTensor> {
    computed(tensor).filter(|tensor| matches!(tensor.kind, DispatchTensorKind::Cube(_)))
}

/// Memory for a tensor of that shape, with what an earlier one has left there.
fn new_like(like: &CubeTensor, shape: Shape) -> CubeTensor {
    let (client, device) = (like.client.clone(), like.device.clone());
    empty_device_contiguous_dtype(client, device, shape, like.dtype)
}

/// Memory for another tensor of the same shape.
fn new_of_shape(like: &CubeTensor) -> CubeTensor {
    new_like(like, like.meta.shape().clone())
}

/// Memory for what a kernel names and does not use.
fn unused(like: &CubeTensor) -> CubeTensor {
    new_like(like, [1].into())
}

/// Whether a kernel may name as many buffers as the steps of a recurrent layer do.
fn is_roomy(tensor: &DispatchTensor) -> bool {
    const BUFFERS: usize = 12;
    fn of(kind: &DispatchTensorKind) -> usize {
        match kind {
            DispatchTensorKind::Autodiff(inner) => of(inner),
            DispatchTensorKind::Cube(tensor) => room(&tensor.device().client()),
            #[allow(unreachable_patterns)]
            _ => 0,
        }
    }
    of(&tensor.kind) >= BUFFERS
}

/// How many buffers a kernel may name, beside the one of its numbers and of the lengths of the others.
fn room(client: &Client) -> usize {
    (client.properties().hardware.max_bindings as usize).saturating_sub(1)
}
