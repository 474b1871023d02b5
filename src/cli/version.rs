//! What `lookback --version` says beyond the number.

use crate::kernels::machine::InstructionSet;
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
            InstructionSet::best(),
        )
    });
    &LONG
}
