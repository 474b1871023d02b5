//! Products of bytes, four in each lane at once.
//!
//! `unsafe` because a function for instructions that not every processor has may be called only after the processor has been asked.
#![allow(unsafe_code)]

use super::panel::WIDTH;
use crate::machine::InstructionSet;

/// One row of a panel of bytes.
pub type ByteRow = [i8; WIDTH];

/// The sums of a row with a panel.
pub type Sums = [i32; WIDTH];

/// Inputs that [`Layout::Quads`](super::integer::Layout::Quads) keeps together; in either layout, a panel has a multiple of as many rows.
pub const QUAD: usize = 4;

/// What the bytes of rows have too much: VNNI multiplies bytes without a sign by bytes with one.
pub const EXCESS: i32 = 128;

/// Instructions that add four products of bytes to each lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuadInstructions {
    /// AVX-512 VNNI: 16 lanes.
    Avx512Vnni,
    /// AVX-VNNI, of processors without AVX-512: 8 lanes.
    AvxVnni,
    /// AVX2, in four instructions where the others have one: 8 lanes. As fast as products of floats, but a weight comes from memory in one
    /// byte.
    Avx2,
    /// NEON's dot product: 4 lanes.
    DotProduct,
    /// 8 lanes of AVX-512 VNNI, which compute what AVX-VNNI computes: so the loop for 8 lanes is tested on machines without it.
    #[cfg(test)]
    HalfOfAvx512Vnni,
}

impl QuadInstructions {
    #[cfg(not(test))]
    const ALL: [Self; 4] = [Self::Avx512Vnni, Self::AvxVnni, Self::Avx2, Self::DotProduct];
    #[cfg(test)]
    const ALL: [Self; 5] = [Self::Avx512Vnni, Self::AvxVnni, Self::Avx2, Self::DotProduct, Self::HalfOfAvx512Vnni];

    /// All that the processor has, the fastest first.
    pub fn available() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|instructions| instructions.are_there())
    }

    /// The fastest that the processor has and that the instructions in use allow.
    pub fn in_use() -> Option<Self> {
        let set = InstructionSet::in_use();
        Self::available().find(|instructions| match instructions {
            Self::Avx512Vnni => set == InstructionSet::V4,
            Self::AvxVnni => set == InstructionSet::V3 || set == InstructionSet::V4,
            // With AVX-512, products of floats have twice the width.
            Self::Avx2 => set == InstructionSet::V3,
            Self::DotProduct => set == InstructionSet::Neon,
            #[cfg(test)]
            Self::HalfOfAvx512Vnni => false,
        })
    }

    fn are_there(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Vnni => is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vnni"),
            #[cfg(target_arch = "x86_64")]
            Self::AvxVnni => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("avxvnni"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => is_x86_feature_detected!("avx2"),
            #[cfg(target_arch = "aarch64")]
            Self::DotProduct => std::arch::is_aarch64_feature_detected!("dotprod"),
            #[cfg(all(test, target_arch = "x86_64"))]
            Self::HalfOfAvx512Vnni => is_x86_feature_detected!("avx512vl") && is_x86_feature_detected!("avx512vnni"),
            _ => false,
        }
    }

    /// The sums of products of rows of bytes, each less [`EXCESS`], with a panel of quads.
    ///
    /// # Shapes
    /// - x: as many quads for each row as the panel has
    /// - excess: [`EXCESS`] times the sum of every column of the panel
    /// - sums: as many as there are rows
    ///
    /// # Panics
    /// On a processor that does not have the instructions.
    pub fn multiply(self, panel: &[[ByteRow; QUAD]], excess: &Sums, x: &[[u8; QUAD]], sums: &mut [Sums]) {
        assert!(self.are_there() && x.len() == panel.len() * sums.len());
        // The others take the excess off the bytes themselves.
        let has_excess = !matches!(self, Self::DotProduct | Self::Avx2);
        sums.fill(if has_excess { excess.map(|excess| -excess) } else { [0; WIDTH] });
        // SAFETY: the processor has the instructions.
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Vnni => unsafe { avx512_vnni::add(panel, x, sums) },
            #[cfg(target_arch = "x86_64")]
            Self::AvxVnni => unsafe { avx_vnni::add(panel, x, sums) },
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => unsafe { avx2::add(panel, x, sums) },
            #[cfg(target_arch = "aarch64")]
            Self::DotProduct => unsafe { dot_product::add(panel, x, sums) },
            #[cfg(all(test, target_arch = "x86_64"))]
            Self::HalfOfAvx512Vnni => unsafe { half_of_avx512_vnni::add(panel, x, sums) },
            _ => unreachable!("asked above"),
        }
    }
}

/// Quads that are used at a time: they stay in the first cache while all rows are multiplied.
const DEPTH: usize = 128;

/// The loop over rows and quads in some instructions. A macro, since what is generic is not compiled for the instructions of its caller.
///
/// - `features`: what the processor needs
/// - `rows` by `vectors`: how many rows are multiplied at a time, the most first, and how many vectors of sums each has then: as many as
///   the registers hold beside one of factors and the vectors of weights, which of a single row are used once and come from memory
/// - `spread`: four bytes of a row into every lane
/// - `dot`: adds to each lane the sum of four products
macro_rules! quad_loop {
    ($module:ident, $features:literal, $vector:ident, [$($rows:literal by $vectors:literal),+], $spread:path, $dot:path) => {
        mod $module {
            use super::{ByteRow, DEPTH, QUAD, Sums, WIDTH};
            use crate::vectors::each;
            #[cfg(target_arch = "aarch64")]
            use std::arch::aarch64::*;
            #[cfg(target_arch = "x86_64")]
            use std::arch::x86_64::*;

            const LANES: usize = size_of::<$vector>() / size_of::<i32>();
            const BYTES: usize = size_of::<$vector>();

            /// Adds the products of rows with a panel.
            #[target_feature(enable = $features)]
            pub fn add(panel: &[[ByteRow; QUAD]], x: &[[u8; QUAD]], sums: &mut [Sums]) {
                for (i, quads) in panel.chunks(DEPTH).enumerate() {
                    let x = |row: usize| &x[row * panel.len() + i * DEPTH..][..quads.len()];
                    let mut done = 0;
                    $(done += add_blocks::<$rows, $vectors>(quads, x, done, sums);)+
                    debug_assert_eq!(done, sums.len(), "one row at a time is the last");
                }
            }

            /// Rows from `first` on, `R` at a time, as far as there are so many. The number of rows that it has taken.
            #[inline]
            #[target_feature(enable = $features)]
            fn add_blocks<'a, const R: usize, const V: usize>(
                quads: &[[ByteRow; QUAD]],
                x: impl Fn(usize) -> &'a [[u8; QUAD]],
                first: usize,
                sums: &mut [Sums],
            ) -> usize {
                let (blocks, _) = sums[first..].as_chunks_mut::<R>();
                for (i, sums) in blocks.iter_mut().enumerate() {
                    add_block::<R, V>(quads, each(&[][..], |r| x(first + i * R + r)), sums);
                }
                blocks.len() * R
            }

            #[inline]
            #[target_feature(enable = $features)]
            fn add_block<const R: usize, const V: usize>(
                quads: &[[ByteRow; QUAD]],
                mut x: [&[[u8; QUAD]]; R],
                sums: &mut [Sums; R],
            ) {
                // Lengths that the compiler sees, which it does not inside a closure: no test remains inside the loop.
                for x in &mut x {
                    *x = &x[..quads.len()];
                }
                for piece in 0..WIDTH / LANES / V {
                    let sums_at = |r: usize, i: usize| sums[r].as_chunks::<LANES>().0[piece * V + i];
                    let zero: $vector = pulp::cast([0u8; BYTES]);
                    let mut totals: [[$vector; V]; R] =
                        each([zero; V], |r| each(zero, |i| pulp::cast(sums_at(r, i))));
                    for (k, quad) in quads.iter().enumerate() {
                        let (bytes, _) = quad.as_flattened().as_chunks::<BYTES>();
                        let weights: [$vector; V] = each(zero, |i| pulp::cast(bytes[piece * V + i]));
                        for r in 0..R {
                            let factors = $spread(i32::from_ne_bytes(x[r][k]));
                            for i in 0..V {
                                totals[r][i] = $dot(totals[r][i], factors, weights[i]);
                            }
                        }
                    }
                    for (sums, totals) in sums.iter_mut().zip(totals) {
                        for (i, total) in totals.into_iter().enumerate() {
                            sums.as_chunks_mut::<LANES>().0[piece * V + i] = pulp::cast(total);
                        }
                    }
                }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
quad_loop!(
    avx512_vnni,
    "avx512f,avx512vnni",
    __m512i,
    [6 by 4, 5 by 4, 4 by 4, 3 by 4, 2 by 4, 1 by 4],
    _mm512_set1_epi32,
    _mm512_dpbusd_epi32
);

#[cfg(target_arch = "x86_64")]
quad_loop!(
    avx_vnni,
    "avx2,avxvnni",
    __m256i,
    [6 by 2, 5 by 2, 4 by 2, 3 by 2, 2 by 4, 1 by 8],
    _mm256_set1_epi32,
    _mm256_dpbusd_avx_epi32
);

#[cfg(target_arch = "x86_64")]
quad_loop!(
    avx2,
    "avx2",
    __m256i,
    [6 by 2, 5 by 2, 4 by 2, 3 by 2, 2 by 4, 1 by 8],
    super::signed::spread,
    super::signed::dot
);

#[cfg(all(test, target_arch = "x86_64"))]
quad_loop!(
    half_of_avx512_vnni,
    "avx512vl,avx512vnni",
    __m256i,
    [6 by 2, 5 by 2, 4 by 2, 3 by 2, 2 by 4, 1 by 8],
    _mm256_set1_epi32,
    _mm256_dpbusd_epi32
);

#[cfg(target_arch = "aarch64")]
quad_loop!(
    dot_product,
    "neon,dotprod",
    int32x4_t,
    [6 by 4, 5 by 4, 4 by 4, 3 by 4, 2 by 8, 1 by 8],
    super::neon::spread,
    super::neon::dot
);

/// Four bytes, each less [`EXCESS`]: with their highest bits turned they are numbers with a sign.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[inline(always)]
fn less_excess(bytes: i32) -> i32 {
    bytes ^ i32::from_ne_bytes([EXCESS as u8; 4])
}

/// What AVX2 has in place of VNNI.
#[cfg(target_arch = "x86_64")]
mod signed {
    use std::arch::x86_64::*;

    /// Four bytes into every lane, as numbers with a sign.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub fn spread(bytes: i32) -> __m256i {
        _mm256_set1_epi32(super::less_excess(bytes))
    }

    /// The sums of two products have 16 bits, in which two of at most 127 times 127 fit: one factor gives its sign to the other.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub fn dot(totals: __m256i, factors: __m256i, weights: __m256i) -> __m256i {
        let pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(factors), _mm256_sign_epi8(weights, factors));
        _mm256_add_epi32(totals, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)))
    }
}

#[cfg(target_arch = "aarch64")]
mod neon {
    use std::arch::aarch64::{int32x4_t, vdupq_n_s32};
    use std::arch::asm;

    /// Four bytes into every lane, as numbers with a sign.
    #[inline]
    #[target_feature(enable = "neon,dotprod")]
    pub fn spread(bytes: i32) -> int32x4_t {
        vdupq_n_s32(super::less_excess(bytes))
    }

    /// `vdotq_s32`, which Rust 1.95 does not offer yet.
    #[inline]
    #[target_feature(enable = "neon,dotprod")]
    pub fn dot(mut totals: int32x4_t, factors: int32x4_t, weights: int32x4_t) -> int32x4_t {
        // SAFETY: the instruction reads and writes these registers and nothing else, and the processor has it.
        unsafe {
            asm!(
                "sdot {totals:v}.4s, {factors:v}.16b, {weights:v}.16b",
                totals = inout(vreg) totals,
                factors = in(vreg) factors,
                weights = in(vreg) weights,
                options(pure, nomem, nostack, preserves_flags),
            );
        }
        totals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_instruction_of_the_machine_finds_the_exact_sums() {
        for instructions in QuadInstructions::available() {
            // Rows that fill blocks and that are left over, and panels deeper than what is used at a time.
            for n_rows in 1..=13 {
                for n_quads in [1, 3, DEPTH, DEPTH + 1] {
                    let weight = |k: usize, j: usize| ((k * 31 + j * 7) % 255) as i32 - 127;
                    let byte =
                        |row: usize, k: usize| if row == k % 5 { 255 } else { (1 + (row * 17 + k * 3) % 255) as u8 };
                    let mut panel = vec![[[0; WIDTH]; QUAD]; n_quads];
                    let mut excess = [0; WIDTH];
                    for k in 0..n_quads * QUAD {
                        for (j, excess) in excess.iter_mut().enumerate() {
                            panel[k / QUAD].as_flattened_mut()[j * QUAD + k % QUAD] = weight(k, j) as i8;
                            *excess += EXCESS * weight(k, j);
                        }
                    }
                    let x: Vec<[u8; QUAD]> = (0..n_rows * n_quads)
                        .map(|i| std::array::from_fn(|b| byte(i / n_quads, i % n_quads * QUAD + b)))
                        .collect();
                    let mut sums = vec![[7; WIDTH]; n_rows];
                    instructions.multiply(&panel, &excess, &x, &mut sums);
                    for (row, sums) in sums.iter().enumerate() {
                        for (j, sum) in sums.iter().enumerate() {
                            let product = |k: usize| (i32::from(byte(row, k)) - EXCESS) * weight(k, j);
                            let exact: i32 = (0..n_quads * QUAD).map(product).sum();
                            assert_eq!(
                                *sum, exact,
                                "{instructions:?}, row {row} of {n_rows}, column {j}, {n_quads} quads"
                            );
                        }
                    }
                }
            }
        }
    }
}
