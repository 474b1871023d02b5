//! What is held out of training files, and what is one sentence.

use lookback::data::{DataConfig, Pair, Sentence, Split, SplitFiles};
use lookback::experiment::Config;
use lookback::experiment::dataset::{load, pairs_of, sentences_of};
use std::fs;
use tempfile::TempDir;

/// A folder with 400 training pairs in `train.tsv` and two pairs in `test.tsv`.
fn folder() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let pairs: String = (0..400).map(|i| format!("source {i}\ttarget {i}\n")).collect();
    fs::write(dir.path().join("train.tsv"), pairs).unwrap();
    fs::write(dir.path().join("test.tsv"), "a\tb\nc\td\n").unwrap();
    dir
}

fn config(dir: &TempDir, per_mille: u64) -> DataConfig {
    DataConfig {
        dir: Some(dir.path().to_path_buf()),
        train: Some(SplitFiles::tsv("train.tsv")),
        hold_out_per_mille: Some(per_mille),
        ..DataConfig::default()
    }
}

#[test]
fn nothing_is_held_out_for_a_split_that_has_files() {
    let dir = folder();
    let both = config(&dir, 100);
    let counts = |config: &DataConfig| Split::ALL.map(|split| pairs_of(config, split, 1).unwrap().len());
    let [train, valid, test] = counts(&both);
    assert!(valid > 10 && test > 10);
    assert_eq!(train + valid + test, 400);
    let named = DataConfig { test: Some(SplitFiles::tsv("test.tsv")), ..both.clone() };
    assert_eq!(counts(&named), [train + test, valid, 2], "the share of the test data stays in training");
    let named = DataConfig { valid: Some(SplitFiles::tsv("test.tsv")), ..both };
    assert_eq!(counts(&named), [train + valid, 2, test]);
}

#[test]
fn holding_out_for_nothing_is_refused() {
    let dir = folder();
    let files = Some(SplitFiles::tsv("test.tsv"));
    let data = DataConfig { valid: files.clone(), test: files, ..config(&dir, 100) };
    let message = Config { data, ..Config::default() }.validate().unwrap_err().to_string();
    assert!(message.starts_with("data.hold_out_per_mille: has nothing to hold out for"), "{message}");
}

#[test]
fn a_share_that_is_too_small_is_named() {
    let dir = folder();
    // Of four sources none falls into the share of a thousandth.
    fs::write(dir.path().join("train.tsv"), "a\tb\nc\td\ne\tf\ng\th\n").unwrap();
    let message = load(&config(&dir, 1), 1).err().expect("there is no validation pair").to_string();
    assert_eq!(
        message,
        "data.valid: has no pair: data.hold_out_per_mille = 1 of 4 training pairs holds out none; raise it, or hold out others with \
         data.hold_out_seed = 1: files of `data generate` and `data fetch` have lost what is held out without"
    );
}

/// Files that were made by the same rule have nothing left that it would hold out.
#[test]
fn another_seed_holds_out_other_pairs() {
    let dir = folder();
    let counts = |config: &DataConfig| Split::ALL.map(|split| pairs_of(config, split, 1).unwrap().len());
    let held_out = |seed: u64| {
        let config = DataConfig { hold_out_seed: seed, ..config(&dir, 100) };
        let [train, valid, test] = counts(&config);
        assert_eq!(train + valid + test, 400);
        assert!((20..=60).contains(&valid) && (20..=60).contains(&test), "{valid} and {test} of 400");
        pairs_of(&config, Split::Valid, 1).unwrap()
    };
    let [first, second, third] = [0, 1, 2].map(held_out);
    assert_eq!(second, held_out(1));
    assert!(first != second && second != third);
    // What the rule of seed 0 has left in training.
    let kept = pairs_of(&config(&dir, 100), Split::Train, 1).unwrap();
    let text: String = kept.iter().map(|pair| format!("{}\t{}\n", pair.source, pair.target)).collect();
    fs::write(dir.path().join("train.tsv"), text).unwrap();
    assert!(load(&config(&dir, 50), 1).err().unwrap().to_string().contains("data.hold_out_seed = 1"));
    let [train, valid, test] = counts(&DataConfig { hold_out_seed: 1, ..config(&dir, 50) });
    assert!(valid > 5 && test > 5 && train + valid + test == kept.len(), "{train}, {valid}, {test}");
}

/// With the test files named, format 2 held out the test's share as well; such a run cannot go on with more pairs.
#[test]
fn what_is_learnt_from_is_part_of_the_checksums_where_one_split_is_held_out() {
    let dir = folder();
    let one = DataConfig { test: Some(SplitFiles::tsv("test.tsv")), ..config(&dir, 100) };
    let sums = load(&one, 1).unwrap().sha256;
    assert!(sums.contains_key("train/pairs") && sums.contains_key("train/tsv"), "{sums:?}");
    assert!(!load(&config(&dir, 100), 1).unwrap().sha256.contains_key("train/pairs"));
}

#[test]
fn pairs_with_one_source_are_one_sentence_where_it_is_asked_for() {
    let dir = folder();
    fs::write(dir.path().join("test.tsv"), "a\tx\nb\ty\na\tz\na\tx\n").unwrap();
    let config = DataConfig { test: Some(SplitFiles::tsv("test.tsv")), several_references: true, ..config(&dir, 100) };
    let sentence = |source: &str, references: &[&str]| Sentence {
        source: source.into(),
        references: references.iter().map(|reference| reference.to_string()).collect(),
    };
    let found = sentences_of(&config, Split::Test, 1).unwrap();
    assert_eq!(found, [sentence("a", &["x", "z"]), sentence("b", &["y"])]);
    let apart = DataConfig { several_references: false, ..config.clone() };
    assert_eq!(sentences_of(&apart, Split::Test, 1).unwrap().len(), 4);
    // Training learns from every pair.
    assert_eq!(pairs_of(&config, Split::Test, 1).unwrap()[2], Pair::new("a", "z"));
}

#[test]
fn further_reference_files_belong_line_by_line_to_the_first() {
    let dir = folder();
    for (name, text) in [("s", "a\nb\n"), ("t", "x\ny\n"), ("u", "v\nw\n"), ("short", "v\n")] {
        fs::write(dir.path().join(name), text).unwrap();
    }
    let with = |more: &str| SplitFiles { more_targets: vec![more.into()], ..SplitFiles::parallel("s", "t") };
    let config = |more: &str| DataConfig { test: Some(with(more)), ..config(&dir, 100) };
    let found = sentences_of(&config("u"), Split::Test, 1).unwrap();
    assert_eq!(found[1].references, ["y", "w"]);
    let message = sentences_of(&config("short"), Split::Test, 1).unwrap_err().to_string();
    assert!(message.contains("short: 1 lines, but the other files of the split have 2"), "{message}");
    let tsv = SplitFiles { more_targets: vec!["u".into()], ..SplitFiles::tsv("test.tsv") };
    assert!(tsv.validate("data.test").unwrap_err().to_string().contains("data.several_references"));
    let train = DataConfig { train: Some(with("u")), ..config("u") };
    let message = Config { data: train, ..Config::default() }.validate().unwrap_err().to_string();
    assert!(message.starts_with("data.train.more_targets: "), "{message}");
}
