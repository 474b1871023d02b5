//! The kernels, and the nodes of burn's graph that hold their gradients.

mod adam;
mod alignment;
mod attention;
mod cube;
mod dropout;
mod heads;
mod loss;
mod node;
mod norm;
mod rectifier;
mod recurrence;
mod softmax;
mod squares;

pub use adam::adam_steps;
pub use alignment::alignment_network;
pub use attention::attention;
pub use dropout::{add_dropped, dropout};
pub use loss::cross_entropy;
pub use norm::layer_norm;
pub use rectifier::rectify;
pub use recurrence::{cell_step, recurrent_layer};
pub use softmax::softmax;
pub use squares::sums_of_squares;

use burn::backend::{DispatchTensor, DispatchTensorKind, TensorMetadata};
use burn::tensor::{DType, Shape, Tensor};
use burn_cubecl::ops::numeric::empty_device_contiguous_dtype;
use burn_cubecl::tensor::CubeTensor;

/// Whether our kernels take the tensor.
pub fn takes(tensor: &DispatchTensor) -> bool {
    fn is_cube(kind: &DispatchTensorKind) -> bool {
        match kind {
            DispatchTensorKind::Autodiff(inner) => is_cube(inner),
            DispatchTensorKind::Cube(_) => true,
            #[allow(unreachable_patterns)]
            _ => false,
        }
    }
    is_cube(&tensor.kind) && tensor.dtype() == DType::F32
}

/// The tensor as our kernels take it, if they do.
fn computed<const D: usize>(tensor: &Tensor<D>) -> Option<DispatchTensor> {
    let tensor = tensor.clone().into_dispatch();
    takes(&tensor).then_some(tensor)
}

/// Memory for a tensor of that shape, with what an earlier one has left there.
fn new_like(like: &CubeTensor, shape: Shape) -> CubeTensor {
    let (client, device) = (like.client.clone(), like.device.clone());
    empty_device_contiguous_dtype(client, device, shape, like.dtype)
}

/// Whether a kernel may name as many buffers as those of a recurrent layer do, beside the numbers that all have.
fn is_roomy(tensor: &DispatchTensor) -> bool {
    const BUFFERS: u32 = 14;
    fn of(kind: &DispatchTensorKind) -> u32 {
        match kind {
            DispatchTensorKind::Autodiff(inner) => of(inner),
            DispatchTensorKind::Cube(tensor) => tensor.device().client().properties().hardware.max_bindings,
            #[allow(unreachable_patterns)]
            _ => 0,
        }
    }
    of(&tensor.kind) >= BUFFERS
}
