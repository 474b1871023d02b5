//! Rotary positions on packed projections.

use super::named::{Arrays, Flags, Gradient, Gradients, Output, Tensors, Views, named};
use super::operation::{Backward, Body, Keeps, Operation, run};
use crate::backend::gpu;
use crate::kernels::rotation::{self, Angles};
use burn::tensor::Tensor;

named! {
    /// What `Rotate` takes.
    RotateInputs {
        /// `[batch, len, .. d_head]`: heads side by side.
        packed: one 3,
        /// `[1, 1, len, d_head / 2]`.
        cosines: one 4,
        /// `[1, 1, len, d_head / 2]`.
        sines: one 4,
    }
}

/// Turns the first heads of each position.
#[derive(Debug)]
struct Rotate {
    n_turned: usize,
}

/// The first `n_turned` heads of each position turned by its angles, the rest as they are: see
/// [`Rotary`](crate::layers::position::Rotary). Angles have no gradient.
///
/// # Shapes
/// - packed, output: `[batch, len, .. d_head]`
/// - cosines, sines: `[1, 1, len, d_head / 2]`
pub fn rotate(packed: Tensor<3>, cosines: Tensor<4>, sines: Tensor<4>, n_turned: usize, body: Body) -> Tensor<3> {
    run(Rotate { n_turned }, RotateInputs { packed, cosines, sines }, body).output
}

impl Rotate {
    /// Turns forwards, or with `sign` -1 back.
    fn turned(&self, values: &[f32], inputs: &RotateInputs<Views>, sign: f32) -> Vec<f32> {
        let RotateInputs { packed, cosines, sines } = inputs;
        let angles = Angles { cosines: cosines.values, sines: sines.values, half: cosines.shape[3] };
        rotation::rotate(values, packed.shape[2], self.n_turned, angles, sign)
    }
}

impl Operation for Rotate {
    type Inputs = RotateInputs<Tensors>;
    type Outputs = Output<3, Tensors>;
    type Kept = ();

    fn keeps(&self) -> Keeps<Self> {
        Keeps {
            inputs: RotateInputs { packed: false, cosines: true, sines: true },
            outputs: Output::<3, Flags>::none(),
        }
    }

    fn forward(&self, inputs: RotateInputs<Views>) -> (Output<3, Arrays>, ()) {
        (Output::new(inputs.packed.shape, self.turned(inputs.packed.values, &inputs, 1.0)), ())
    }

    fn backward(&self, of: Backward<Self>) -> RotateInputs<Gradients> {
        // The inverse of a rotation is its transpose.
        let turned = || self.turned(of.gradients.output.values, &of.inputs, -1.0);
        RotateInputs {
            packed: Gradient::when(of.needed.packed, turned),
            cosines: Gradient::None,
            sines: Gradient::None,
        }
    }

    fn written(&self, inputs: RotateInputs<Tensors>) -> Output<3, Tensors> {
        let RotateInputs { packed, cosines, sines } = inputs;
        let ([batch, len, width], half) = (packed.dims(), cosines.dims()[3]);
        let (d_turned, d_rest) = (2 * half * self.n_turned, width - 2 * half * self.n_turned);
        let heads = packed.clone().narrow(2, 0, d_turned).reshape([batch, len, self.n_turned, 2 * half]);
        let (first, second) = (heads.clone().narrow(3, 0, half), heads.narrow(3, half, half));
        let [cosines, sines] = [cosines, sines].map(|table| table.swap_dims(1, 2).detach());
        let turned =
            [first.clone() * cosines.clone() - second.clone() * sines.clone(), first * sines + second * cosines];
        let turned = Tensor::cat(turned.into(), 3).reshape([batch, len, d_turned]);
        Output {
            output: if d_rest == 0 { turned } else { Tensor::cat(vec![turned, packed.narrow(2, d_turned, d_rest)], 2) },
        }
    }

    fn on_gpu(&self, inputs: &RotateInputs<Tensors>) -> Option<Output<3, Tensors>> {
        let RotateInputs { packed, cosines, sines } = inputs;
        Some(Output { output: gpu::rotate(packed, cosines, sines, self.n_turned)? })
    }
}
