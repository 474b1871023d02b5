//! Back through all positions, without a memory being kept: what the gradients need of it is summed along rows and along columns, each by units
//! that hold such a one.
//!
//! With `S` the memory after a position, `w` what is written, `G` the gradient of `S`, and `'` for what is before the position: the first kernel
//! carries columns of `G` back and finds the gradients `u` of what is read and `v` of `w`. The second carries rows of `S` forwards and
//! finds those of queries, `S u`, and a part of those of keys. The third carries rows of `G` back and finds the rest. What a row keeps gets
//! `sum over columns of G' S'`, which no unit can compute, since `G'` is there on the way back and `S'` on the way forwards; but from one position
//! to the one before it changes by `q (S u) - k (G w) + k (..)`, which are parts of the gradients of the query and the key (for
//! gated linear attention: Yang et al., *Gated Linear Attention Transformers with Hardware-Efficient Training*, 2024, section 4.2).

mod columns;
mod rows;

use super::super::cube::cube_for_each;
use super::super::{new_like, new_of_shape};
use super::{Output, Remembering};
use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;

/// The gradients, in the order and shapes of [`MatrixMemoryKernels`](super::MatrixMemoryKernels).
pub(super) fn remembered_backward(
    inputs: [CubeTensor; 7],
    gradient: CubeTensor,
    how: Remembering,
    of: Output,
) -> (CubeTensor, CubeTensor, CubeTensor, CubeTensor, CubeTensor) {
    let [packed, rates, decay, norm, state, lengths, answers] = inputs.map(into_contiguous);
    let gradient = into_contiguous(gradient);
    let Remembering { config, form } = how;
    let n_heads = config.n_heads;
    let [rows, len] = [0, 1].map(|axis| packed.meta.shape()[axis]);
    let n = rows * n_heads;
    let (of_packed, of_rates, of_state) = (new_of_shape(&packed), new_of_shape(&rates), new_of_shape(&state));
    let of_decays = new_like(&packed, [rows, n_heads].into());
    let of_norms = new_like(&packed, [n, form.d_head].into());
    // The gradients of what is read and of what is written; those of queries and a part of those of keys; and the sums at the end.
    let between = new_of_shape(&answers);
    let parts = new_like(&packed, [2, rows, len, n_heads * form.d_head].into());
    let ends = new_like(&packed, [n, form.d_head].into());
    let client = packed.client.clone();
    let (cubes, units) = (cube_for_each(n), CubeDim::new_1d(form.n_units()));
    columns::back::launch(
        &client,
        cubes.clone(),
        units,
        packed.clone().into_buffer_arg(),
        rates.clone().into_buffer_arg(),
        decay.clone().into_buffer_arg(),
        norm.into_buffer_arg(),
        lengths.clone().into_buffer_arg(),
        answers.clone().into_buffer_arg(),
        gradient.clone().into_buffer_arg(),
        between.clone().into_buffer_arg(),
        of_packed.clone().into_buffer_arg(),
        of_norms.clone().into_buffer_arg(),
        of_state.clone().into_buffer_arg(),
        n,
        len,
        n_heads,
        config.most_replaced as f32,
        config.epsilon as f32,
        form,
        of,
    );
    rows::forwards::launch(
        &client,
        cubes.clone(),
        units,
        packed.clone().into_buffer_arg(),
        rates.clone().into_buffer_arg(),
        decay.clone().into_buffer_arg(),
        state.into_buffer_arg(),
        lengths.clone().into_buffer_arg(),
        answers.clone().into_buffer_arg(),
        between.clone().into_buffer_arg(),
        gradient.clone().into_buffer_arg(),
        parts.clone().into_buffer_arg(),
        ends.clone().into_buffer_arg(),
        n,
        len,
        n_heads,
        config.most_replaced as f32,
        form,
        of,
    );
    rows::back::launch(
        &client,
        cubes,
        units,
        packed.into_buffer_arg(),
        rates.into_buffer_arg(),
        decay.into_buffer_arg(),
        lengths.into_buffer_arg(),
        answers.into_buffer_arg(),
        between.into_buffer_arg(),
        parts.into_buffer_arg(),
        ends.into_buffer_arg(),
        gradient.into_buffer_arg(),
        of_packed.clone().into_buffer_arg(),
        of_rates.clone().into_buffer_arg(),
        of_decays.clone().into_buffer_arg(),
        n,
        len,
        n_heads,
        config.most_replaced as f32,
        form,
        of,
    );
    (of_packed, of_rates, of_decays, of_norms, of_state)
}
