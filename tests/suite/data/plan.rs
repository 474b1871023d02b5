//! Plans of epochs, and samples that vocabularies are made of.

use lookback::data::batch::{Plan, plan_epoch};
use lookback::data::tokenizer::{Sample, sampled_to};
use lookback::random::{Purpose, Stream};
use std::collections::BTreeSet;

/// The plan as it is defined, one list for each batch.
fn as_defined(lengths: &[(usize, usize)], max_tokens: usize, seed: u64, epoch: u64) -> Vec<Vec<u32>> {
    fn shuffle<T>(items: &mut [T], seed: u64, epoch: u64, stage: u64) {
        let stream = Stream::new(seed, Purpose::Shuffle, &[epoch, stage]);
        for i in (1..items.len()).rev() {
            items.swap(i, (stream.bits(i as u64) % (i as u64 + 1)) as usize);
        }
    }
    let mut order: Vec<u32> = (0..lengths.len() as u32).collect();
    shuffle(&mut order, seed, epoch, 0);
    let longest = |i: u32| lengths[i as usize].0.max(lengths[i as usize].1);
    let mean = order.iter().map(|i| longest(*i)).sum::<usize>() / order.len().max(1);
    let mut batches: Vec<Vec<u32>> = Vec::new();
    for pool in order.chunks_mut((64 * max_tokens / mean.max(1)).max(1)) {
        pool.sort_by_key(|i| (lengths[*i as usize].1, lengths[*i as usize].0));
        let mut batch: Vec<u32> = Vec::new();
        for i in pool {
            let width = batch.iter().chain([&*i]).map(|i| longest(*i) + 1).max().unwrap();
            if !batch.is_empty() && width * (batch.len() + 1) > max_tokens {
                batches.push(std::mem::take(&mut batch));
            }
            batch.push(*i);
        }
        batches.push(batch);
    }
    shuffle(&mut batches, seed, epoch, 1);
    batches
}

#[test]
fn a_plan_is_what_it_was_defined_as() {
    let drawn = Stream::new(9, Purpose::Sampling, &[]);
    for (n, max_tokens) in [(0, 10), (1, 1), (500, 30), (3000, 7), (3000, 200)] {
        let draw = |i: usize| (drawn.bits(i as u64) % 12) as usize;
        let lengths: Vec<(usize, usize)> = (0..n).map(|i| (draw(2 * i), draw(2 * i + 1))).collect();
        for epoch in 0..3 {
            let plan = plan_epoch(n, |i| lengths[i], max_tokens, 4, epoch);
            let expected = as_defined(&lengths, max_tokens, 4, epoch);
            assert_eq!(plan.iter().map(<[u32]>::to_vec).collect::<Vec<_>>(), expected, "{n} in {max_tokens}");
            assert_eq!((plan.len(), plan.is_empty()), (expected.len(), n == 0));
        }
    }
}

#[test]
fn a_part_of_a_plan_has_some_of_its_batches() {
    let plan: Plan = (0..6).map(|batch| vec![batch, batch + 10]).collect();
    let part = plan.part(2..5).part(1..9);
    assert_eq!(part.iter().collect::<Vec<_>>(), [[3, 13], [4, 14]]);
    assert_eq!((part.get(0), part.get(2), plan.get(6)), (Some(&[3, 13][..]), None, None));
}

#[test]
fn a_sample_is_the_same_whether_all_is_at_hand_or_comes_one_by_one() {
    let items: Vec<u32> = (0..1000).collect();
    let mut seen = BTreeSet::new();
    for seed in 0..40 {
        let mut sample = Sample::new(100, seed);
        items.iter().for_each(|item| sample.offer(|| *item));
        assert!(sample.is_part());
        let drawn = sample.finish();
        assert_eq!(drawn, *sampled_to(&items, 100, seed));
        assert!(drawn.len() == 100 && drawn.is_sorted(), "in their order");
        seen.extend(drawn);
    }
    assert!(seen.len() > 950, "every item can be drawn, and {} were", seen.len());
    assert_eq!(*sampled_to(&items, 1000, 1), items, "what is few enough is taken whole");
}
