//! Who started this process, and with how many others.

use super::{Alone, Ranks};
use crate::error::{Error, Result};
use std::sync::Arc;

/// Where launchers say how many processes they have started: Open MPI's `mpirun`, and those that speak PMI (MPICH, Intel MPI, and
/// Slurm's `srun --mpi=pmi2`).
const SIZES: [&str; 2] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"];

/// Where they number the processes of one machine.
const LOCAL_RANKS: [&str; 3] = ["OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"];

fn number(names: &[&str]) -> Option<usize> {
    names.iter().find_map(|name| std::env::var(name).ok()?.parse().ok())
}

/// The number of this process among those of its machine, where a launcher says it.
pub fn local_rank() -> Option<usize> {
    number(&SIZES).and_then(|_| number(&LOCAL_RANKS))
}

/// The ranks that this process was started with: one, unless a launcher such as `mpirun` started several.
///
/// # Errors
/// If there are several and this program cannot speak to them.
pub fn of_launcher() -> Result<Arc<dyn Ranks>> {
    let Some(n) = number(&SIZES).filter(|n| *n > 1) else { return Ok(Arc::new(Alone)) };
    #[cfg(feature = "mpi")]
    {
        let ranks = super::mpi::Mpi::start()?;
        if ranks.size() == n {
            return Ok(Arc::new(ranks));
        }
        Err(Error::message(format!(
            "was started as one of {n} processes, but MPI knows {}: the launcher belongs to another MPI than the one that this \
             program was built with",
            ranks.size()
        )))
    }
    #[cfg(not(feature = "mpi"))]
    Err(Error::message(format!(
        "was started as one of {n} processes, but built without MPI: each would train alone. Build with `cargo build --release \
         --features mpi`, or start it once"
    )))
}
