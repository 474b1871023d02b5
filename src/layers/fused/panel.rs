//! Products of rows with a matrix that is kept in panels.
//!
//! The `gemm` crate reads a large matrix as it lies or copies it together first, and reaches a third of the machine's rate with
//! the 32 rows of a batch of sentences. A panel of 64 columns, input after input, is read from its beginning to its end: memory
//! brings it as fast as it can, and what the panel is stored as is nobody's business but the loader's.

use pulp::{Arch, Simd, WithSimd};

/// Columns of a panel.
pub const WIDTH: usize = 64;

/// One row of a panel, or of a product with it.
pub type PanelRow = [f32; WIDTH];

/// Inputs that are loaded at a time: their floats stay in the first cache while all rows are multiplied.
pub const DEPTH: usize = 128;

/// Vectors of the machine that a row of sums takes up.
const VECTORS: usize = 4;

/// `sums[r] = sum over k of x[r][k] panel[k]`, always in the order of the inputs: a row has the same sums whatever other rows
/// there are. `load(k, rows)` writes the rows of the panel from `k` on as floats.
///
/// # Shapes
/// - x: `[n_rows, n_inputs]`
/// - sums: `[n_rows, WIDTH]`
pub fn multiply(
    x: &[f32],
    n_inputs: usize,
    sums: &mut [PanelRow],
    scratch: &mut [PanelRow],
    load: impl Fn(usize, &mut [PanelRow]),
) {
    assert_eq!(x.len(), n_inputs * sums.len(), "{} rows of {n_inputs}", sums.len());
    Arch::new().dispatch(Product { x, n_inputs, sums, scratch, load });
}

struct Product<'a, L> {
    x: &'a [f32],
    n_inputs: usize,
    sums: &'a mut [PanelRow],
    scratch: &'a mut [PanelRow],
    load: L,
}

impl<L: Fn(usize, &mut [PanelRow])> WithSimd for Product<'_, L> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { x, n_inputs, sums, scratch, load } = self;
        sums.iter_mut().for_each(|sums| sums.fill(0.0));
        for start in (0..n_inputs).step_by(scratch.len()) {
            let n = scratch.len().min(n_inputs - start);
            let panel = &mut scratch[..n];
            load(start, panel);
            // With 16 registers, as AVX2 has, the sums of three rows find room; elsewhere there are 32.
            if S::F32_LANES == 8 {
                add_rows::<S, 3>(simd, panel, x, [n_inputs, start], sums);
            } else {
                add_rows::<S, 6>(simd, panel, x, [n_inputs, start], sums);
            }
        }
    }
}

/// Adds the products of all rows with a piece of a panel that begins at input `start`, `MOST` rows at a time.
#[inline(always)]
fn add_rows<S: Simd, const MOST: usize>(
    simd: S,
    panel: &[PanelRow],
    x: &[f32],
    [n_inputs, start]: [usize; 2],
    sums: &mut [PanelRow],
) {
    let n = panel.len();
    let row = |r: usize| &x[r * n_inputs + start..][..n];
    for group in 0..WIDTH.div_ceil(VECTORS * S::F32_LANES) {
        let (whole, rest) = sums.as_chunks_mut::<MOST>();
        for (i, sums) in whole.iter_mut().enumerate() {
            add_block(simd, panel, std::array::from_fn(|r| row(i * MOST + r)), sums, group);
        }
        let first = whole.len() * MOST;
        macro_rules! rest {
            ($($n:literal)+) => {
                match rest.len() {
                    $($n => {
                        let sums: &mut [PanelRow; $n] = rest.try_into().expect("the length has been matched");
                        add_block(simd, panel, std::array::from_fn(|r| row(first + r)), sums, group);
                    })+
                    _ => {}
                }
            };
        }
        rest!(1 2 3 4 5);
    }
}

/// Adds the products of `R` rows with a piece of a panel, in the columns of one group of vectors; the sums are in registers.
#[inline(always)]
fn add_block<S: Simd, const R: usize>(
    simd: S,
    panel: &[PanelRow],
    x: [&[f32]; R],
    sums: &mut [PanelRow; R],
    group: usize,
) {
    // Lengths that the compiler sees: no test remains inside the loop.
    let x = x.map(|x| &x[..panel.len()]);
    let vectors = |row: &PanelRow| -> [S::f32s; VECTORS] {
        let row = S::as_simd_f32s(row).0;
        std::array::from_fn(|i| row[VECTORS * group + i])
    };
    let mut totals: [[S::f32s; VECTORS]; R] = std::array::from_fn(|r| vectors(&sums[r]));
    for (k, weights) in panel.iter().enumerate() {
        let weights = vectors(weights);
        for r in 0..R {
            let factor = simd.splat_f32s(x[r][k]);
            for i in 0..VECTORS {
                totals[r][i] = simd.mul_add_e_f32s(factor, weights[i], totals[r][i]);
            }
        }
    }
    for (sums, totals) in sums.iter_mut().zip(totals) {
        let sums = S::as_mut_simd_f32s(sums).0;
        for (i, total) in totals.into_iter().enumerate() {
            sums[VECTORS * group + i] = total;
        }
    }
}

/// Puts products with all panels together: row after row instead of panel after panel.
///
/// # Shapes
/// - panels: `[n_panels, n_rows, WIDTH]`
/// - output: `[n_rows, n_columns]`
pub fn join(panels: Vec<PanelRow>, n_rows: usize, n_columns: usize) -> Vec<f32> {
    if n_rows == 1 {
        let mut row = panels.into_flattened();
        row.truncate(n_columns);
        return row;
    }
    let whole_rows = super::simd::task_rows(n_columns) * n_columns;
    let (values, _) =
        super::product::new_pieces(super::product::Start::Zeros(n_rows * n_columns), whole_rows, |start, out| {
            for (i, row) in out.chunks_exact_mut(n_columns).enumerate() {
                let row_index = start / n_columns + i;
                for (panel, out) in row.chunks_mut(WIDTH).enumerate() {
                    out.copy_from_slice(&panels[panel * n_rows + row_index][..out.len()]);
                }
            }
        });
    values
}
