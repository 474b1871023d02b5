//! Back through all positions. No memory is kept for that: two kernels carry its gradient back, and one carries it forwards once more.
//!
//! Let `S` be the memory after a position, `G` its gradient through all that is read later, `q` the query, `u` the gradient of what is
//! found at the position, and `w` what is written there. The gradient of `w` is a sum over rows of `G + q u`; those of the query, of `S u`,
//! and of the key, partly of `(G + q u) w`, are sums over columns. So the first kernel gives each unit a column of `G`, the second a row of
//! `S`, the third a row of `G`.
//!
//! The gradient of the logarithm of what a row keeps is the sum over columns of `G S` of the position before. No unit has both, since `G`
//! is known on the way back and `S` on the way forwards. But that sum can be carried back: from a position to the one before, it grows by
//! the query times its gradient, less the key times the gradient through what is written, plus the key times that through what was taken
//! from the value. (Yang et al., *Gated Linear Attention Transformers with Hardware-Efficient Training*, 2023, do so for gated linear
//! attention.) What rounding adds to it would not fade as the memory does. So the sum is kept within what it can be at most, the largest
//! element of the row of `G` times the sum of the absolute values of that of `S`, which fade.

mod columns;
mod rows;

use super::super::cube::cube_for_each;
use super::super::{new_like, new_of_shape};
use super::position::positions;
use super::{MemoryGradients, MemoryInputs, Output, Remembering};
use burn_cubecl::CubeBackend;
use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;

/// The gradients, from that of one of the outputs.
pub(super) fn remembered_backward(
    inputs: MemoryInputs<CubeBackend>,
    answers: CubeTensor,
    gradient: CubeTensor,
    how: Remembering,
    of: Output,
) -> MemoryGradients<CubeBackend> {
    let inputs = inputs.contiguous();
    let [answers, gradient] = [answers, gradient].map(into_contiguous);
    let packed = &inputs.packed;
    let Remembering { config, form, .. } = how;
    let n_heads = config.n_heads;
    let [rows, len] = [0, 1].map(|axis| packed.meta.shape()[axis]);
    let n = rows * n_heads;
    let found = MemoryGradients::<CubeBackend> {
        packed: new_of_shape(packed),
        rates: new_of_shape(&inputs.rates),
        decays: new_like(packed, [rows, n_heads].into()),
        norms: new_like(packed, [n, form.d_head].into()),
        state: new_of_shape(&inputs.state),
    };
    // The gradients of what is found and written; those of queries, a part of those of keys, and how large rows were; and the sums that are
    // carried back.
    let between = new_of_shape(&answers);
    let parts = new_like(packed, [3, rows, len, n_heads * form.d_head].into());
    let ends = new_like(packed, [n, form.d_head].into());
    let (cubes, units) = (cube_for_each(n), CubeDim::new_1d(form.n_units()));
    columns::back::launch(
        &packed.client,
        cubes.clone(),
        units,
        positions(&inputs, how),
        inputs.norm.clone().into_buffer_arg(),
        answers.clone().into_buffer_arg(),
        gradient.clone().into_buffer_arg(),
        between.clone().into_buffer_arg(),
        found.packed.clone().into_buffer_arg(),
        found.norms.clone().into_buffer_arg(),
        found.state.clone().into_buffer_arg(),
        config.epsilon as f32,
        form,
        of,
    );
    rows::forwards::launch(
        &packed.client,
        cubes.clone(),
        units,
        positions(&inputs, how),
        inputs.state.clone().into_buffer_arg(),
        answers.clone().into_buffer_arg(),
        between.clone().into_buffer_arg(),
        gradient.clone().into_buffer_arg(),
        parts.clone().into_buffer_arg(),
        ends.clone().into_buffer_arg(),
        form,
        of,
    );
    rows::back::launch(
        &packed.client,
        cubes,
        units,
        positions(&inputs, how),
        answers.into_buffer_arg(),
        between.into_buffer_arg(),
        parts.into_buffer_arg(),
        ends.into_buffer_arg(),
        gradient.into_buffer_arg(),
        found.packed.clone().into_buffer_arg(),
        found.rates.clone().into_buffer_arg(),
        found.decays.clone().into_buffer_arg(),
        form,
        of,
    );
    found
}
