//! Answers to all that has been read: sums, states, and what comes next.

use super::{symbols, words};
use lookback::data::tasks::{ArithmeticConfig, DepthConfig, NextValueConfig, ParityConfig};
use lookback::data::{Pair, Split, TaskConfig};
use std::collections::BTreeSet;

#[test]
fn parity_says_whether_the_ones_are_odd() {
    let mut answers = BTreeSet::new();
    for Pair { source, target } in TaskConfig::from_name("parity").unwrap().generate(Split::Train, 200, 3).unwrap() {
        let ones = words(&source).iter().filter(|bit| **bit == "1").count();
        assert_eq!(target, if ones % 2 == 1 { "odd" } else { "even" });
        answers.insert(target);
    }
    assert_eq!(answers.len(), 2);
}

#[test]
fn parity_asked_after_every_bit_is_that_of_every_beginning() {
    let task = TaskConfig::Parity(ParityConfig { min_len: 1, max_len: 9, asks_all: true });
    for Pair { source, target } in task.generate(Split::Train, 100, 3).unwrap() {
        let (bits, answers): (Vec<&str>, Vec<&str>) = (source.split(' ').collect(), target.split(' ').collect());
        assert_eq!(bits.len(), answers.len());
        for (i, answer) in answers.iter().enumerate() {
            let ones = bits[..=i].iter().filter(|bit| **bit == "1").count();
            assert_eq!(*answer, if ones % 2 == 1 { "odd" } else { "even" }, "{source}, bit {i}");
        }
    }
}

#[test]
fn modular_arithmetic_multiplies_before_it_adds() {
    for modulus in [2, 5, 11] {
        let config = ArithmeticConfig { modulus, min_len: 1, max_len: 9, asks_all: false };
        for Pair { source, target } in TaskConfig::Arithmetic(config).generate(Split::Train, 300, 4).unwrap() {
            assert_eq!(target, by_hand(&source, modulus), "{source} modulo {modulus}");
        }
    }
}

#[test]
fn modular_arithmetic_asked_after_every_number_is_that_of_every_beginning() {
    let config = ArithmeticConfig { modulus: 7, min_len: 1, max_len: 9, asks_all: true };
    let at_the_end = TaskConfig::Arithmetic(ArithmeticConfig { asks_all: false, ..config.clone() });
    let pairs = TaskConfig::Arithmetic(config).generate(Split::Train, 100, 4).unwrap();
    for (Pair { source, target }, alone) in pairs.iter().zip(at_the_end.generate(Split::Train, 100, 4).unwrap()) {
        let (symbols, answers) = (words(source), words(target));
        assert_eq!(symbols.len(), 2 * answers.len() - 1, "{source}");
        for (i, answer) in answers.iter().enumerate() {
            assert_eq!(*answer, by_hand(&symbols[..=2 * i].join(" "), 7), "{source}, number {i}");
        }
        assert_eq!((source, *answers.last().unwrap()), (&alone.source, alone.target.as_str()));
    }
}

/// The value of an expression: terms of whole numbers, and what is left of their sum.
fn by_hand(expression: &str, modulus: usize) -> String {
    let spaced = expression.replace("- ", "+ -1 * ");
    let terms = spaced.split(" + ").map(|term| term.split(" * ").map(|n| n.parse::<i64>().unwrap()).product::<i64>());
    terms.sum::<i64>().rem_euclid(modulus as i64).to_string()
}

#[test]
fn depths_count_the_open_brackets() {
    let config = DepthConfig { max_depth: 3, min_len: 2, max_len: 30 };
    let mut depths = BTreeSet::new();
    for Pair { source, target } in TaskConfig::Depth(config).generate(Split::Train, 200, 5).unwrap() {
        let mut depth = 0;
        for (bracket, told) in words(&source).into_iter().zip(words(&target)) {
            depth += if bracket == "(" { 1 } else { -1 };
            assert_eq!(told, depth.to_string());
            depths.insert(depth);
        }
        assert_eq!(words(&source).len(), words(&target).len());
    }
    assert_eq!(depths, (0..=3).collect());
}

#[test]
fn rises_asks_for_what_comes_next() {
    let task = TaskConfig::Rises(symbols(5, 1, 9));
    for Pair { source, target } in task.generate(Split::Train, 200, 3).unwrap() {
        let (source, target): (Vec<&str>, Vec<&str>) = (source.split(' ').collect(), target.split(' ').collect());
        assert_eq!(source.len(), target.len());
        for (i, tag) in target.iter().enumerate() {
            let rises = source.get(i + 1).is_some_and(|next| *next > source[i]);
            assert_eq!(*tag, if rises { "<" } else { ">" }, "{source:?}, symbol {i}");
        }
    }
}

#[test]
fn the_next_value_has_the_errors_that_its_page_names() {
    let task = TaskConfig::NextValue(NextValueConfig { min_len: 1, max_len: 39 });
    // Of the forecasts best, from one value, last value and mean: sum of squares and count, at the first step and at the others.
    let mut sums = [[(0.0f64, 0usize); 4]; 2];
    for Pair { source, target } in task.generate(Split::Train, 20_000, 1).unwrap() {
        let numbers = |text: &str| -> Vec<f64> { text.split(' ').map(|number| number.parse().unwrap()).collect() };
        let (source, target) = (numbers(&source), numbers(&target));
        assert_eq!(source.len(), target.len());
        assert_eq!(source[1..], target[..target.len() - 1]);
        for t in 0..source.len() {
            let from_one = 15.0 / 19.0 * source[t];
            let best = if t == 0 { from_one } else { 1.5 * source[t] - 0.9 * source[t - 1] };
            for (forecast, sum) in [best, from_one, source[t], 0.0].into_iter().zip(&mut sums[usize::from(t > 0)]) {
                sum.0 += (target[t] - forecast).powi(2);
                sum.1 += 1;
            }
        }
    }
    let (variance, from_one, last) = (475.0 / 34.0, 100.0 / 19.0, 100.0 / 17.0);
    for (place, expected) in [[from_one, from_one, last, variance], [1.0, from_one, last, variance]].iter().enumerate()
    {
        for ((sum, n), expected) in sums[place].iter().zip(expected) {
            let found = sum / *n as f64;
            // 20,000 first steps: a relative standard deviation of (2 / 20,000)^0.5, 1 %.
            assert!((found / expected - 1.0).abs() < 0.035, "place {place}: {found} instead of {expected}");
        }
    }
    let best = sums[1][0];
    assert!((best.0 / best.1 as f64 - 1.0).abs() < 0.01, "{best:?}");
}
