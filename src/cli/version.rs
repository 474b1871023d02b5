//! What `lookback --version` says beyond the number.

use pulp::{Arch, Simd, WithSimd};
use std::sync::LazyLock;

/// The cargo features that this program was built with, by name.
const FEATURES: [(&str, bool); 11] = [
    ("flex", cfg!(feature = "flex")),
    ("ndarray", cfg!(feature = "ndarray")),
    ("wgpu", cfg!(feature = "wgpu")),
    ("vulkan", cfg!(feature = "vulkan")),
    ("metal", cfg!(feature = "metal")),
    ("cuda", cfg!(feature = "cuda")),
    ("autotune", cfg!(feature = "autotune")),
    ("fusion", cfg!(feature = "fusion")),
    ("mpi", cfg!(feature = "mpi")),
    ("serve", cfg!(feature = "serve")),
    ("fetch", cfg!(feature = "fetch")),
];

/// Determines which instructions the loops of the layers use on this machine.
struct Instructions;

impl WithSimd for Instructions {
    type Output = &'static str;

    fn with_simd<S: Simd>(self, _: S) -> Self::Output {
        match std::any::type_name::<S>().rsplit("::").next() {
            Some("V4") => "x86-64-v4 (AVX-512)",
            Some("V3") => "x86-64-v3 (AVX2, FMA)",
            Some("Neon" | "NeonFcma") => "NEON",
            _ => "no vector instructions",
        }
    }
}

/// The number, the features, and the instructions that are used on this machine.
pub(super) fn long() -> &'static str {
    static LONG: LazyLock<String> = LazyLock::new(|| {
        let built_in = FEATURES.iter().filter(|(_, is_in)| *is_in).map(|(name, _)| *name);
        let features: Vec<&str> = built_in.collect();
        let (system, processor) = (std::env::consts::OS, std::env::consts::ARCH);
        format!(
            "{}\nfeatures      {}\nplatform      {system}, {processor}\ninstructions  {}",
            env!("CARGO_PKG_VERSION"),
            features.join(" "),
            Arch::new().dispatch(Instructions),
        )
    });
    &LONG
}
