//! Generated tasks: disjoint splits, determinism, refused settings, and right answers, which are a file for each kind.

mod copies;
mod dates;
mod numbers;
mod running;

use lookback::data::tasks::{
    ArithmeticConfig, DatesConfig, DepthConfig, NumbersConfig, ParityConfig, RecallConfig, SelectiveCopyConfig,
    Spelling, SymbolsConfig,
};
use lookback::data::{Pair, Split, TaskConfig};
use std::collections::HashSet;

/// Every task with its default settings.
fn every_task() -> Vec<TaskConfig> {
    TaskConfig::TASKS.iter().map(|(name, _)| TaskConfig::from_name(name).unwrap()).collect()
}

fn symbols(n_symbols: usize, min_len: usize, max_len: usize) -> SymbolsConfig {
    SymbolsConfig { n_symbols, min_len, max_len }
}

fn words(text: &str) -> Vec<&str> {
    text.split(' ').collect()
}

#[test]
fn the_same_seed_gives_the_same_pairs_and_another_seed_others() {
    for task in every_task() {
        let pairs = task.generate(Split::Train, 50, 11).unwrap();
        assert_eq!(pairs, task.generate(Split::Train, 50, 11).unwrap());
        assert_ne!(pairs, task.generate(Split::Train, 50, 12).unwrap());
        assert_eq!(pairs[..20], task.generate(Split::Train, 20, 11).unwrap(), "more pairs may not change earlier ones");
    }
}

#[test]
fn generated_pairs_never_change_between_versions() {
    let first = |name: &str| TaskConfig::from_name(name).unwrap().generate(Split::Test, 1, 1).unwrap().remove(0);
    let copy = "y x r x j v g m e v b y";
    let english = "six million six hundred eighteen thousand six hundred thirteen , \
                   fourteen billion seven hundred twenty-one million ninety-eight thousand nine hundred thirty-eight";
    let french = "six-millions-six-cent-dix-huit-mille-six-cent-treize , quatorze-milliards-\
                  sept-cent-vingt-et-un-millions-quatre-vingt-dix-huit-mille-neuf-cent-trente-huit";
    assert_eq!(first("copy"), Pair::new(copy, copy));
    assert_eq!(first("recall"), Pair::new("e 2 v 1 k 1 r 1 ? e", "2"));
    assert_eq!(
        first("selective-copy"),
        Pair::new("h . . . . . . . . e . b i . a . j h . . . . . . . c . . . . . .", "h e b i a j h c")
    );
    assert_eq!(first("parity"), Pair::new("1 1 0 0 1 0 1 0 0 1 0 1 0 1 1 1 0", "odd"));
    assert_eq!(first("arithmetic"), Pair::new("2 * 0 + 1", "1"));
    assert_eq!(
        first("depth"),
        Pair::new("( ) ( ( ( ( ( ) ( ) ) ) ) ( ( ( ) ( ( ) ) ) ( (", "1 0 1 2 3 4 5 4 5 4 3 2 1 2 3 4 3 4 5 4 3 2 3 4")
    );
    assert_eq!(first("dates"), Pair::new("oct the nineteenth 2019", "2019-10-19"));
    assert_eq!(first("numbers"), Pair::new(english, french));
}

#[test]
fn no_held_out_source_is_trained_on_or_repeated_whatever_the_seed() {
    for task in every_task() {
        let sources = |split, n, seed| -> Vec<String> {
            task.generate(split, n, seed).unwrap().into_iter().map(|pair| pair.source).collect()
        };
        let train: HashSet<String> = [1, 2, 3].iter().flat_map(|&seed| sources(Split::Train, 2000, seed)).collect();
        let (valid, test) = (sources(Split::Valid, 300, 4), sources(Split::Test, 300, 1));
        for held_out in [&valid, &test] {
            assert!(held_out.iter().all(|source| !train.contains(source)), "{}", task.name());
            assert_eq!(held_out.iter().collect::<HashSet<_>>().len(), 300, "{}", task.name());
        }
        assert!(valid.iter().collect::<HashSet<_>>().is_disjoint(&test.iter().collect()), "{}", task.name());
    }
}

#[test]
fn a_tenth_of_all_sources_is_held_out_for_each_of_valid_and_test() {
    let counts = (0..10_000).fold([0u32; 3], |mut counts, i| {
        counts[Split::of_source(&format!("source {i}"), 100) as usize] += 1;
        counts
    });
    // Standard deviation: sqrt(10000 0.1 0.9) = 30.
    assert!(counts[1].abs_diff(1000) < 150 && counts[2].abs_diff(1000) < 150, "{counts:?}");
}

#[test]
fn too_small_a_task_says_how_many_sources_there_are() {
    let task = TaskConfig::Copy(symbols(2, 1, 3));
    let message = task.generate(Split::Valid, 100, 1).unwrap_err().to_string();
    assert!(message.starts_with("data.task: `copy` is too small: found "), "{message}");
    assert!(message.contains("distinct sources for valid, 100 are asked for; ask for fewer pairs"), "{message}");
    assert_eq!(task.generate(Split::Train, 100, 1).unwrap().len(), 100, "train may repeat");
}

#[test]
fn no_pairs_are_no_error() {
    assert_eq!(TaskConfig::Copy(SymbolsConfig::default()).generate(Split::Test, 0, 1).unwrap(), []);
}

#[test]
fn each_field_out_of_range_is_refused_by_name() {
    let recall = |n_keys, n_values, min_len, max_len| {
        TaskConfig::Recall(RecallConfig { n_keys, n_values, min_len, max_len, ..RecallConfig::default() })
    };
    let selective = |n_symbols, n_copied, min_len, max_len| {
        TaskConfig::SelectiveCopy(SelectiveCopyConfig { n_symbols, n_copied, min_len, max_len })
    };
    let parity = |min_len, max_len| TaskConfig::Parity(ParityConfig { min_len, max_len, asks_all: false });
    let arithmetic = |modulus| TaskConfig::Arithmetic(ArithmeticConfig { modulus, ..ArithmeticConfig::default() });
    let depth = |max_depth| TaskConfig::Depth(DepthConfig { max_depth, ..DepthConfig::default() });
    let numbers = |max_value, min_len, max_len| {
        TaskConfig::Numbers(NumbersConfig { max_value, min_len, max_len, ..NumbersConfig::default() })
    };
    let dates = |first_year, last_year| TaskConfig::Dates(DatesConfig { first_year, last_year });
    let cases = [
        (TaskConfig::Copy(symbols(1, 3, 4)), "data.task.n_symbols: must lie in 2..=1000000, got 1"),
        (TaskConfig::Sort(symbols(5, 0, 4)), "data.task.min_len: must be at least 1 (symbols), got 0"),
        (TaskConfig::Reverse(symbols(5, 4, 3)), "data.task.max_len: must be at least min_len = 4 (symbols), got 3"),
        (TaskConfig::Copy(symbols(5, 4, usize::MAX)), "data.task.max_len: must be at most 100000 (symbols)"),
        (recall(1, 5, 1, 1), "data.task.n_keys: must lie in 2..=1000000, got 1"),
        (recall(5, 1, 1, 1), "data.task.n_values: must lie in 2..=1000000, got 1"),
        (recall(5, 5, 1, 6), "data.task.max_len: must be at most n_keys = 5, as no key occurs twice"),
        (recall(5, 5, 0, 5), "data.task.min_len: must be at least 1 (key-value pairs), got 0"),
        (selective(1, 2, 3, 4), "data.task.n_symbols: must lie in 2..=1000000, got 1"),
        (selective(4, 4, 3, 9), "data.task.n_copied: must lie in 1..=3, the shortest source, got 4"),
        (parity(0, 4), "data.task.min_len: must be at least 1 (bits), got 0"),
        (arithmetic(1), "data.task.modulus: must lie in 2..=1000000, got 1"),
        (depth(0), "data.task.max_depth: must be at least 1, got 0"),
        (numbers(1_000_000_000_000, 1, 1), "data.task.max_value: must be at most 999999999999"),
        (numbers(10, 2, 1), "data.task.max_len: must be at least min_len = 2 (numbers), got 1"),
        (dates(1599, 2000), "data.task.first_year: must lie in 1600..=2999, got 1599"),
        (dates(2000, 1999), "data.task.last_year: must lie in first_year = 2000..=2999, got 1999"),
    ];
    for (task, expected) in cases {
        let message = task.generate(Split::Train, 1, 1).unwrap_err().to_string();
        assert!(message.starts_with(expected), "{message}");
    }
}

#[test]
fn tasks_are_told_apart_by_kind_and_misspelt_keys_are_refused() {
    let task: TaskConfig = toml::from_str("kind = \"numbers\"\nmax_len = 7\nspelling = \"traditional\"").unwrap();
    let expected = NumbersConfig { max_len: 7, spelling: Spelling::Traditional, ..NumbersConfig::default() };
    assert_eq!(task, TaskConfig::Numbers(expected));
    assert_eq!(toml::from_str::<TaskConfig>(&toml::to_string(&task).unwrap()).unwrap(), task);
    for (name, _) in TaskConfig::TASKS {
        let misspelt = format!("kind = \"{name}\"\nmax_lenn = 7");
        let message = toml::from_str::<TaskConfig>(&misspelt).unwrap_err().to_string();
        assert!(message.contains("max_lenn"), "{message}");
        assert_eq!(TaskConfig::from_name(name).unwrap().name(), name);
    }
}

#[test]
fn an_unknown_task_lists_those_there_are() {
    let message = TaskConfig::from_name("cpoy").unwrap_err().to_string();
    assert_eq!(
        message,
        "unknown task `cpoy`; there are: copy, reverse, sort, recall, selective-copy, parity, arithmetic, depth, rises, next-value, dates, numbers"
    );
}

#[test]
fn lengths_can_be_set_for_every_task_that_has_them() {
    for mut task in every_task() {
        let result = task.set_lengths(Some(2), Some(5));
        if task.name() == "dates" {
            assert!(result.unwrap_err().to_string().contains("`dates` has no lengths"));
            assert!(task.set_lengths(None, None).is_ok());
        } else {
            let json = serde_json::to_value(&task).unwrap();
            assert_eq!((json["min_len"].as_u64(), json["max_len"].as_u64()), (Some(2), Some(5)));
            task.set_lengths(None, Some(6)).unwrap();
            assert_eq!(serde_json::to_value(&task).unwrap()["min_len"], 2);
        }
    }
}
