//! Ranks that are processes, started by `mpirun` or the like: MPI carries what they say.

use super::Ranks;
use crate::error::{Error, Result};
use mpi::Threading;
use mpi::collective::CommunicatorCollectives;
use mpi::datatype::{Partition, PartitionMut};
use mpi::environment::Universe;
use mpi::request::{Request, scope};
use mpi::topology::{Communicator, SimpleCommunicator};
use std::fmt;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// How long a wait keeps its core before it sleeps: MPI's own waits never sleep, and take the core from those that compute.
const PATIENCE: Duration = Duration::from_micros(200);
/// The shortest and the longest sleep between two looks.
const SLEEPS: [Duration; 2] = [Duration::from_micros(50), Duration::from_millis(2)];

/// A process among those of MPI's world.
pub(super) struct Mpi {
    rank: usize,
    size: usize,
    /// One thread calls MPI at a time.
    turn: Mutex<()>,
    /// Leaves MPI when it is dropped.
    _universe: Universe,
}

impl Mpi {
    /// Joins MPI's world.
    ///
    /// # Errors
    /// If it has been joined before, or the MPI at hand cannot be called from several threads, one at a time.
    pub(super) fn start() -> Result<Self> {
        let (universe, threading) = mpi::initialize_with_threading(Threading::Serialized)
            .ok_or_else(|| Error::message("MPI is in use in this process already"))?;
        if threading < Threading::Serialized {
            let message =
                "the MPI at hand can be called from one thread only; it has to be built with support for threads";
            return Err(Error::message(message));
        }
        let world = universe.world();
        let (rank, size) = (world.rank() as usize, world.size() as usize);
        Ok(Self { rank, size, turn: Mutex::new(()), _universe: universe })
    }

    /// Calls MPI.
    fn with<T>(&self, call: impl FnOnce(&SimpleCommunicator) -> T) -> T {
        let _turn = self.turn.lock().expect("nobody panics with the lock");
        call(&SimpleCommunicator::world())
    }

    /// What every rank has to say, `lens[r]` of rank `r`, one after the other.
    fn gather_all<T: mpi::traits::Equivalence + Clone + Default>(&self, own: &[T], lens: &[usize]) -> Vec<T> {
        let (counts, places) = counts_and_places(lens);
        let mut all = vec![T::default(); lens.iter().sum()];
        if all.is_empty() {
            return all;
        }
        // The address of an empty slice is 1 where it may be, and by that Open MPI means "what is in the other buffer".
        let nothing = [T::default()];
        let own = if own.is_empty() { &nothing[..0] } else { own };
        self.with(|world| {
            let mut all = PartitionMut::new(&mut all[..], counts, places);
            scope(|scope| wait(world.immediate_all_gather_varcount_into(scope, own, &mut all)));
        });
        all
    }
}

/// Looks for the end of a request, at first again and again, later now and then.
fn wait<'a, D: ?Sized, S: mpi::request::Scope<'a>>(mut request: Request<'a, D, S>) {
    let start = Instant::now();
    let mut sleep = SLEEPS[0];
    loop {
        match request.test() {
            Ok(_) => return,
            Err(same) => request = same,
        }
        if start.elapsed() < PATIENCE {
            std::thread::yield_now();
        } else {
            std::thread::sleep(sleep);
            sleep = (sleep * 2).min(SLEEPS[1]);
        }
    }
}

/// How much comes from each rank, and where it goes, as MPI takes it.
///
/// # Panics
/// If there is more than 2^31 of it, which MPI cannot count.
fn counts_and_places(lens: &[usize]) -> (Vec<i32>, Vec<i32>) {
    let as_count = |n: usize| i32::try_from(n).expect("less than 2^31 at once");
    let places = lens.iter().scan(0, |end, len| {
        let start = *end;
        *end += len;
        Some(as_count(start))
    });
    (lens.iter().map(|len| as_count(*len)).collect(), places.collect())
}

impl fmt::Debug for Mpi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} of {} of MPI", self.rank, self.size)
    }
}

impl Ranks for Mpi {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn exchange(&self, own: &[u8]) -> Vec<Vec<u8>> {
        let lens = self.gather_all(&[own.len() as u64], &vec![1; self.size]);
        let lens: Vec<usize> = lens.into_iter().map(|len| len as usize).collect();
        let all = self.gather_all(own, &lens);
        let mut rest = &all[..];
        let cut = |len: &usize| {
            let (own, others) = rest.split_at(*len);
            rest = others;
            own.to_vec()
        };
        lens.iter().map(cut).collect()
    }

    fn scatter(&self, to: &[&[f32]], lens: &[usize]) -> Vec<Vec<f32>> {
        let sent: Vec<f32> = to.concat();
        let sent_lens: Vec<usize> = to.iter().map(|numbers| numbers.len()).collect();
        let mut received = vec![0f32; lens.iter().sum()];
        self.with(|world| {
            let (counts, places) = counts_and_places(&sent_lens);
            let sent = Partition::new(&sent[..], counts, places);
            let (counts, places) = counts_and_places(lens);
            let mut received = PartitionMut::new(&mut received[..], counts, places);
            scope(|scope| wait(world.immediate_all_to_all_varcount_into(scope, &sent, &mut received)));
        });
        let mut rest = &received[..];
        let cut = |len: &usize| {
            let (own, others) = rest.split_at(*len);
            rest = others;
            own.to_vec()
        };
        lens.iter().map(cut).collect()
    }

    fn gather(&self, own: &[f32], lens: &[usize]) -> Vec<f32> {
        self.gather_all(own, lens)
    }

    fn give_up(&self) {
        // Without the lock: a thread may be waiting with it for a rank that has ended.
        SimpleCommunicator::world().abort(1);
    }
}
