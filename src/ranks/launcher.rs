//! Who started this process, and with how many others.

use super::{Alone, Ranks};
use crate::error::{Error, Result};
use std::fmt;
use std::sync::Arc;

/// Where launchers say how many processes they have started: Open MPI's `mpirun`, those that speak PMI (MPICH, Intel MPI, and
/// Slurm's `srun --mpi=pmi2`), and Slurm's `srun` whatever it speaks. Outside of `srun`, in a script of `sbatch`, the last is not set.
const SIZES: [&str; 3] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"];

/// What launchers that speak PMIx set in every process, without the number of processes: MPI knows that.
const OF_PMIX: &str = "PMIX_RANK";

/// Where they number the processes of one machine.
const LOCAL_RANKS: [&str; 3] = ["OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"];

/// How a process was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    Alone,
    /// As one of so many.
    OneOf(usize),
    /// By a launcher that does not say how many there are.
    OneOfSome,
}

impl Start {
    /// By what `variable` says of the environment.
    fn of(variable: impl Fn(&str) -> Option<String>) -> Self {
        match number(&SIZES, &variable) {
            Some(0 | 1) => Self::Alone,
            Some(n) => Self::OneOf(n),
            None if variable(OF_PMIX).is_some() => Self::OneOfSome,
            None => Self::Alone,
        }
    }

    fn own() -> Self {
        Self::of(variable)
    }
}

impl fmt::Display for Start {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Alone => write!(f, "alone"),
            Self::OneOf(n) => write!(f, "as one of {n} processes"),
            Self::OneOfSome => write!(f, "by a launcher of several processes"),
        }
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn number(names: &[&str], variable: &impl Fn(&str) -> Option<String>) -> Option<usize> {
    names.iter().find_map(|name| variable(name)?.parse().ok())
}

/// The number of this process among those of its machine, where a launcher says it.
pub fn local_rank() -> Option<usize> {
    if Start::own() == Start::Alone { None } else { number(&LOCAL_RANKS, &variable) }
}

/// The ranks that this process was started with: one, unless a launcher such as `mpirun` started several.
///
/// # Errors
/// If there are several and this program cannot speak to them.
pub fn of_launcher() -> Result<Arc<dyn Ranks>> {
    let start = Start::own();
    if start == Start::Alone {
        return Ok(Arc::new(Alone));
    }
    #[cfg(feature = "mpi")]
    {
        let ranks = super::mpi::Mpi::start()?;
        let is_known = start == Start::OneOfSome || start == Start::OneOf(ranks.size());
        if is_known {
            return Ok(Arc::new(ranks));
        }
        Err(Error::message(format!(
            "was started {start}, but MPI knows {}: the launcher belongs to another MPI than the one that this program was built \
             with, or `srun` was not told to start MPI (`srun --mpi=pmix`)",
            ranks.size()
        )))
    }
    #[cfg(not(feature = "mpi"))]
    Err(Error::message(format!(
        "was started {start}, but built without MPI: each would train alone. Build with `cargo build --release --features mpi`, or \
         start it once"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_launcher_is_recognized_by_what_it_sets() {
        let start = |set: &[(&str, &str)]| {
            Start::of(|name| set.iter().find(|(other, _)| *other == name).map(|(_, value)| value.to_string()))
        };
        assert_eq!(start(&[]), Start::Alone);
        assert_eq!(start(&[("OMPI_COMM_WORLD_SIZE", "3"), ("PMIX_RANK", "0")]), Start::OneOf(3));
        assert_eq!(start(&[("PMI_SIZE", "2")]), Start::OneOf(2));
        // `srun --mpi=pmix`, and one that has started a single process.
        let of_slurm = |n| [("PMIX_RANK", "1"), ("SLURM_STEP_NUM_TASKS", n), ("SLURM_NTASKS", "8")];
        assert_eq!(start(&of_slurm("4")), Start::OneOf(4));
        assert_eq!(start(&of_slurm("1")), Start::Alone);
        // A script of `sbatch` is started once, however many tasks it may start.
        assert_eq!(start(&[("SLURM_NTASKS", "8"), ("SLURM_PROCID", "0")]), Start::Alone);
        assert_eq!(start(&[("PMIX_RANK", "0")]), Start::OneOfSome);
        assert_eq!(start(&[("OMPI_COMM_WORLD_SIZE", "many")]), Start::Alone);
    }
}
