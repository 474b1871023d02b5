//! The sum of the squares of all gradients: one launch for four, where burn's operations take for each one to square, one or two to sum,
//! and another to put the sums side by side.

use super::cube::sum_of_cube;
use super::{computed_plain, new_of_shape};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Dispatch, backend_extension};
use burn::tensor::Tensor;
use burn_cubecl::CubeBackend;
use burn_cubecl::cubecl::{self, prelude::*};
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;

/// Sums that are kept apart: as many cubes work side by side.
const CUBES: u32 = 64;
/// Units of a cube: a power of two, and no more than every GPU has.
const UNITS: u32 = 256;

/// Backends whose devices sum squares.
#[backend_extension(Cube, Fusion: cfg(feature = "fusion"))]
pub trait SquaresBackend: Backend {
    /// The sums so far, with the squares of some more numbers.
    #[fusion(meta = |sums, _values| sums.clone())]
    fn add_squares(sums: FloatTensor<Self>, values: FloatTensor<Self>) -> FloatTensor<Self>;

    /// The same of four tensors.
    #[fusion(meta = |sums, _a, _b, _c, _d| sums.clone())]
    fn add_squares_of_four(
        sums: FloatTensor<Self>,
        a: FloatTensor<Self>,
        b: FloatTensor<Self>,
        c: FloatTensor<Self>,
        d: FloatTensor<Self>,
    ) -> FloatTensor<Self>;
}

/// Numbers whose sum is that of the squares of all elements of `tensors`. None where there is no tensor, or one that is not of 32-bit
/// floats on a device that has a kernel for it.
pub fn sums_of_squares(tensors: &[Tensor<1>]) -> Option<Tensor<1>> {
    let device = tensors.first()?.device();
    let mut sums = computed_plain(&Tensor::<1>::zeros([CUBES as usize], &device))?;
    let (fours, rest) = tensors.as_chunks();
    for [a, b, c, d] in fours {
        sums = Dispatch::add_squares_of_four(
            sums,
            computed_plain(a)?,
            computed_plain(b)?,
            computed_plain(c)?,
            computed_plain(d)?,
        );
    }
    for tensor in rest {
        sums = Dispatch::add_squares(sums, computed_plain(tensor)?);
    }
    Some(Tensor::from_dispatch(sums))
}

impl SquaresBackend for CubeBackend {
    fn add_squares(sums: FloatTensor<Self>, values: FloatTensor<Self>) -> FloatTensor<Self> {
        launch(sums, [values])
    }

    fn add_squares_of_four(
        sums: FloatTensor<Self>,
        a: FloatTensor<Self>,
        b: FloatTensor<Self>,
        c: FloatTensor<Self>,
        d: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        launch(sums, [a, b, c, d])
    }
}

fn launch<const N: usize>(sums: CubeTensor, tensors: [CubeTensor; N]) -> CubeTensor {
    let sums = into_contiguous(sums);
    let client = sums.client.clone();
    let new = new_of_shape(&sums);
    let mut buffers = SequenceArg::new();
    tensors.into_iter().for_each(|tensor| buffers.push(into_contiguous(tensor).into_buffer_arg()));
    add::launch(
        &client,
        CubeCount::Static(CUBES, 1, 1),
        CubeDim::new_1d(UNITS),
        buffers,
        sums.into_buffer_arg(),
        new.clone().into_buffer_arg(),
    );
    new
}

/// Every unit sums the squares of each so-many-th element, and a cube those of its units, always in the same order.
#[cube(launch)]
fn add(tensors: Sequence<Box<[f32]>>, sums: &[f32], new: &mut [f32]) {
    let n_units = comptime!((CUBES * UNITS) as usize).runtime();
    let mut own = 0.0f32;
    #[unroll]
    for i in 0..tensors.len() {
        let values = tensors.index(i);
        let mut at = ABSOLUTE_POS;
        while at < values.len() {
            own += values[at] * values[at];
            at += n_units;
        }
    }
    let of_cube = sum_of_cube(own, UNITS);
    if UNIT_POS == 0 {
        new[CUBE_POS] = sums[CUBE_POS] + of_cube;
    }
}
