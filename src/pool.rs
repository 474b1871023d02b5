//! The threads that operations on the CPU spread over.

use crate::backend::is_host;
use burn::tensor::Device;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Runs `work` on a thread of the pool that the operations on `device` spread over, if they do, and keeps the other threads
/// awake meanwhile.
///
/// From any other thread, each operation has to wake the pool and sleep until it is done, which takes longer than many
/// operations of a decoding step. On other devices, `work` runs where it is.
pub fn in_pool<T: Send>(device: &Device, work: impl FnOnce() -> T + Send) -> T {
    if !is_host(device) {
        return work();
    }
    rayon::scope(|_| {
        let _awake = Awake::new();
        work()
    })
}

/// How long a thread looks for work in vain before it may sleep.
const PATIENCE: Duration = Duration::from_millis(20);

/// Whether the threads are being kept awake already.
static IS_AWAKE: AtomicBool = AtomicBool::new(false);

/// Keeps the other threads of the pool looking for work while it lives. An update has hundreds of short operations with a few
/// microseconds between them, in which a thread of rayon's falls asleep; waking it takes longer than many of the operations.
///
/// One at a time in a process: two, each on a thread that the other keeps busy, would wait for each other.
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
        let (here, end) = (rayon::current_thread_index(), is_over.clone());
        rayon::spawn_broadcast(move |context| {
            if Some(context.index()) != here {
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

/// Does what there is to do until the end, or until nothing has come up for a while: whoever called this from a thread that
/// waits for something else is not held up for longer.
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

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::Device;
    use rayon::prelude::*;

    /// Work as of an update: operations on all threads with pauses between them.
    fn operations(device: &Device, n: usize) -> usize {
        in_pool(device, || (0..n).map(|i| (0..64usize).into_par_iter().map(|j| i * j % 7).sum::<usize>()).sum())
    }

    #[test]
    fn callers_at_once_and_inside_one_another_all_come_to_an_end() {
        #[cfg(feature = "flex")]
        {
            let expected = operations(&Device::flex(), 500);
            let found: Vec<usize> = std::thread::scope(|scope| {
                let callers: Vec<_> = (0..8)
                    .map(|_| scope.spawn(|| in_pool(&Device::flex(), || operations(&Device::flex(), 500))))
                    .collect();
                callers.into_iter().map(|caller| caller.join().expect("no caller panics")).collect()
            });
            assert_eq!(found, [expected; 8]);
        }
    }

    #[test]
    fn a_panic_ends_the_vigil() {
        #[cfg(feature = "flex")]
        {
            let panicked = std::panic::catch_unwind(|| in_pool(&Device::flex(), || panic!("on purpose")));
            assert!(panicked.is_err());
            if rayon::current_num_threads() > 1 {
                // Another test may be keeping the threads awake at the moment.
                let mut awake = std::iter::repeat_with(|| rayon::scope(|_| Awake::new())).take(1_000_000);
                assert!(awake.any(|awake| awake.is_some()));
            }
        }
    }
}
