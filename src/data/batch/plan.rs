//! Which examples are learnt from together, and in which order.

use crate::mapped::Numbers;
use crate::random::{Purpose, Stream};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;

/// The batches of one epoch, as numbers of examples, in training order. The numbers of a long plan lie in a temporary file, so that
/// it takes no memory to speak of, however many examples there are.
#[derive(Clone, Debug)]
pub struct Plan {
    numbers: Arc<Numbers>,
    /// Of each batch, where its numbers begin and end.
    bounds: Arc<Numbers>,
    batches: Range<usize>,
}

impl Plan {
    fn new(numbers: Numbers, bounds: Vec<u32>) -> Self {
        let batches = 0..bounds.len() / 2;
        Self { numbers: Arc::new(numbers), bounds: Arc::new(bounds.into()), batches }
    }

    /// `numbers` in batches of `size`.
    pub(in crate::data) fn of_equal(numbers: Numbers, size: usize) -> Self {
        let n = numbers.len();
        let bounds = (0..n).step_by(size).flat_map(|start| [start as u32, (start + size).min(n) as u32]).collect();
        Self::new(numbers, bounds)
    }

    /// How many batches there are.
    pub fn len(&self) -> usize {
        self.batches.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// The numbers of a batch.
    pub fn get(&self, batch: usize) -> Option<&[u32]> {
        let batch = self.batches.clone().nth(batch)?;
        Some(&self.numbers[self.bounds[2 * batch] as usize..self.bounds[2 * batch + 1] as usize])
    }

    /// The batches, in training order.
    pub fn iter(&self) -> impl Iterator<Item = &[u32]> {
        (0..self.len()).filter_map(|batch| self.get(batch))
    }

    /// Some of the batches.
    pub fn part(&self, part: Range<usize>) -> Self {
        let place = |at: usize| self.batches.start + at.min(self.len());
        Self { batches: place(part.start)..place(part.end), ..self.clone() }
    }
}

impl FromIterator<Vec<u32>> for Plan {
    fn from_iter<I: IntoIterator<Item = Vec<u32>>>(batches: I) -> Self {
        let (mut numbers, mut bounds) = (Vec::new(), Vec::new());
        for batch in batches {
            bounds.push(numbers.len() as u32);
            numbers.extend(batch);
            bounds.push(numbers.len() as u32);
        }
        Self::new(numbers.into(), bounds)
    }
}

/// The most examples that there may be: their numbers have 32 bits.
pub const MAX_EXAMPLES: usize = u32::MAX as usize;

/// The plan of one epoch of `n` examples whose lengths, source and target, `length` knows.
///
/// Sentences of similar length come together, so that little is padded: a shuffled corpus is cut into pools, each pool is
/// sorted by length and cut into batches of at most `max_tokens`, and the batches are shuffled again. The plan is a function
/// of (seed, epoch), so that a position in the data is a pair (epoch, batch).
///
/// # Panics
/// If there are more than [`MAX_EXAMPLES`].
pub fn plan_epoch(
    n: usize,
    length: impl Fn(usize) -> (usize, usize) + Sync,
    max_tokens: usize,
    seed: u64,
    epoch: u64,
) -> Plan {
    const POOL_BATCHES: usize = 64;
    let mut order = shuffled(n, seed, epoch, 0);
    let total: usize = (0..n).into_par_iter().map(&length).map(|(source, target)| source.max(target)).sum();
    let pool_size = (POOL_BATCHES * max_tokens / (total / n.max(1)).max(1)).max(1);
    let bounds_of = |(number, pool): (usize, &mut [u32])| {
        // Stable: equal lengths stay in shuffled order.
        let mut sorted: Vec<(usize, usize, u32)> =
            pool.iter().map(|i| (length(*i as usize), *i)).map(|((s, t), i)| (t, s, i)).collect();
        sorted.sort_by_key(|(target, source, _)| (*target, *source));
        for (place, (_, _, i)) in pool.iter_mut().zip(&sorted) {
            *place = *i;
        }
        let start = number * pool_size;
        let lengths = sorted.iter().map(|(target, source, _)| (*source, *target));
        ends(lengths, max_tokens).into_iter().map(|end| (start + end) as u32).collect::<Vec<u32>>()
    };
    let ends: Vec<Vec<u32>> = order.par_chunks_mut(pool_size).enumerate().map(bounds_of).collect();
    let mut start = 0;
    let mut batches: Vec<[u32; 2]> =
        ends.into_iter().flatten().map(|end| [std::mem::replace(&mut start, end), end]).collect();
    shuffle(&mut batches, seed, epoch, 1);
    Plan::new(order, batches.into_flattened())
}

/// The numbers below `n`, shuffled.
pub(in crate::data) fn shuffled(n: usize, seed: u64, epoch: u64, stage: u64) -> Numbers {
    assert!(n <= MAX_EXAMPLES, "examples are counted with 32 bits");
    let mut order = Numbers::zeros(n);
    for (place, number) in order.iter_mut().zip(0..) {
        *place = number;
    }
    shuffle(&mut order, seed, epoch, stage);
    order
}

/// The batches of a corpus that is read once, longest sentences together, in a fixed order.
pub fn plan_by_length(lengths: &[(usize, usize)], max_tokens: usize) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..lengths.len()).collect();
    order.sort_by_key(|i| (lengths[*i].0.max(lengths[*i].1), *i));
    cut(&order, lengths, max_tokens)
}

/// Cuts `order` into batches whose padded size stays within `max_tokens` on either side; a sentence longer than that is a
/// batch of its own.
fn cut(order: &[usize], lengths: &[(usize, usize)], max_tokens: usize) -> Vec<Vec<usize>> {
    let mut start = 0;
    let ends = ends(order.iter().map(|i| lengths[*i]), max_tokens);
    ends.into_iter().map(|end| order[std::mem::replace(&mut start, end)..end].to_vec()).collect()
}

/// Where the batches of [`cut`] end.
fn ends(lengths: impl Iterator<Item = (usize, usize)>, max_tokens: usize) -> Vec<usize> {
    let mut ends: Vec<usize> = Vec::new();
    let (mut longest, mut start) = (0, 0);
    for (i, (source, target)) in lengths.enumerate() {
        // One more for the end symbol.
        let len = source.max(target) + 1;
        match ends.last_mut() {
            Some(end) if longest.max(len) * (i - start + 1) <= max_tokens => {
                longest = longest.max(len);
                *end = i + 1;
            }
            _ => {
                (longest, start) = (len, i);
                ends.push(i + 1);
            }
        }
    }
    ends
}

/// Fisher-Yates with numbers that depend on nothing but the arguments.
fn shuffle<T>(items: &mut [T], seed: u64, epoch: u64, stage: u64) {
    let stream = Stream::new(seed, Purpose::Shuffle, &[epoch, stage]);
    for i in (1..items.len()).rev() {
        items.swap(i, (stream.bits(i as u64) % (i as u64 + 1)) as usize);
    }
}
