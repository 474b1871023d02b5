//! Products of matrices on a GPU.
//!
//! burn's product without tensor cores gives each cube 128 x 128 numbers of the output, so that one of 512 x 512 keeps 16 of a large GPU's 132
//! processors busy, and one with 32 rows fewer. Products of models of usual sizes are of these sizes. Ours takes tiles of 64 x 64 to 32 x 32,
//! whichever fill the machine, and cuts a long inner axis into parts, which are added up in order. Numbers are in `docs/results/speed.md`.

mod kernel;
mod launch;
mod linear;
mod operand;

pub use linear::{linear, product};

use burn::backend::ops::FloatTensorOps;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, TensorMetadata, backend_extension};
use burn_cubecl::CubeBackend;
use burn_cubecl::tensor::CubeTensor;
use kernel::Ending;
use launch::{is_taken, launch};
use operand::Operand;

/// Backends with kernels for products.
#[backend_extension(Cube, Fusion: cfg(feature = "fusion"))]
pub trait ProductKernels: Backend {
    /// `left right`. There are as many matrices on the right as on the left, or one.
    ///
    /// # Shapes
    /// - left: `[.., m, k]`
    /// - right: `[.., k, n]`
    /// - output: `[.., m, n]`
    #[fusion(meta = |left, right| spec::product(left, right))]
    fn multiplied(left: FloatTensor<Self>, right: FloatTensor<Self>) -> FloatTensor<Self>;

    /// [`Self::multiplied`], and `bias` added to every row.
    #[fusion(meta = |left, right, _bias| spec::product(left, right))]
    fn multiplied_and_moved(
        left: FloatTensor<Self>,
        right: FloatTensor<Self>,
        bias: FloatTensor<Self>,
    ) -> FloatTensor<Self>;

    /// The sum of all rows of a matrix.
    #[fusion(meta = |matrix| burn::backend::fusion::custom::TensorSpec::new([matrix.shape[1]].into(), matrix.dtype))]
    fn summed_rows(matrix: FloatTensor<Self>) -> FloatTensor<Self>;
}

/// Shapes of what has yet to be computed.
#[cfg(feature = "fusion")]
pub(super) mod spec {
    use burn::backend::fusion::custom::TensorSpec;

    pub fn product(left: &TensorSpec, right: &TensorSpec) -> TensorSpec {
        let mut shape = left.shape.clone();
        let last = shape.num_dims() - 1;
        shape[last] = right.shape[right.shape.num_dims() - 1];
        TensorSpec::new(shape, left.dtype)
    }
}

impl ProductKernels for CubeBackend {
    fn multiplied(left: FloatTensor<Self>, right: FloatTensor<Self>) -> FloatTensor<Self> {
        if is_taken(&left, &right) {
            return launch(Operand::new(left), Operand::new(right), None, Ending::Plain);
        }
        let right = with_axes_of::<Self>(&left, right);
        Self::float_matmul(left, right)
    }

    fn multiplied_and_moved(
        left: FloatTensor<Self>,
        right: FloatTensor<Self>,
        bias: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        if is_taken(&left, &right) {
            return launch(Operand::new(left), Operand::new(right), Some(bias), Ending::Moved);
        }
        let [right, bias] = [right, bias].map(|tensor| with_axes_of::<Self>(&left, tensor));
        Self::float_add(Self::float_matmul(left, right), bias)
    }

    fn summed_rows(matrix: FloatTensor<Self>) -> FloatTensor<Self> {
        launch::summed_rows(matrix)
    }
}

/// `max(0, left right + bias)`, if this is a product for our kernels.
pub(super) fn rectified(left: &CubeTensor, right: &CubeTensor, bias: &CubeTensor) -> Option<CubeTensor> {
    let launched =
        || launch(Operand::new(left.clone()), Operand::new(right.clone()), Some(bias.clone()), Ending::Rectified);
    is_taken(left, right).then(launched)
}

/// The two last axes in each other's place.
pub(super) fn transposed<B: Backend>(matrices: FloatTensor<B>) -> FloatTensor<B> {
    let rank = matrices.shape().len();
    B::float_swap_dims(matrices, rank - 2, rank - 1)
}

/// All rows as one matrix.
pub(super) fn flat<B: Backend>(rows: FloatTensor<B>) -> FloatTensor<B> {
    let shape = rows.shape();
    let width = shape[shape.len() - 1];
    B::float_reshape(rows, [shape.num_elements() / width.max(1), width].into())
}

/// With as many axes as `other`.
pub(super) fn with_axes_of<B: Backend>(other: &FloatTensor<B>, tensor: FloatTensor<B>) -> FloatTensor<B> {
    let (rank, own) = (other.shape().len(), tensor.shape());
    let shape: Vec<usize> = std::iter::repeat_n(1, rank - own.len()).chain(own.iter().copied()).collect();
    B::float_reshape(tensor, shape.into())
}
