//! Products of bytes, four in each lane at once.
//!
//! `unsafe` because a function for instructions that not every processor has may be called only after the processor has been asked.
#![allow(unsafe_code)]

use super::panel::WIDTH;
use crate::kernels::machine::InstructionSet;

/// One row of a panel of bytes.
pub type ByteRow = [i8; WIDTH];

/// The sums of a row with a panel.
pub type Sums = [i32; WIDTH];

/// Inputs that [`Layout::Quads`](super::integer::Layout::Quads) keeps together; in either layout, a panel has a multiple of as many rows.
pub const QUAD: usize = 4;

/// Whether the processor adds products of bytes, with instructions that are in use.
pub fn has_vnni() -> bool {
    can_add_quads() && InstructionSet::in_use() == InstructionSet::V4
}

/// Whether the processor has the instructions.
fn can_add_quads() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vnni");
    #[cfg(not(target_arch = "x86_64"))]
    return false;
}

/// Adds the products of rows of bytes with a panel of quads.
///
/// # Shapes
/// - x: as many quads for each row as the panel has
/// - sums: as many as there are rows
///
/// # Panics
/// On a processor that cannot.
pub fn add_quads(panel: &[[ByteRow; QUAD]], x: &[[u8; QUAD]], sums: &mut [Sums]) {
    assert!(can_add_quads() && x.len() == panel.len() * sums.len());
    // SAFETY: the processor has the instructions.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        vnni::add_quads(panel, x, sums)
    }
}

/// The instructions of processors with AVX-512 VNNI.
#[cfg(target_arch = "x86_64")]
mod vnni {
    use super::{ByteRow, QUAD, Sums};
    use pulp::cast;
    use std::arch::x86_64::{__m512i, _mm512_dpbusd_epi32, _mm512_set1_epi32};

    /// Rows that are multiplied at a time: their sums take up 24 of 32 registers.
    const ROWS: usize = 6;

    /// Quads that are used at a time: they stay in the first cache while all rows are multiplied.
    const DEPTH: usize = 128;

    /// A row of sums in registers.
    const VECTORS: usize = 4;

    /// Adds the products of rows with a panel. The elements of rows are taken as they are, from 0 to 255.
    #[target_feature(enable = "avx512f,avx512vnni")]
    pub fn add_quads(panel: &[[ByteRow; QUAD]], x: &[[u8; QUAD]], sums: &mut [Sums]) {
        let n_quads = panel.len();
        for (piece, quads) in panel.chunks(DEPTH).enumerate() {
            let row = |r: usize| &x[r * n_quads + piece * DEPTH..][..quads.len()];
            let (whole, rest) = sums.as_chunks_mut::<ROWS>();
            for (i, sums) in whole.iter_mut().enumerate() {
                add_block(quads, std::array::from_fn(|r| row(i * ROWS + r)), sums);
            }
            let first = whole.len() * ROWS;
            macro_rules! rest {
                ($($n:literal)+) => {
                    match rest.len() {
                        $($n => {
                            let sums: &mut [Sums; $n] = rest.try_into().expect("the length has been matched");
                            add_block(quads, std::array::from_fn(|r| row(first + r)), sums);
                        })+
                        _ => {}
                    }
                };
            }
            rest!(1 2 3 4 5);
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512vnni")]
    fn add_block<const R: usize>(quads: &[[ByteRow; QUAD]], x: [&[[u8; QUAD]]; R], sums: &mut [Sums; R]) {
        // Lengths that the compiler sees: no test remains inside the loop.
        let x = x.map(|x| &x[..quads.len()]);
        let mut totals: [[__m512i; VECTORS]; R] = std::array::from_fn(|r| cast(sums[r]));
        for (k, quad) in quads.iter().enumerate() {
            let weights: [__m512i; VECTORS] = cast(*quad);
            for r in 0..R {
                let factors = _mm512_set1_epi32(i32::from_ne_bytes(x[r][k]));
                for i in 0..VECTORS {
                    totals[r][i] = _mm512_dpbusd_epi32(totals[r][i], factors, weights[i]);
                }
            }
        }
        for (sums, totals) in sums.iter_mut().zip(totals) {
            *sums = cast(totals);
        }
    }
}
