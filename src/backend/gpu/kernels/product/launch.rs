//! How a product is cut into tiles, and its launch.

use super::kernel::{DEPTH, Ending, Form, Side, add_parts, multiply, sum_rows};
use super::operand::Operand;
use crate::backend::gpu::kernels::cube::unit_for_each;
use crate::backend::gpu::kernels::{new_like, unused};
use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::cubecl::tf32;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;

/// Outputs of one product from which burn's is faster where it has tensor cores, which round factors to TF32 (on an H200, 2026-11-26: 103 and
/// 108 us at 1024 x 1024 x 1024, 444 and 744 at twice the size).
const MANY: usize = 2 << 20;
/// Cubes that keep the processors of a large GPU busy: an H200 has 132.
const ENOUGH: usize = 128;
/// Rows and columns of a tile, largest first: the larger it is, the less often a factor is read.
const TILES: [[usize; 2]; 3] = [[64, 64], [32, 64], [32, 32]];
/// The least part of an inner axis, and how many cubes are wanted if it can be cut. 512 x 2048 x 512 takes 87 us on that GPU in one part and
/// 62 in four; 512 x 512 x 512 is no faster in two.
const LEAST_PART: usize = 512;
const ENOUGH_IN_PARTS: usize = 512;
/// Cubes along the second and third axis of a grid, by what WebGPU promises.
const LONGEST_AXIS: usize = 65_535;

/// Whether a product is one for [`launch`].
pub(super) fn is_taken(left: &CubeTensor, right: &CubeTensor) -> bool {
    let has_tensor_cores = left.client.properties().supports_type(tf32::elem_type_native());
    let of_matrices = |tensor: &CubeTensor| {
        let shape = tensor.meta.shape();
        let n_matrices: usize = shape[..shape.len() - 2].iter().product();
        (n_matrices, shape[shape.len() - 2], shape[shape.len() - 1])
    };
    let ((n_left, m, _), (n_right, _, n)) = (of_matrices(left), of_matrices(right));
    // Those on the left are one, if one on the right serves all.
    let n_rows = if n_right == 1 { n_left * m } else { m };
    let is_in_grid = n_left.max(n_right) <= LONGEST_AXIS && n_rows <= LONGEST_AXIS * TILES[TILES.len() - 1][0];
    is_in_grid && (!has_tensor_cores || n_rows * n < MANY)
}

/// How the output of a product is cut.
#[derive(Clone, Copy, Debug)]
struct Cut {
    tile: [usize; 2],
    /// Of the inner axis, in each part of it.
    of_part: usize,
    n_parts: usize,
}

impl Cut {
    fn new(n_matrices: usize, [m, k, n]: [usize; 3]) -> Self {
        let n_cubes = |[rows, columns]: [usize; 2]| n_matrices * m.div_ceil(rows) * n.div_ceil(columns);
        let tile = TILES.into_iter().find(|tile| n_cubes(*tile) >= ENOUGH).unwrap_or(TILES[TILES.len() - 1]);
        let n_parts = (ENOUGH_IN_PARTS / n_cubes(tile).max(1)).min(k / LEAST_PART).max(1);
        let of_part = k.div_ceil(n_parts).next_multiple_of(DEPTH).max(DEPTH);
        Self { tile, of_part, n_parts: k.div_ceil(of_part).max(1) }
    }
}

/// `left right`, and what `ending` says with `bias`, which is there unless that is [`Ending::Plain`].
pub(super) fn launch(left: Operand, right: Operand, bias: Option<CubeTensor>, ending: Ending) -> CubeTensor {
    let mut shape = left.tensor.meta.shape().clone();
    let last = shape.len() - 1;
    shape[last] = right.n_columns;
    let left = if right.n_matrices == 1 { left.merged() } else { left };
    let (n_matrices, m, k, n) = (left.n_matrices, left.n_rows, left.n_columns, right.n_columns);
    assert!(
        right.n_rows == k && (right.n_matrices == n_matrices || right.n_matrices == 1),
        "a product of {n_matrices} matrices [{m}, {k}] and {} matrices [{}, {n}]",
        right.n_matrices,
        right.n_rows
    );
    let Cut { tile: [rows, columns], of_part, n_parts } = Cut::new(n_matrices, [m, k, n]);
    let out = new_like(&left.tensor, shape);
    if n_matrices * m * n == 0 {
        return out;
    }
    let client = left.tensor.client.clone();
    let bias = bias.map_or_else(|| unused(&out), into_contiguous);
    let parts = if n_parts == 1 { out.clone() } else { new_like(&out, [n_matrices * n_parts, m, n].into()) };
    let cubes = [n.div_ceil(columns), m.div_ceil(rows), n_matrices * n_parts].map(|n| n as u32);
    let form = Form {
        rows: Side { size: rows, is_along_inner: left.has_rows },
        columns: Side { size: columns, is_along_inner: !right.has_rows },
        is_whole: m.is_multiple_of(rows) && n.is_multiple_of(columns) && k.is_multiple_of(DEPTH) && k > 0,
        ending: if n_parts == 1 { ending } else { Ending::Plain },
    };
    multiply::launch(
        &client,
        CubeCount::Static(cubes[0], cubes[1], cubes[2]),
        CubeDim::new_1d(form.n_units() as u32),
        left.factor(m),
        right.factor(n),
        bias.clone().into_buffer_arg(),
        parts.clone().into_buffer_arg(),
        k,
        of_part,
        n_parts,
        form,
    );
    if n_parts > 1 {
        let (cube_count, cube_dim) = unit_for_each(n_matrices * m * n, &client);
        add_parts::launch(
            &client,
            cube_count,
            cube_dim,
            parts.into_buffer_arg(),
            bias.into_buffer_arg(),
            out.clone().into_buffer_arg(),
            m * n,
            n,
            n_parts,
            ending,
        );
    }
    out
}

/// The sum of all rows: `[m, n]` to `[n]`.
pub(super) fn summed_rows(matrix: CubeTensor) -> CubeTensor {
    let matrix = into_contiguous(matrix);
    let [n_rows, width] = [0, 1].map(|axis| matrix.meta.shape()[axis]);
    let sums = new_like(&matrix, [width].into());
    sum_rows::launch(
        &matrix.client.clone(),
        CubeCount::Static(width.div_ceil(super::kernel::COLUMNS as usize) as u32, 1, 1),
        CubeDim::new_1d(super::kernel::UNITS),
        matrix.into_buffer_arg(),
        sums.clone().into_buffer_arg(),
        n_rows,
        width,
    );
    sums
}
