//! What kernels share: their cubes, what the units of one do together, and the order in which they read a sequence.

use burn_cubecl::cubecl::{self, calculate_cube_count_elemwise, prelude::*};

/// Units that share a row: few, since most rows have some hundred elements and there are many rows.
pub(super) const UNITS_OF_ROW: u32 = 64;

/// Columns whose sums over all rows one cube makes.
pub(super) const COLUMNS: u32 = 32;
/// Units that share such a column: a power of two.
pub(super) const UNITS_OF_COLUMN: u32 = 8;

/// One cube for each row; more rows than an axis of the grid takes are spread over two.
pub(super) fn cube_for_each(n_rows: usize) -> CubeCount {
    const LONGEST: usize = 32_768;
    let across = n_rows.clamp(1, LONGEST);
    CubeCount::Static(across as u32, n_rows.div_ceil(across) as u32, 1)
}

/// One unit for each of `n` elements: the grid, and the size of its cubes.
pub(super) fn unit_for_each(n: usize, client: &Client) -> (CubeCount, CubeDim) {
    let cube_dim = CubeDim::new(client, n);
    (calculate_cube_count_elemwise(client, n, cube_dim), cube_dim)
}

/// The `i`-th of `len` positions in the order of reading.
#[cube]
pub(super) fn position_read(i: usize, len: usize, is_backward: bool) -> usize {
    let mut position = i;
    if is_backward {
        position = len - 1 - i;
    }
    position
}

/// The sum of a number of each unit, added in the same order every time; `n_units` is a power of two.
#[cube]
pub(super) fn sum_of_cube(own: f32, #[comptime] n_units: u32) -> f32 {
    sum_of_column(own, 1u32, n_units)
}

/// The same of the units whose places leave the same rest when divided by `n_columns`, which is a power of two too.
#[cube]
pub(super) fn sum_of_column(own: f32, #[comptime] n_columns: u32, #[comptime] n_units: u32) -> f32 {
    let mut sums = Shared::<[f32]>::new_slice(comptime!(n_units as usize));
    sums[UNIT_POS as usize] = own;
    sync_cube();
    let mut half = comptime!(n_units / 2).runtime();
    while half >= n_columns {
        if UNIT_POS < half {
            let other = sums[(UNIT_POS + half) as usize];
            sums[UNIT_POS as usize] += other;
        }
        sync_cube();
        half /= 2;
    }
    sums[(UNIT_POS % n_columns) as usize]
}

/// The largest of a number of each unit; `n_units` is a power of two.
#[cube]
pub(super) fn max_of_cube(own: f32, #[comptime] n_units: u32) -> f32 {
    let mut highest = Shared::<[f32]>::new_slice(comptime!(n_units as usize));
    highest[UNIT_POS as usize] = own;
    sync_cube();
    let mut half = comptime!(n_units / 2).runtime();
    while half > 0 {
        if UNIT_POS < half {
            let other = highest[(UNIT_POS + half) as usize];
            highest[UNIT_POS as usize] = max(highest[UNIT_POS as usize], other);
        }
        sync_cube();
        half /= 2;
    }
    highest[0]
}
