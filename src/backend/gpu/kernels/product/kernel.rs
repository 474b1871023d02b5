//! The kernels.

use crate::backend::gpu::kernels::cube::sum_of_column;
use burn_cubecl::cubecl::{self, prelude::*};

/// How much of the inner axis a cube has in its memory at a time.
pub(super) const DEPTH: usize = 16;
const FOURS: usize = DEPTH / 4;
/// Columns that a cube adds up, and its units.
pub(super) const COLUMNS: u32 = 16;
pub(super) const UNITS: u32 = 256;

/// Numbers are moved and multiplied in fours: a unit has four rows and four columns of the output.
type Four = Vector<f32, Const<4>>;

/// A side of a tile, and which way round its operand lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Side {
    /// Its rows or columns.
    pub size: usize,
    /// Whether numbers that are neighbours in the operand's memory are neighbours along the inner axis, or along this side.
    pub is_along_inner: bool,
}

impl Side {
    /// Fours that are neighbours in the operand.
    fn n_neighbours(self) -> usize {
        if self.is_along_inner { FOURS } else { self.size / 4 }
    }

    /// From one row of them to the next in the memory of a cube: one more, so that rows do not begin in the same bank.
    fn width(self) -> usize {
        if self.is_along_inner { FOURS + 1 } else { self.size / 4 }
    }

    /// Fours in the memory of a cube.
    fn n_fours(self) -> usize {
        if self.is_along_inner { self.size * (FOURS + 1) } else { DEPTH * self.size / 4 }
    }
}

/// The `number`-th four of the part of an operand that a cube takes at a time.
// The first of two equal branches is taken while the kernel is compiled, and leaves no condition there.
#[allow(clippy::too_many_arguments, clippy::if_same_then_else)]
#[cube]
fn four_of(
    operand: &[f32],
    start: usize,
    step: usize,
    number: usize,
    first: usize,
    n_first: usize,
    at: usize,
    end: usize,
    #[comptime] side: Side,
    #[comptime] is_whole: bool,
) -> Four {
    let n_neighbours = comptime!(side.n_neighbours());
    let mut row = number / n_neighbours;
    let mut column = 4 * (number % n_neighbours);
    let mut n_rows = n_first;
    let mut n_columns = end;
    if comptime!(side.is_along_inner) {
        row += first;
        column += at;
    } else {
        row += at;
        column += first;
        n_rows = end;
        n_columns = n_first;
    }
    let place = start + row * step + column;
    let mut four = Four::new(0.0f32);
    #[unroll]
    for i in 0..4usize {
        if comptime!(is_whole) {
            four.insert(i, operand[place + i]);
        } else if row < n_rows && column + i < n_columns {
            four.insert(i, operand[place + i]);
        }
    }
    four
}

/// Where that four lies in the memory of a cube.
#[cube]
fn place_of(number: usize, #[comptime] side: Side) -> usize {
    let n_neighbours = comptime!(side.n_neighbours());
    (number / n_neighbours) * comptime!(side.width()) + number % n_neighbours
}

/// Reads what a unit brings of the next part of an operand.
#[allow(clippy::too_many_arguments)]
#[cube]
fn bring(
    into: &mut Array<Four>,
    operand: &[f32],
    start: usize,
    step: usize,
    first: usize,
    n_first: usize,
    at: usize,
    end: usize,
    #[comptime] n: usize,
    #[comptime] n_units: usize,
    #[comptime] side: Side,
    #[comptime] is_whole: bool,
) {
    #[unroll]
    for i in 0..n {
        let number = UNIT_POS as usize + i * n_units;
        into[i] = four_of(operand, start, step, number, first, n_first, at, end, side, is_whole);
    }
}

/// Each cube a tile of the output, or a part of its sums. While the units multiply what lies in the memory of the cube, what comes next is
/// on its way.
#[allow(clippy::too_many_arguments)]
#[cube(launch)]
pub(super) fn multiply(
    left: &[f32],
    right: &[f32],
    bias: &[f32],
    out: &mut [f32],
    m: usize,
    n: usize,
    k: usize,
    left_step: usize,
    right_step: usize,
    left_matrix: usize,
    right_matrix: usize,
    of_part: usize,
    n_parts: usize,
    #[comptime] rows: Side,
    #[comptime] columns: Side,
    #[comptime] is_whole: bool,
    #[comptime] ending: Ending,
) {
    let n_units = comptime!(rows.size * columns.size / 16);
    let n_left = comptime!(rows.size * FOURS / n_units);
    let n_right = comptime!(columns.size * FOURS / n_units);
    let mut lefts = Shared::<[Four]>::new_slice(comptime!(rows.n_fours()));
    let mut rights = Shared::<[Four]>::new_slice(comptime!(columns.n_fours()));
    let unit = UNIT_POS as usize;
    let across = comptime!(columns.size / 4);
    let (unit_row, unit_column) = (unit / across, unit % across);
    let first_row = CUBE_POS_Y as usize * comptime!(rows.size);
    let first_column = CUBE_POS_X as usize * comptime!(columns.size);
    let matrix = CUBE_POS_Z as usize / n_parts;
    let (left_start, right_start) = (matrix * left_matrix, matrix * right_matrix);
    let mut at = (CUBE_POS_Z as usize % n_parts) * of_part;
    let end = min(k, at + of_part);

    let mut sums = Array::<Four>::new(4usize);
    #[unroll]
    for i in 0..4usize {
        sums[i] = Four::new(0.0f32);
    }
    let mut next_left = Array::<Four>::new(n_left);
    let mut next_right = Array::<Four>::new(n_right);
    bring(&mut next_left, left, left_start, left_step, first_row, m, at, end, n_left, n_units, rows, is_whole);
    bring(
        &mut next_right,
        right,
        right_start,
        right_step,
        first_column,
        n,
        at,
        end,
        n_right,
        n_units,
        columns,
        is_whole,
    );
    while at < end {
        // Every unit has read what is about to be overwritten.
        sync_cube();
        #[unroll]
        for i in 0..n_left {
            lefts[place_of(unit + i * n_units, rows)] = next_left[i];
        }
        #[unroll]
        for i in 0..n_right {
            rights[place_of(unit + i * n_units, columns)] = next_right[i];
        }
        sync_cube();
        at += comptime!(DEPTH).runtime();
        if at < end {
            bring(&mut next_left, left, left_start, left_step, first_row, m, at, end, n_left, n_units, rows, is_whole);
            bring(
                &mut next_right,
                right,
                right_start,
                right_step,
                first_column,
                n,
                at,
                end,
                n_right,
                n_units,
                columns,
                is_whole,
            );
        }
        for four in 0..comptime!(FOURS).runtime() {
            // Four of a row or column along the inner axis, or of one place of it along the tile. Columns along the inner axis are dealt out in turn,
            // so that neighbouring units read different banks.
            let mut own_left = Array::<Four>::new(4usize);
            let mut own_right = Array::<Four>::new(4usize);
            #[unroll]
            for i in 0..4usize {
                if comptime!(rows.is_along_inner) {
                    own_left[i] = lefts[(4 * unit_row + i) * comptime!(rows.width()) + four];
                } else {
                    own_left[i] = lefts[(4 * four + i) * comptime!(rows.width()) + unit_row];
                }
                if comptime!(columns.is_along_inner) {
                    own_right[i] = rights[(unit_column + i * across) * comptime!(columns.width()) + four];
                } else {
                    own_right[i] = rights[(4 * four + i) * comptime!(columns.width()) + unit_column];
                }
            }
            #[unroll]
            for inner in 0..4usize {
                let mut of_columns = own_right[inner];
                if comptime!(columns.is_along_inner) {
                    #[unroll]
                    for j in 0..4usize {
                        of_columns.insert(j, own_right[j].extract(inner));
                    }
                }
                #[unroll]
                for i in 0..4usize {
                    if comptime!(rows.is_along_inner) {
                        sums[i] += Four::new(own_left[i].extract(inner)) * of_columns;
                    } else {
                        sums[i] += Four::new(own_left[inner].extract(i)) * of_columns;
                    }
                }
            }
        }
    }
    #[unroll]
    for i in 0..4usize {
        let row = first_row + 4 * unit_row + i;
        if row < m {
            let start = (CUBE_POS_Z as usize * m + row) * n;
            #[unroll]
            for j in 0..4usize {
                let mut column = first_column + 4 * unit_column + j;
                if comptime!(columns.is_along_inner) {
                    column = first_column + unit_column + j * across;
                }
                if column < n {
                    out[start + column] = ended(sums[i].extract(j), bias, column, ending);
                }
            }
        }
    }
}

/// What is done to the sums of products before they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Ending {
    /// Nothing.
    Plain,
    /// A bias is added.
    Moved,
    /// A bias is added, and what is below zero becomes zero.
    Rectified,
}

// A kernel has no variable without a value: what every branch sets is set before.
#[allow(unused_assignments)]
#[cube]
fn ended(sum: f32, bias: &[f32], column: usize, #[comptime] ending: Ending) -> f32 {
    let mut value = sum;
    if comptime!(ending != Ending::Plain) {
        value = sum + bias[column];
    }
    if comptime!(ending == Ending::Rectified) {
        // What is not a number stays so.
        value = select(value <= 0.0f32, 0.0f32, value);
    }
    value
}

/// The sum of the parts of an inner axis.
#[cube(launch)]
pub(super) fn add_parts(
    parts: &[f32],
    bias: &[f32],
    out: &mut [f32],
    size: usize,
    n: usize,
    n_parts: usize,
    #[comptime] ending: Ending,
) {
    if ABSOLUTE_POS < out.len() {
        let mut at = (ABSOLUTE_POS / size) * n_parts * size + ABSOLUTE_POS % size;
        let mut sum = 0.0f32;
        for _ in 0..n_parts {
            sum += parts[at];
            at += size;
        }
        out[ABSOLUTE_POS] = ended(sum, bias, ABSOLUTE_POS % n, ending);
    }
}

/// Each cube some columns; each unit every so-many-th row of one.
#[cube(launch)]
pub(super) fn sum_rows(matrix: &[f32], sums: &mut [f32], n_rows: usize, width: usize) {
    let column = CUBE_POS * comptime!(COLUMNS as usize).runtime() + (UNIT_POS % COLUMNS) as usize;
    let mut own = 0.0f32;
    if column < width {
        let mut row = (UNIT_POS / COLUMNS) as usize;
        while row < n_rows {
            own += matrix[row * width + column];
            row += comptime!((UNITS / COLUMNS) as usize).runtime();
        }
    }
    let sum = sum_of_column(own, COLUMNS, UNITS);
    if UNIT_POS < COLUMNS && column < width {
        sums[column] = sum;
    }
}
