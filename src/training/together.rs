//! The sum of the gradients of an update whose parts are shared out among ranks.
//!
//! Part `i` of an update belongs to rank `i mod size`; so many parts, one for each rank, are a round. Each rank adds up one
//! stretch of all numbers: it gets that stretch of every part, in the order of the parts, and adds it to what it has. In the end all
//! get all stretches. The parts are added in the order in which one process adds them, so that the sum has the same bits.
//!
//! A thread of its own speaks with the other ranks, a bucket at a time, while the next part is computed.

use super::gradient_set::{GradientSet, Layout};
use super::loss::LossSums;
use crate::error::{Error, Result};
use crate::models::weights;
use crate::ranks::{Ended, Ranks, say};
use burn::module::Module;
use burn::tensor::Device;
use std::ops::Range;
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

/// Numbers that go to each rank at once.
const BUCKET: usize = 1 << 18;

/// What a rank has computed of one part of an update.
pub(super) struct Part {
    /// Its place among the parts of the update.
    pub(super) number: usize,
    pub(super) gradients: GradientSet,
    pub(super) sums: LossSums,
}

/// The sum over all parts of an update.
#[derive(Default)]
pub(super) struct Sum {
    pub(super) gradients: GradientSet,
    pub(super) sums: LossSums,
    /// Seconds that this rank waited for it, having computed its own parts.
    pub(super) seconds: f64,
}

/// Why ranks that read the same checkpoint would have other parameters.
pub(super) const OTHER_FOLDER: &str = "all ranks have to see the same run folder";
/// Why ranks that added the same gradients would.
pub(super) const OTHER_MACHINE: &str = "its processor or device computes other bits, or is faulty; give all ranks the same kind, \
                                        and continue from the last checkpoint";

/// Refuses ranks whose parameters are not the same, or not those after the same update; `why` says what to look for. All ranks
/// refuse together.
pub(super) fn check_same<M: Module>(ranks: &dyn Ranks, model: &M, update: u64, why: &str) -> Result<()> {
    if ranks.size() == 1 {
        return Ok(());
    }
    let said = say(ranks, (update, weights::checksum(&weights::collect(model))));
    let Some(other) = said.iter().position(|own| *own != said[0]) else { return Ok(()) };
    let ((update, _), (of_first, _)) = (&said[other], &said[0]);
    let what = match update == of_first {
        true => format!("rank {other} has other parameters than rank 0 after update {update}"),
        false => format!("rank {other} is at update {update} and rank 0 at update {of_first}"),
    };
    Err(Error::message(format!("{what}: {why}")))
}

/// The parts of an update, of which there are `n`, that a rank works on.
pub(super) fn own_parts(ranks: &dyn Ranks, n: usize) -> impl Iterator<Item = usize> {
    (ranks.rank()..n).step_by(ranks.size())
}

/// The sum over the `n` parts of an update; `compute` makes those of this rank, one after the other.
///
/// # Panics
/// If another rank ends.
pub(super) fn sum(
    ranks: &dyn Ranks,
    layout: &Layout,
    n: usize,
    device: &Device,
    compute: impl FnMut() -> Option<Part>,
) -> Sum {
    if let Some(devices) = ranks.devices() {
        return sum_on_devices(ranks, layout, device, devices, compute);
    }
    let mut own = Vec::new();
    let mut has_gradient = vec![false; layout.len()];
    let (total, start) = std::thread::scope(|scope| {
        let (sender, receiver) = channel();
        let adder = scope.spawn(move || add_up(ranks, layout.n_numbers(), n, &receiver));
        for Part { number, gradients, sums } in std::iter::from_fn(compute) {
            own.push((number, sums));
            let numbers = gradients.flatten(layout, &mut has_gradient);
            // An adder that has ended says why when it is waited for.
            let _ = sender.send(numbers);
        }
        drop(sender);
        let start = Instant::now();
        (adder.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), start)
    });
    let has_gradient = say(ranks, has_gradient).into_iter().reduce(|mut has, other| {
        has.iter_mut().zip(other).for_each(|(has, other)| *has |= other);
        has
    });
    let gradients = GradientSet::from_flat(layout, &total, &has_gradient.unwrap_or_default(), device);
    Sum { gradients, sums: in_order(ranks, own), seconds: start.elapsed().as_secs_f64() }
}

/// The same by burn's all-reduce: the order of the sum is the devices', so that the last bits may differ.
fn sum_on_devices(
    ranks: &dyn Ranks,
    layout: &Layout,
    device: &Device,
    devices: &[Device],
    compute: impl FnMut() -> Option<Part>,
) -> Sum {
    let mut own = Vec::new();
    let mut total = GradientSet::default();
    for Part { number, gradients, sums } in std::iter::from_fn(compute) {
        own.push((number, sums));
        total.add(gradients);
    }
    let start = Instant::now();
    let gradients = total.all_reduced(layout, device, devices);
    Sum { gradients, sums: in_order(ranks, own), seconds: start.elapsed().as_secs_f64() }
}

/// The sums of the loss over all parts, of which each rank knows its own, by number.
fn in_order(ranks: &dyn Ranks, own: Vec<(usize, LossSums)>) -> LossSums {
    let mut parts: Vec<(usize, LossSums)> = say(ranks, own).into_iter().flatten().collect();
    parts.sort_by_key(|(number, _)| *number);
    let mut total = LossSums::default();
    parts.into_iter().for_each(|(_, sums)| total += sums);
    total
}

/// Ends all ranks, since this one has not computed all of its parts: the others would wait for them without end. Whoever was
/// computing them says why.
fn leave(ranks: &dyn Ranks) -> ! {
    ranks.give_up();
    std::panic::resume_unwind(Box::new(Ended))
}

/// The sum of `n` parts of `n_numbers` numbers each, of which this rank's come one after the other.
fn add_up(ranks: &dyn Ranks, n_numbers: usize, n: usize, own: &Receiver<Vec<f32>>) -> Vec<f32> {
    let size = ranks.size();
    let stretches: Vec<Range<usize>> = (0..size).map(|r| r * n_numbers / size..(r + 1) * n_numbers / size).collect();
    let longest = stretches.iter().map(Range::len).max().unwrap_or(0);
    let mine = stretches[ranks.rank()].clone();
    let mut total: Vec<f32> = Vec::new();
    for round in 0..n.div_ceil(size) {
        let n_in_round = (n - round * size).min(size);
        let numbers = match ranks.rank() < n_in_round {
            true => own.recv().unwrap_or_else(|_| leave(ranks)),
            false => Vec::new(),
        };
        for start in (0..longest).step_by(BUCKET) {
            let bucket = |stretch: &Range<usize>| {
                let first = (stretch.start + start).min(stretch.end);
                first..(first + BUCKET).min(stretch.end)
            };
            let to: Vec<&[f32]> =
                stretches.iter().map(|stretch| numbers.get(bucket(stretch)).unwrap_or_default()).collect();
            let place = bucket(&mine);
            let lens: Vec<usize> = (0..size).map(|rank| if rank < n_in_round { place.len() } else { 0 }).collect();
            let mut parts = ranks.scatter(&to, &lens).into_iter().take(n_in_round);
            let place = place.start - mine.start..place.end - mine.start;
            if round == 0 {
                // As one process does: the first part is not added to zero, which would lose the sign of a zero.
                total.extend(parts.next().into_iter().flatten());
            }
            for part in parts {
                total[place.clone()].iter_mut().zip(part).for_each(|(total, number)| *total += number);
            }
        }
    }
    let lens: Vec<usize> = stretches.iter().map(Range::len).collect();
    ranks.gather(&total, &lens)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ranks::within_process;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    /// Numbers whose sum depends on the order in which they are added.
    fn part(number: usize, n_numbers: usize) -> Vec<f32> {
        (0..n_numbers)
            .map(|i| ((number * 7919 + i * 104_729) as f32).sin() * 10f32.powi((i + number) as i32 % 9))
            .collect()
    }

    #[test]
    fn any_number_of_ranks_adds_in_the_order_of_the_parts() {
        for (n_parts, n_numbers) in [(1, 5), (4, 1000), (7, 3), (5, 2 * BUCKET + 17)] {
            let mut expected = part(0, n_numbers);
            for number in 1..n_parts {
                expected.iter_mut().zip(part(number, n_numbers)).for_each(|(total, number)| *total += number);
            }
            let backwards = (0..n_parts).rev().map(|number| part(number, n_numbers)).reduce(|mut total, part| {
                total.iter_mut().zip(part).for_each(|(total, number)| *total += number);
                total
            });
            if n_parts > 2 {
                assert_ne!(backwards.as_ref(), Some(&expected), "the order is to matter");
            }
            for size in [1, 2, 3, 8] {
                std::thread::scope(|scope| {
                    for ranks in within_process(size) {
                        let expected = &expected;
                        scope.spawn(move || {
                            let (sender, receiver) = channel();
                            let own = own_parts(&ranks, n_parts);
                            own.for_each(|number| sender.send(part(number, n_numbers)).expect("it is listened to"));
                            assert_eq!(&add_up(&ranks, n_numbers, n_parts, &receiver), expected);
                        });
                    }
                });
            }
        }
    }

    /// The first of two ranks, which counts what it is asked to do; of the other come zeros.
    #[derive(Debug, Default)]
    struct Counting {
        n_scattered: AtomicUsize,
        n_given_up: AtomicUsize,
    }

    impl Ranks for Counting {
        fn rank(&self) -> usize {
            0
        }

        fn size(&self) -> usize {
            2
        }

        fn exchange(&self, own: &[u8]) -> Vec<Vec<u8>> {
            vec![own.to_vec(); 2]
        }

        fn scatter(&self, _to: &[&[f32]], lens: &[usize]) -> Vec<Vec<f32>> {
            self.n_scattered.fetch_add(1, Relaxed);
            lens.iter().map(|len| vec![0.0; *len]).collect()
        }

        fn gather(&self, _own: &[f32], lens: &[usize]) -> Vec<f32> {
            vec![0.0; lens.iter().sum()]
        }

        fn give_up(&self) {
            self.n_given_up.fetch_add(1, Relaxed);
        }
    }

    #[test]
    fn a_part_that_is_not_computed_ends_all_ranks_and_nothing_is_sent_in_its_place() {
        let ranks = Counting::default();
        let (sender, receiver) = channel();
        // The first of two parts is computed; a panic in the second drops the sender.
        sender.send(vec![1.0; 6]).expect("it is listened to");
        drop(sender);
        let unwound = catch_unwind(AssertUnwindSafe(|| add_up(&ranks, 6, 4, &receiver)));
        assert!(unwound.expect_err("there is no sum").is::<Ended>());
        assert_eq!((ranks.n_scattered.into_inner(), ranks.n_given_up.into_inner()), (1, 1));
    }
}
