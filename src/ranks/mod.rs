//! Ranks: processes that train one model together, each of which computes its share of the parts of every update.
//!
//! Nothing here is an engine: between processes and machines it is MPI (cargo feature `mpi`), within a process channels between
//! threads. [`Alone`] is a process by itself.
//!
//! All ranks make the same calls in the same order. A call returns when every rank has made it. None of them returns an error: when
//! a rank ends before the others, the launcher ends those too, and training continues from the last checkpoint.

mod launcher;
mod local;
#[cfg(feature = "mpi")]
mod mpi;
mod program;

pub use launcher::{local_rank, of_launcher};
pub use local::{Ended, Local, within_process};
pub use program::check_program;

use burn::tensor::Device;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;

/// One of several processes, or threads, that train together.
pub trait Ranks: Debug + Send + Sync {
    /// Which one this is, from 0. Rank 0 writes the run folder.
    fn rank(&self) -> usize;

    /// How many there are.
    fn size(&self) -> usize;

    /// What each rank says, in the order of ranks.
    fn exchange(&self, own: &[u8]) -> Vec<Vec<u8>>;

    /// Gives `to[r]` to rank `r`. What comes back is what each rank gave to this one, in the order of ranks: `lens[r]` numbers
    /// from rank `r`.
    fn scatter(&self, to: &[&[f32]], lens: &[usize]) -> Vec<Vec<f32>>;

    /// The numbers of all ranks one after the other: `lens[r]` from rank `r`.
    fn gather(&self, own: &[f32], lens: &[usize]) -> Vec<f32>;

    /// The devices of all ranks, where one process has them and they can add up tensors among themselves.
    fn devices(&self) -> Option<&[Device]> {
        None
    }

    /// Ends all ranks: processes at once, this one too; threads as soon as they wait for this one.
    fn give_up(&self) {}
}

/// A process that trains by itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Alone;

impl Ranks for Alone {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        1
    }

    fn exchange(&self, own: &[u8]) -> Vec<Vec<u8>> {
        vec![own.to_vec()]
    }

    fn scatter(&self, to: &[&[f32]], _lens: &[usize]) -> Vec<Vec<f32>> {
        to.iter().map(|numbers| numbers.to_vec()).collect()
    }

    fn gather(&self, own: &[f32], _lens: &[usize]) -> Vec<f32> {
        own.to_vec()
    }
}

/// What each rank says, in the order of ranks.
///
/// # Panics
/// If ranks say things of different kinds: they are not the same program.
pub fn say<T: Serialize + DeserializeOwned>(ranks: &dyn Ranks, own: T) -> Vec<T> {
    if ranks.size() == 1 {
        return vec![own];
    }
    let mut bytes = Vec::new();
    ciborium::into_writer(&own, &mut bytes).expect("a vector takes all that is written");
    let said = ranks.exchange(&bytes).into_iter();
    said.map(|bytes| ciborium::from_reader(&bytes[..]).expect("all ranks run the same program")).collect()
}

/// What `work` makes of each item, in the order of items: rank `r` works on items `r`, `r + size`, and so on, and all get all.
pub fn share<I, T: Serialize + DeserializeOwned>(
    ranks: &dyn Ranks,
    items: &[I],
    mut work: impl FnMut(&I) -> T,
) -> Vec<T> {
    let n = ranks.size();
    let own: Vec<T> = items.iter().skip(ranks.rank()).step_by(n).map(&mut work).collect();
    let mut found: Vec<_> = say(ranks, own).into_iter().map(Vec::into_iter).collect();
    (0..items.len()).map(|i| found[i % n].next().expect("every rank worked on its items")).collect()
}

/// Waits for all ranks.
pub fn meet(ranks: &dyn Ranks) {
    if ranks.size() > 1 {
        ranks.exchange(&[]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_worked_on_by_one_rank_and_known_to_all() {
        let items: Vec<u64> = (0..11).collect();
        let expected: Vec<(u64, f64)> = items.iter().map(|item| (item * item, f64::INFINITY)).collect();
        for size in 1..5 {
            let found: Vec<_> = std::thread::scope(|scope| {
                let ranks = within_process(size).into_iter();
                let work = |ranks: Local| {
                    let mut n_own = 0;
                    let found = share(&ranks, &items, |item| {
                        n_own += 1;
                        (item * item, f64::INFINITY)
                    });
                    (n_own, found)
                };
                let threads: Vec<_> = ranks.map(|ranks| scope.spawn(move || work(ranks))).collect();
                threads.into_iter().map(|thread| thread.join().expect("no rank panics")).collect()
            });
            assert_eq!(found.iter().map(|(n_own, _)| n_own).sum::<usize>(), items.len());
            assert!(found.iter().all(|(_, found)| *found == expected));
        }
    }
}
