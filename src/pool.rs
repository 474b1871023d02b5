//! The threads that operations on the CPU spread over.

use crate::backend::is_host;
use burn::tensor::Device;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

thread_local! {
    /// Whether this thread is in the middle of somebody's `in_pool`.
    static IS_BUSY: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work` on a thread of the pool that the operations on `device` spread over, if they do, and keeps the other threads
/// awake meanwhile: until they have found nothing to do for a fiftieth of a second, so that `work` should be an update or
/// a batch rather than a whole training.
///
/// From any other thread, each operation has to wake the pool and sleep until it is done, which takes longer than many
/// operations of a decoding step. On other devices, `work` runs where it is.
pub fn in_pool<T: Send>(device: &Device, work: impl FnOnce() -> T + Send) -> T {
    if !is_host(device) {
        return work();
    }
    rayon::scope(|_| {
        let _busy = Busy { before: IS_BUSY.replace(true) };
        let _awake = Awake::new();
        work()
    })
}

/// How many items [`each_in_pool`] has in the works at once.
pub fn width(device: &Device) -> usize {
    if is_host(device) { rayon::current_num_threads() } else { 1 }
}

/// Calls `work` on every item on a thread of the pool, as [`in_pool`] does, and hands the results to `take` on this thread, in the
/// order in which they come.
///
/// If operations on `device` spread over the pool, as many items are in the works as it has threads: what is small does not gain
/// from several threads, and threads that each have something of their own to do do not wait for each other. No more than
/// that, because a thread that waits for a part of its operation begins whatever it finds, and ends it first.
pub fn each_in_pool<I: Sync, T: Send>(
    device: &Device,
    items: &[I],
    work: impl Fn(&I) -> T + Sync,
    mut take: impl FnMut(T),
) {
    let n_at_once = width(device).min(items.len());
    // A thread of the pool may not sleep while it waits for results: the pool might have no other.
    if n_at_once <= 1 || rayon::current_thread_index().is_some() {
        return items.iter().for_each(|item| take(in_pool(device, || work(item))));
    }
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel();
    rayon::in_place_scope(|scope| {
        for sender in std::iter::repeat_n(sender, n_at_once) {
            scope.spawn(|_| {
                let sender = sender;
                while let Some(item) = items.get(next.fetch_add(1, Relaxed)) {
                    // Nobody listens only if `take` has panicked.
                    if sender.send(in_pool(device, || work(item))).is_err() {
                        break;
                    }
                }
            });
        }
        receiver.iter().for_each(take);
    });
}

/// Marks the thread while it lives.
struct Busy {
    before: bool,
}

impl Drop for Busy {
    fn drop(&mut self) {
        IS_BUSY.set(self.before);
    }
}

/// How long a thread looks for work in vain before it may sleep.
const PATIENCE: Duration = Duration::from_millis(20);

/// Whether the threads are being kept awake already.
static IS_AWAKE: AtomicBool = AtomicBool::new(false);

/// Keeps the other threads of the pool looking for work while it lives. An update has hundreds of short operations with a few
/// microseconds between them, in which a thread of rayon's falls asleep; waking it takes longer than many of the operations.
///
/// A thread that is busy for another caller takes no part, or that caller would wait for the end of this one's work. One is
/// enough in a process.
struct Awake {
    is_over: Arc<AtomicBool>,
}

impl Awake {
    /// Nothing, where others keep the threads awake or there are no others.
    fn new() -> Option<Self> {
        if rayon::current_num_threads() == 1 || IS_AWAKE.swap(true, Relaxed) {
            return None;
        }
        let is_over = Arc::new(AtomicBool::new(false));
        let end = is_over.clone();
        rayon::spawn_broadcast(move |_| {
            if !IS_BUSY.get() {
                look_for_work(&end);
            }
        });
        Some(Self { is_over })
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        self.is_over.store(true, Relaxed);
        IS_AWAKE.store(false, Relaxed);
    }
}

/// Does what there is to do until the end, or until nothing has come up for a while.
fn look_for_work(is_over: &AtomicBool) {
    let mut last = Instant::now();
    while !is_over.load(Relaxed) {
        if rayon::yield_now() == Some(rayon::Yield::Executed) {
            last = Instant::now();
        } else if last.elapsed() > PATIENCE {
            break;
        } else {
            // Another program may have a use for the core.
            std::thread::yield_now();
        }
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use rayon::prelude::*;

    /// Work as of an update: operations on all threads with pauses between them.
    fn operations(n: usize) -> usize {
        in_pool(&Device::flex(), || {
            (0..n).map(|i| (0..64usize).into_par_iter().map(|j| i * j % 7).sum::<usize>()).sum()
        })
    }

    #[test]
    fn callers_at_once_and_inside_one_another_all_come_to_an_end() {
        let expected = operations(500);
        let found: Vec<usize> = std::thread::scope(|scope| {
            let nested = || in_pool(&Device::flex(), || operations(500));
            let callers: Vec<_> = (0..8).map(|_| scope.spawn(nested)).collect();
            callers.into_iter().map(|caller| caller.join().expect("no caller panics")).collect()
        });
        assert_eq!(found, [expected; 8]);
        rayon::broadcast(|_| assert!(!IS_BUSY.get(), "nobody is busy once all are done"));
    }

    #[test]
    fn every_item_is_worked_on_once_wherever_the_caller_is() {
        let items: Vec<usize> = (0..40).collect();
        let collected = || {
            let mut found = Vec::new();
            each_in_pool(&Device::flex(), &items, |item| (*item, operations(item % 3)), |result| found.push(result));
            found.sort_unstable();
            found
        };
        let expected: Vec<(usize, usize)> = items.iter().map(|item| (*item, operations(item % 3))).collect();
        assert_eq!(collected(), expected);
        assert_eq!(in_pool(&Device::flex(), collected), expected);
    }

    #[test]
    fn a_panic_in_an_item_reaches_the_caller() {
        let items = [1, 2, 3, 4];
        let work = |item: &i32| assert!(*item != 3, "on purpose");
        let panicked = std::panic::catch_unwind(|| each_in_pool(&Device::flex(), &items, work, |()| ()));
        assert!(panicked.is_err());
    }

    #[test]
    fn a_panic_lets_the_threads_sleep() {
        let panicked = std::panic::catch_unwind(|| in_pool(&Device::flex(), || panic!("on purpose")));
        assert!(panicked.is_err());
        if rayon::current_num_threads() > 1 {
            // Another test may be keeping the threads awake at the moment.
            let mut awake = std::iter::repeat_with(|| rayon::scope(|_| Awake::new())).take(1_000_000);
            assert!(awake.any(|awake| awake.is_some()));
        }
    }
}
