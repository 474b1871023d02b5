//! How far a comparison is, and how long it will take.

use super::test_set;
use lookback::compare::plan::{Entrant, entrants};
use lookback::compare::progress::Progress;
use lookback::compare::training::Finished;
use lookback::compare::work::Work;
use lookback::compare::{Options, Status, tuning};
use lookback::data::Pair;
use lookback::training::Silent;
use std::sync::{Arc, Mutex};
use tempfile::TempDir;

#[test]
fn what_will_be_found_done_is_not_left_to_do() {
    let show = |_: &Status| ();
    let mut progress = Progress::new(10.0, 6.0, 1, &show, Arc::new(Silent));
    assert_eq!(progress.left(), 4.0);
    progress.skip(4.0);
    assert_eq!(progress.left(), 4.0, "found as foreseen");
    progress.finish(1.0, false);
    assert_eq!(progress.left(), 3.0);
    progress.skip(3.0);
    assert_eq!(progress.left(), 2.0, "one more was found than was foreseen");
}

#[test]
fn what_other_processes_do_is_done() {
    let last = Mutex::new(0.0);
    let show = |status: &Status| *last.lock().unwrap() = status.done;
    let mut progress = Progress::new(20.0, 4.0, 3, &show, Arc::new(Silent));
    let done = |progress: &Progress, part: f64| {
        progress.at("x", part);
        *last.lock().unwrap()
    };
    progress.skip(4.0);
    assert_eq!(done(&progress, 0.0), 0.2, "what was there before is no work of others");
    progress.finish(2.0, false);
    assert_eq!(done(&progress, 0.0), 0.5, "two others have done as much");
    assert_eq!(done(&progress, 1.0), 0.65);
    progress.skip(3.0);
    assert_eq!(done(&progress, 0.0), 0.5, "three of their four were found");
    progress.skip(7.0);
    assert_eq!(done(&progress, 0.0), 0.8, "more than they were thought to have done");
    progress.finish(4.0, false);
    assert_eq!(done(&progress, 0.0), 1.0);
}

/// What is asked for with two seeds and two trials in `out`, and the first of the contestants.
fn asked(out: &TempDir, lengths: &[usize]) -> (Options, Entrant) {
    let options = Options { seeds: 2, trials: 2, cost_lengths: lengths.to_vec(), ..Options::new(out.path()) };
    let first = entrants(&options).unwrap().swap_remove(0);
    (options, first)
}

#[test]
fn times_of_no_lengths_take_no_time_and_a_test_takes_what_is_written() {
    let out = TempDir::new().unwrap();
    let test = test_set(vec![Pair::new("a b", "c d e"); 7]);
    let guess = |lengths: &[usize], beam_size| {
        let (options, first) = asked(&out, lengths);
        Work::guess(&first, &options, &test, beam_size)
    };
    assert_eq!(guess(&[], 1).timing, 0.0);
    assert_eq!(guess(&[16, 32, 64, 128], 1).timing, 2.0 * guess(&[16, 32], 1).timing);
    let of_tokens = |n| n * guess(&[], 1).testing / (7.0 * 5.0);
    let found = guess(&[], 4).testing;
    assert!((found - of_tokens(7.0 * (2.0 + 4.0 * 3.0))).abs() < 1e-9 * found, "{found}");
    // Long as training is beside so small a test.
    assert!(guess(&[], 1).training > 100.0 * guess(&[], 1).testing);
}

#[test]
fn minutes_are_the_most_that_training_takes() {
    let out = TempDir::new().unwrap();
    let (options, mut first) = asked(&out, &[]);
    let test = test_set(vec![Pair::new("a", "b")]);
    let by_updates = Work::guess(&first, &options, &test, 1).training;
    for (minutes, seconds) in [(by_updates / 600.0, by_updates / 10.0), (by_updates, by_updates)] {
        first.config.training.max_minutes = Some(minutes);
        let found = Work::guess(&first, &options, &test, 1);
        assert!((found.training - seconds).abs() < 1e-9 * seconds, "{found:?} in {minutes} minutes");
        let part = tuning::trial_updates(&first.config) as f64 / first.config.training.max_updates as f64;
        assert_eq!(found.trial, part * found.training);
    }
}

#[test]
fn after_the_search_a_contestant_takes_as_long_as_in_its_own_trials() {
    let out = TempDir::new().unwrap();
    let (options, first) = asked(&out, &[16]);
    let guess = Work::guess(&first, &options, &test_set(vec![Pair::new("a", "b")]), 1);
    assert_eq!(guess.as_in_trials(&first, &options), guess, "before there is a trial");
    // The trials take two and four times as long as was thought.
    for (trial, times) in [(1, 2.0), (2, 4.0)] {
        let folder = tuning::folder(&first, &options, trial);
        std::fs::create_dir_all(&folder).unwrap();
        let finished = Finished { why: String::new(), updates: 1, tokens: 1, seconds: times * guess.trial };
        std::fs::write(folder.join("finished.json"), serde_json::to_string(&finished).unwrap()).unwrap();
    }
    let found = guess.as_in_trials(&first, &options);
    for (found, expected) in [
        (found.trial, 3.0 * guess.trial),
        (found.training, 3.0 * guess.training),
        (found.testing, 3.0 * guess.testing),
        (found.timing, guess.timing),
    ] {
        assert!((found - expected).abs() < 1e-9 * expected, "{found} instead of {expected}");
    }
}
