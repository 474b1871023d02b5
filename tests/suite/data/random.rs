//! The generator's numbers are part of the file format of generated data: they may never change.

use lookback::data::{Rng, stream};

/// The first numbers of a stream, computed outside this program (see the comment in the test).
#[test]
fn the_numbers_never_change() {
    // def mix(z):
    //     z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9 % 2**64
    //     z = (z ^ z >> 27) * 0x94d049bb133111eb % 2**64
    //     return z ^ z >> 31
    // def fnv(text):
    //     h = 0xcbf29ce484222325
    //     for byte in text.encode():
    //         h = (h ^ byte) * 0x100000001b3 % 2**64
    //     return mix(h)
    // gamma = 0x9e3779b97f4a7c15
    // def numbers(seed, purpose, index, n):
    //     key = mix((mix(mix((seed + gamma) % 2**64) ^ fnv(purpose)) + index * gamma) % 2**64)
    //     return [mix((key + k * gamma) % 2**64) for k in range(1, n + 1)]
    let mut rng = stream(42, "shuffle", 7);
    let numbers: Vec<u64> = (0..3).map(|_| rng.next_u64()).collect();
    assert_eq!(numbers, [0xc6987dfed295da28, 0x330e67b2b752e546, 0xcd516f8b6dc37faf]);
}

#[test]
fn seed_purpose_and_index_each_change_the_numbers() {
    let first = |seed, purpose, index| stream(seed, purpose, index).next_u64();
    let base = first(1, "a", 1);
    assert_eq!(base, first(1, "a", 1));
    for other in [first(2, "a", 1), first(1, "b", 1), first(1, "a", 2), first(1, "", 1)] {
        assert_ne!(base, other);
    }
}

#[test]
fn below_is_even_and_stays_below() {
    const N: usize = 70_000;
    let mut counts = [0usize; 7];
    let mut rng = stream(3, "even", 0);
    for _ in 0..N {
        counts[rng.below(7) as usize] += 1;
    }
    // Standard deviation of each count: sqrt(N 1/7 6/7) = 93; five of them never happen.
    assert!(counts.iter().all(|&count| count.abs_diff(N / 7) < 465), "{counts:?}");
    assert!((0..1000).all(|_| rng.below(1) == 0));
}

#[test]
fn between_reaches_both_ends() {
    let mut rng = stream(3, "ends", 0);
    let drawn: std::collections::BTreeSet<usize> = (0..200).map(|_| rng.between(5, 7)).collect();
    assert_eq!(drawn.into_iter().collect::<Vec<_>>(), [5, 6, 7]);
    rng.between(0, usize::MAX);
}

#[test]
fn unit_lies_in_zero_to_one_with_mean_one_half() {
    let mut rng = stream(3, "unit", 0);
    let values: Vec<f64> = (0..10_000).map(|_| rng.unit()).collect();
    assert!(values.iter().all(|value| (0.0..1.0).contains(value)));
    // Standard deviation of the mean: 1 / sqrt(12 * 10000) = 0.0029.
    let mean = values.iter().sum::<f64>() / 10_000.0;
    assert!((mean - 0.5).abs() < 0.015, "{mean}");
}

#[test]
fn shuffle_keeps_the_items_and_reaches_every_order() {
    let mut orders = std::collections::BTreeSet::new();
    for index in 0..300 {
        let mut items = [1, 2, 3];
        stream(9, "orders", index).shuffle(&mut items);
        orders.insert(items);
    }
    let all = [[1, 2, 3], [1, 3, 2], [2, 1, 3], [2, 3, 1], [3, 1, 2], [3, 2, 1]];
    assert_eq!(orders.into_iter().collect::<Vec<_>>(), all);
}

#[test]
#[should_panic(expected = "n must be positive")]
fn below_zero_is_a_programming_mistake() {
    let mut rng: Rng = stream(0, "", 0);
    rng.below(0);
}
