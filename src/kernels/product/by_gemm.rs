//! The `gemm` crate at the level of instructions that is in use.
//!
//! `gemm::gemm` takes the best that the machine has, once for the process. Below that, its own loop is called with its own kernels of
//! another level, which are public.
#![allow(unsafe_code)]

use crate::machine::{InstructionSet, is_uncapped};
use gemm::Parallelism;

/// A pointer to a matrix, the distance between its columns and that between its rows.
type Strided<P> = (P, isize, isize);

/// `out = scale * a b`, or added to it.
///
/// # Safety
/// The pointers have to be of matrices of sizes `[n_rows, n_columns, depth]` with these strides, and nothing else may use `out`.
pub unsafe fn by_gemm(
    [n_rows, n_columns, depth]: [usize; 3],
    out: Strided<*mut f32>,
    add: bool,
    a: Strided<*const f32>,
    b: Strided<*const f32>,
    scale: f32,
    parallelism: Parallelism,
) {
    let at_best = || {
        // SAFETY: what the caller promises, passed on.
        unsafe {
            gemm::gemm(
                n_rows,
                n_columns,
                depth,
                out.0,
                out.1,
                out.2,
                add,
                a.0,
                a.1,
                a.2,
                b.0,
                b.1,
                b.2,
                1.0,
                scale,
                false,
                false,
                false,
                parallelism,
            )
        }
    };
    macro_rules! at_level {
        ($kernels:ident, $lanes:literal, $simd:ident) => {{
            use gemm_common::gemm::gemm_basic_generic;
            use gemm_common::simd::MixedSimd;
            use gemm_f32::microkernel::$kernels::f32::{H_M, H_N, H_UKR, MR_DIV_N, NR, UKR};
            let simd = <gemm_common::simd::$simd as MixedSimd<f32, f32, f32, f32>>::try_new();
            // SAFETY: what the caller promises, passed on.
            unsafe {
                gemm_basic_generic::<_, f32, $lanes, { MR_DIV_N * $lanes }, NR, MR_DIV_N, H_M, H_N>(
                    simd.expect("a level in use is one that the machine has"),
                    n_rows,
                    n_columns,
                    depth,
                    out.0,
                    out.1,
                    out.2,
                    add,
                    a.0,
                    a.1,
                    a.2,
                    b.0,
                    b.1,
                    b.2,
                    1.0,
                    scale,
                    false,
                    false,
                    false,
                    |a, b, c| a * b + c,
                    &UKR,
                    &H_UKR,
                    false,
                    parallelism,
                )
            }
        }};
    }
    if is_uncapped() {
        return at_best();
    }
    match InstructionSet::in_use() {
        #[cfg(target_arch = "x86_64")]
        InstructionSet::V3 => at_level!(fma, 8, V3),
        InstructionSet::Scalar => at_level!(scalar, 1, Scalar),
        _ => at_best(),
    }
}
