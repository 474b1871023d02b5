//! Copies of symbols, in one order or another: all of them, some, and those that are asked for.

use super::{symbols, words};
use lookback::data::tasks::{RecallConfig, SelectiveCopyConfig};
use lookback::data::{Pair, Split, TaskConfig};
use std::collections::BTreeSet;

#[test]
fn copy_reverse_and_sort_do_what_they_say() {
    let config = symbols(26, 3, 20);
    for pair in TaskConfig::Copy(config.clone()).generate(Split::Train, 200, 5).unwrap() {
        assert_eq!(pair.source, pair.target);
    }
    for pair in TaskConfig::Reverse(config.clone()).generate(Split::Train, 200, 5).unwrap() {
        let mut expected = words(&pair.source);
        expected.reverse();
        assert_eq!(words(&pair.target), expected);
    }
    for pair in TaskConfig::Sort(config).generate(Split::Train, 200, 5).unwrap() {
        let mut expected = words(&pair.source);
        expected.sort_unstable();
        assert_eq!(words(&pair.target), expected);
    }
}

#[test]
fn large_alphabets_are_numbers_sorted_by_value() {
    let mut seen_two_widths = false;
    for Pair { source, target } in TaskConfig::Sort(symbols(101, 5, 5)).generate(Split::Train, 100, 5).unwrap() {
        let mut expected: Vec<u32> = source.split(' ').map(|word| word.parse().unwrap()).collect();
        assert!(expected.iter().all(|&n| n < 101));
        expected.sort_unstable();
        seen_two_widths |= expected[0] < 10 && expected[4] > 9;
        assert_eq!(target.split(' ').map(|word| word.parse::<u32>().unwrap()).collect::<Vec<_>>(), expected);
    }
    assert!(seen_two_widths, "the test needs a list where alphabetical and numerical order differ");
}

#[test]
fn every_length_and_symbol_in_range_occurs_and_no_other() {
    let pairs = TaskConfig::Copy(symbols(7, 3, 6)).generate(Split::Train, 500, 8).unwrap();
    let lengths: BTreeSet<usize> = pairs.iter().map(|pair| words(&pair.source).len()).collect();
    assert_eq!(lengths.into_iter().collect::<Vec<_>>(), [3, 4, 5, 6]);
    let letters: BTreeSet<&str> = pairs.iter().flat_map(|pair| words(&pair.source)).collect();
    assert_eq!(letters.into_iter().collect::<Vec<_>>(), ["a", "b", "c", "d", "e", "f", "g"]);
}

#[test]
fn recall_answers_the_value_of_the_asked_key() {
    for (n_keys, first_key) in [(26, "a"), (40, "k0")] {
        let task = TaskConfig::Recall(RecallConfig {
            n_keys,
            n_values: 12,
            min_len: 2,
            max_len: 9,
            ..RecallConfig::default()
        });
        let mut counts = BTreeSet::new();
        let mut all_keys = BTreeSet::new();
        for Pair { source, target } in task.generate(Split::Train, 500, 2).unwrap() {
            let source = words(&source);
            let (pairs, question) = source.split_at(source.len() - 2);
            assert_eq!(question[0], "?");
            let matching: Vec<&[&str]> = pairs.chunks(2).filter(|pair| pair[0] == question[1]).collect();
            assert_eq!(matching.len(), 1, "each key stands once");
            assert_eq!(matching[0][1], target);
            all_keys.extend(pairs.chunks(2).map(|pair| pair[0].to_owned()));
            counts.insert(pairs.len() / 2);
        }
        assert_eq!(counts, (2..=9).collect());
        assert_eq!(all_keys.len(), n_keys);
        assert!(all_keys.contains(first_key));
    }
}

#[test]
fn recall_of_all_keys_answers_each_in_the_order_in_which_it_is_asked() {
    let task = TaskConfig::Recall(RecallConfig {
        n_keys: 30,
        n_values: 9,
        min_len: 2,
        max_len: 7,
        asks_all: true,
        ..RecallConfig::default()
    });
    let mut orders = BTreeSet::new();
    for Pair { source, target } in task.generate(Split::Train, 300, 2).unwrap() {
        let (source, answers) = (words(&source), words(&target));
        let n = answers.len();
        let (pairs, asked) = (source[..2 * n].chunks(2), &source[2 * n + 1..]);
        assert_eq!((source[2 * n], asked.len()), ("?", n));
        let value = |key: &str| pairs.clone().find(|pair| pair[0] == key).map(|pair| pair[1]);
        assert!(asked.iter().zip(&answers).all(|(key, answer)| value(key) == Some(answer)), "{source:?}");
        assert_eq!(asked.iter().collect::<BTreeSet<_>>().len(), n, "each key is asked once");
        orders.insert(asked.first() == Some(&source[0]));
    }
    assert_eq!(orders.len(), 2, "the order of the questions is another one");
}

#[test]
fn questions_among_blanks_are_answered_where_they_stand_or_in_their_turn() {
    let task = |in_place| {
        let config =
            RecallConfig { n_keys: 30, n_values: 9, min_len: 3, max_len: 3, asks_all: true, n_blanks: 5, in_place };
        TaskConfig::Recall(config).generate(Split::Train, 200, 2).unwrap()
    };
    let mut places = BTreeSet::new();
    for (one, other) in task(true).into_iter().zip(task(false)) {
        assert_eq!(one.source, other.source);
        let (source, answers) = (words(&one.source), words(&one.target));
        assert_eq!((source.len(), answers.len(), source[6]), (15, 15, "?"));
        let value = |key: &str| source[..6].chunks(2).find(|pair| pair[0] == key).map(|pair| pair[1]);
        for (place, (asked, answer)) in source.iter().zip(&answers).enumerate() {
            let is_question = place > 6 && *asked != ".";
            assert_eq!(Some(*answer), if is_question { value(asked) } else { Some(".") }, "{source:?}");
            places.extend(is_question.then_some(place));
        }
        let in_turn: Vec<&str> = answers.into_iter().filter(|answer| *answer != ".").collect();
        assert_eq!(in_turn, words(&other.target));
    }
    assert_eq!(places, (7..15).collect(), "questions stand at every place");
    let wrong = RecallConfig { n_blanks: 5, ..RecallConfig::default() };
    let message = TaskConfig::Recall(wrong).generate(Split::Train, 1, 1).unwrap_err().to_string();
    assert!(message.contains("data.task.n_blanks: is for asks_all = true"), "{message}");
}

#[test]
fn selective_copies_are_what_stands_between_the_blanks() {
    let config = SelectiveCopyConfig { n_symbols: 6, n_copied: 4, min_len: 5, max_len: 12 };
    let mut lengths = BTreeSet::new();
    for Pair { source, target } in TaskConfig::SelectiveCopy(config).generate(Split::Train, 300, 3).unwrap() {
        let source = words(&source);
        lengths.insert(source.len());
        let kept: Vec<&str> = source.into_iter().filter(|symbol| *symbol != ".").collect();
        assert_eq!((kept.len(), kept), (4, words(&target)));
    }
    assert_eq!(lengths, (5..=12).collect());
}
