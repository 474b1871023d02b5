//! Rotary positions on a GPU: one launch, and one back, where burn's operations take about ten.

use super::cube::unit_for_each;
use super::node::{Kept, node};
use super::{computed, new_of_shape};
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, backend_extension};
use burn::tensor::Tensor;
use burn_cubecl::CubeBackend;
use burn_cubecl::cubecl::{self, prelude::*};
use burn_cubecl::kernel::into_contiguous;

/// Which heads are turned, and which way.
#[derive(Clone, Copy, Debug)]
pub struct Turning {
    /// The first so many of each position.
    n_turned: usize,
    /// 1, or -1 for the way back.
    sign: f32,
}

/// Backends with a kernel that turns.
#[backend_extension(Cube, Fusion: cfg(feature = "fusion"))]
pub trait RotationKernels: Backend {
    /// Each pair of elements turned by its angle.
    #[fusion(meta = |packed, _cosines, _sines, _how| packed.clone())]
    fn turned(
        packed: FloatTensor<Self>,
        cosines: FloatTensor<Self>,
        sines: FloatTensor<Self>,
        how: Turning,
    ) -> FloatTensor<Self>;
}

/// Backends on which that is an operation with gradients.
#[backend_extension(Cube, Fusion: cfg(feature = "fusion"), Autodiff)]
pub trait RotationBackend: Backend {
    /// The same, of which packed alone has a gradient.
    #[fusion(meta = |packed, _cosines, _sines, _how| packed.clone())]
    fn rotated(
        packed: FloatTensor<Self>,
        cosines: FloatTensor<Self>,
        sines: FloatTensor<Self>,
        how: Turning,
    ) -> FloatTensor<Self>;
}

/// [`rotate`](crate::ops::rotate()) by this kernel. None where the tensors are not ones of 32-bit floats on a device that has it.
pub fn rotate(packed: &Tensor<3>, cosines: &Tensor<4>, sines: &Tensor<4>, n_turned: usize) -> Option<Tensor<3>> {
    let ([_, len, width], half) = (packed.dims(), cosines.dims()[3]);
    assert!(
        cosines.dims() == [1, 1, len, half] && sines.dims() == cosines.dims() && 2 * half * n_turned <= width,
        "angles {:?} and {:?} for {n_turned} heads of {:?}",
        cosines.dims(),
        sines.dims(),
        packed.dims()
    );
    let how = Turning { n_turned, sign: 1.0 };
    Some(Tensor::from_dispatch(Dispatch::rotated(computed(packed)?, computed(cosines)?, computed(sines)?, how)))
}

#[derive(Clone, Debug)]
struct Rotation<B: Backend> {
    cosines: FloatTensor<B>,
    sines: FloatTensor<B>,
    how: Turning,
}

impl<B: RotationKernels> Kept<B, 1> for Rotation<B> {
    fn gradients(self, gradient: FloatTensor<B>, _needed: [bool; 1]) -> [Option<FloatTensor<B>>; 1] {
        // The inverse of a rotation is its transpose.
        let back = Turning { sign: -self.how.sign, ..self.how };
        [Some(B::turned(gradient, self.cosines, self.sines, back))]
    }
}

impl<B: RotationKernels, C: CheckpointStrategy> RotationBackend for Autodiff<B, C> {
    fn rotated(
        packed: FloatTensor<Self>,
        cosines: FloatTensor<Self>,
        sines: FloatTensor<Self>,
        how: Turning,
    ) -> FloatTensor<Self> {
        let [(packed, of_packed), (cosines, _), (sines, _)] = [packed, cosines, sines].map(|it| it.into_parts());
        let output = B::turned(packed, cosines.clone(), sines.clone(), how);
        node::<B, C, _, 1>([of_packed], output, Rotation { cosines, sines, how })
    }
}

impl RotationBackend for CubeBackend {
    fn rotated(
        packed: FloatTensor<Self>,
        cosines: FloatTensor<Self>,
        sines: FloatTensor<Self>,
        how: Turning,
    ) -> FloatTensor<Self> {
        Self::turned(packed, cosines, sines, how)
    }
}

impl RotationKernels for CubeBackend {
    fn turned(
        packed: FloatTensor<Self>,
        cosines: FloatTensor<Self>,
        sines: FloatTensor<Self>,
        how: Turning,
    ) -> FloatTensor<Self> {
        let [packed, cosines, sines] = [packed, cosines, sines].map(into_contiguous);
        let [len, width] = [1, 2].map(|axis| packed.meta.shape()[axis]);
        let half = cosines.meta.shape()[3];
        let turned = new_of_shape(&packed);
        let (cube_count, cube_dim) = unit_for_each(packed.meta.shape().num_elements(), &packed.client);
        turn::launch(
            &packed.client.clone(),
            cube_count,
            cube_dim,
            packed.into_buffer_arg(),
            cosines.into_buffer_arg(),
            sines.into_buffer_arg(),
            turned.clone().into_buffer_arg(),
            len,
            width,
            half,
            2 * half * how.n_turned,
            how.sign,
        );
        turned
    }
}

/// Each unit an element, of the first half of a head or of the second, or of what stays as it is.
#[allow(clippy::too_many_arguments)]
#[cube(launch)]
fn turn(
    packed: &[f32],
    cosines: &[f32],
    sines: &[f32],
    turned: &mut [f32],
    len: usize,
    width: usize,
    half: usize,
    n_turned: usize,
    sign: f32,
) {
    let at = ABSOLUTE_POS;
    if at < turned.len() {
        let column = at % width;
        let mut value = packed[at];
        if column < n_turned {
            let angle = (at / width) % len * half + column % half;
            let sine = sign * sines[angle];
            if column % (2 * half) < half {
                value = value * cosines[angle] - packed[at + half] * sine;
            } else {
                value = packed[at - half] * sine + value * cosines[angle];
            }
        }
        turned[at] = value;
    }
}
