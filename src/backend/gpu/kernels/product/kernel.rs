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

/// What a kernel is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Form {
    pub rows: Side,
    pub columns: Side,
    /// Whether tiles and parts end where the factors do.
    pub is_whole: bool,
    pub ending: Ending,
}

impl Form {
    /// The units of a cube, each of which has sixteen numbers of its tile.
    pub fn n_units(self) -> usize {
        self.rows.size * self.columns.size / 16
    }

    /// The fours that a unit brings of a side's factor at a time.
    fn n_brought(self, side: Side) -> usize {
        side.size * FOURS / self.n_units()
    }
}

/// A factor.
#[derive(CubeType, CubeLaunch)]
pub(super) struct Factor {
    numbers: Box<[f32]>,
    /// Its rows, if it is the left one, else its columns.
    n: usize,
    /// From one row or column to the next.
    step: usize,
    /// From one matrix to the next.
    step_of_matrix: usize,
}

/// What a cube takes of a factor at a time.
#[derive(CubeType, Clone, Copy)]
struct Window {
    /// Where its matrix begins.
    start: usize,
    /// The first row or column.
    first: usize,
    /// The first place along the inner axis, and the end of the cube's part of that.
    at: usize,
    end: usize,
}

/// The `number`-th four of that.
// The first of two equal branches is taken while the kernel is compiled, and leaves no condition there.
#[allow(clippy::if_same_then_else)]
#[cube]
fn four_of(
    factor: &Factor,
    window: &Window,
    number: usize,
    #[comptime] side: Side,
    #[comptime] is_whole: bool,
) -> Four {
    let n_neighbours = comptime!(side.n_neighbours());
    let mut row = number / n_neighbours;
    let mut column = 4 * (number % n_neighbours);
    let mut n_rows = factor.n;
    let mut n_columns = window.end;
    if comptime!(side.is_along_inner) {
        row += window.first;
        column += window.at;
    } else {
        row += window.at;
        column += window.first;
        n_rows = window.end;
        n_columns = factor.n;
    }
    let place = window.start + row * factor.step + column;
    let mut four = Four::new(0.0f32);
    #[unroll]
    for i in 0..4usize {
        if comptime!(is_whole) {
            four.insert(i, factor.numbers[place + i]);
        } else if row < n_rows && column + i < n_columns {
            four.insert(i, factor.numbers[place + i]);
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

/// Reads what a unit brings of a window.
#[cube]
fn bring(into: &mut Array<Four>, factor: &Factor, window: &Window, #[comptime] side: Side, #[comptime] form: Form) {
    let n_units = comptime!(form.n_units());
    #[unroll]
    for i in 0..comptime!(form.n_brought(side)) {
        let number = UNIT_POS as usize + i * n_units;
        into[i] = four_of(factor, window, number, side, form.is_whole);
    }
}

/// Each cube a tile of the output, or a part of its sums. While the units multiply what lies in the memory of the cube, what comes next is
/// on its way.
#[allow(clippy::too_many_arguments)]
#[cube(launch)]
pub(super) fn multiply(
    left: Factor,
    right: Factor,
    bias: &[f32],
    out: &mut [f32],
    k: usize,
    of_part: usize,
    n_parts: usize,
    #[comptime] form: Form,
) {
    let rows = comptime!(form.rows);
    let columns = comptime!(form.columns);
    let n_units = comptime!(form.n_units());
    let n_left = comptime!(form.n_brought(rows));
    let n_right = comptime!(form.n_brought(columns));
    let mut lefts = Shared::<[Four]>::new_slice(comptime!(rows.n_fours()));
    let mut rights = Shared::<[Four]>::new_slice(comptime!(columns.n_fours()));
    let unit = UNIT_POS as usize;
    let across = comptime!(columns.size / 4);
    let (unit_row, unit_column) = (unit / across, unit % across);
    let first_row = CUBE_POS_Y as usize * comptime!(rows.size);
    let first_column = CUBE_POS_X as usize * comptime!(columns.size);
    let matrix = CUBE_POS_Z as usize / n_parts;
    let mut at = (CUBE_POS_Z as usize % n_parts) * of_part;
    let end = min(k, at + of_part);

    let mut sums = Array::<Four>::new(4usize);
    #[unroll]
    for i in 0..4usize {
        sums[i] = Four::new(0.0f32);
    }
    let mut next_left = Array::<Four>::new(n_left);
    let mut next_right = Array::<Four>::new(n_right);
    let mut of_left = Window { start: matrix * left.step_of_matrix, first: first_row, at, end };
    let mut of_right = Window { start: matrix * right.step_of_matrix, first: first_column, at, end };
    bring(&mut next_left, &left, &of_left, rows, form);
    bring(&mut next_right, &right, &of_right, columns, form);
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
            of_left.at = at;
            of_right.at = at;
            bring(&mut next_left, &left, &of_left, rows, form);
            bring(&mut next_right, &right, &of_right, columns, form);
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
        if row < left.n {
            let start = (CUBE_POS_Z as usize * left.n + row) * right.n;
            #[unroll]
            for j in 0..4usize {
                let mut column = first_column + 4 * unit_column + j;
                if comptime!(columns.is_along_inner) {
                    column = first_column + unit_column + j * across;
                }
                if column < right.n {
                    out[start + column] = ended(sums[i].extract(j), bias, column, form.ending);
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
