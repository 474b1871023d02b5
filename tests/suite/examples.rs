//! The examples do what they say; `cargo test` has built them.

use crate::training::{TRANSFORMER, assert_says, write_tiny};
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// What an example prints.
fn printed(name: &str, arguments: &[&str]) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_lookback")).with_file_name("examples").join(name);
    let output = Command::new(&program).args(arguments).output();
    let output = output.unwrap_or_else(|error| panic!("{}: {error}; cargo build --examples", program.display()));
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn attention_learns_in_a_model_of_ones_own() {
    let shown = printed("own_model", &[]);
    assert!(first_of_last(&shown) >= 950, "{shown}");
}

/// The number before the first space of the last line.
fn first_of_last(shown: &str) -> usize {
    shown.lines().last().and_then(|line| line.split(' ').next()).and_then(|word| word.parse().ok()).expect(shown)
}

#[test]
fn an_encoder_is_a_part_of_a_classifier_that_burns_learner_trains() {
    let shown = printed("classifier", &[]);
    assert!(first_of_last(&shown) >= 125, "of 128: {shown}");
}

#[test]
fn a_decoder_of_ones_own_is_searched() {
    let shown = printed("own_decoder", &[]);
    assert!(first_of_last(&shown) >= 475, "of 500: {shown}");
}

#[test]
fn a_score_of_ones_own_finds_the_nearest_key() {
    let shown = printed("own_score", &[]);
    assert!(first_of_last(&shown) >= 900, "{shown}");
}

#[test]
fn a_task_of_ones_own_is_compared() {
    let shown = printed("own_task", &[]);
    assert_says(&shown, &["training attention", "training transformer", "sequence accuracy"]);
}

#[test]
fn the_library_trains_and_translates() {
    assert_says(&printed("train_and_translate", &[]), &["trained for 400 updates", "a b c -> c b a", "3 of 3 right"]);
}

#[test]
fn attention_is_drawn_from_a_run_folder() {
    let dir = TempDir::new().unwrap();
    write_tiny(dir.path(), TRANSFORMER);
    crate::training::succeed(dir.path(), &["train", "tiny.toml", "--run", "run", "--set", "training.max_updates=2"]);
    let run = dir.path().join("run");
    let shown = printed("draw_attention", &[run.to_str().unwrap(), "a b"]);
    assert_says(&shown, &["a b </s>"]);
    let n_lines = shown.lines().count();
    assert!(n_lines >= 2, "a line for each word that was written, and the source: {shown}");
}
