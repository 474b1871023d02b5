//! What the machine offers: cores, and instructions that work on many numbers at once.

use pulp::{Arch, WithSimd};
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// Which cores compute.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Threads {
    /// The one of the calling thread.
    One,
    /// All of them, where the work is large enough to be shared out.
    All,
}

/// Instructions that loops and products are compiled for, the fewest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InstructionSet {
    /// One number at a time, or what the compiler makes of it with the instructions that every processor of its kind has.
    Scalar,
    /// x86-64-v3: AVX2 and fused multiply-add, eight numbers at a time.
    V3,
    /// x86-64-v4: AVX-512, sixteen numbers at a time.
    V4,
    /// Of 64-bit ARM, four numbers at a time.
    Neon,
}

impl InstructionSet {
    /// Every set that this machine has, the best last.
    pub fn available() -> Vec<Self> {
        Self::ALL.into_iter().filter(|set| set.arch().is_some()).collect()
    }

    const ALL: [Self; 4] = [Self::Scalar, Self::V3, Self::V4, Self::Neon];

    /// The best of this machine.
    pub fn best() -> Self {
        Self::ALL.into_iter().rfind(|set| set.arch().is_some()).unwrap_or(Self::Scalar)
    }

    /// How the command line names it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::V3 => "v3",
            Self::V4 => "v4",
            Self::Neon => "neon",
        }
    }

    /// The set that is in use.
    pub fn in_use() -> Self {
        match CAP.load(Relaxed) {
            NO_CAP => Self::best(),
            cap => Self::ALL[usize::from(cap)],
        }
    }

    /// From now on, loops and products of this process use no more than this set; burn's own operations are not concerned. Whether the
    /// machine has it.
    pub fn cap(self) -> bool {
        let has = self.arch().is_some();
        if has {
            CAP.store(self as u8, Relaxed);
        }
        has
    }

    /// What dispatches to the set; nothing if the machine does not have it.
    fn arch(self) -> Option<Arch> {
        match self {
            Self::Scalar => Some(Arch::Scalar),
            #[cfg(target_arch = "x86_64")]
            Self::V3 => pulp::x86::V3::try_new().map(Arch::V3),
            #[cfg(target_arch = "x86_64")]
            Self::V4 => pulp::x86::V4::try_new().map(Arch::V4),
            #[cfg(target_arch = "aarch64")]
            Self::Neon => pulp::aarch64::Neon::try_new().map(Arch::Neon),
            _ => None,
        }
    }
}

impl std::fmt::Display for InstructionSet {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(match self {
            Self::Scalar => "no vector instructions",
            Self::V3 => "x86-64-v3 (AVX2, FMA)",
            Self::V4 => "x86-64-v4 (AVX-512)",
            Self::Neon => "NEON",
        })
    }
}

/// The set that is not to be exceeded, by its place in `ALL`.
static CAP: AtomicU8 = AtomicU8::new(NO_CAP);
const NO_CAP: u8 = u8::MAX;

#[inline(always)]
fn arch() -> Arch {
    if CAP.load(Relaxed) == NO_CAP { Arch::new() } else { capped() }
}

#[cold]
fn capped() -> Arch {
    InstructionSet::in_use().arch().unwrap_or_default()
}

/// Whether nothing less than the best of the machine is asked for.
pub(super) fn is_uncapped() -> bool {
    CAP.load(Relaxed) == NO_CAP || InstructionSet::in_use() == InstructionSet::best()
}

/// Runs `work`, compiled for the instructions that are in use. What it calls has to be inlined into it.
#[inline(always)]
pub(crate) fn vectorized<T>(work: impl FnOnce() -> T) -> T {
    arch().dispatch(work)
}

/// Runs `work`, which names its instructions itself.
#[inline(always)]
pub(crate) fn dispatch<W: WithSimd>(work: W) -> W::Output {
    arch().dispatch(work)
}
