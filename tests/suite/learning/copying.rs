//! Copying more than was ever learnt: `config/copy-decoder-only.toml`, in a quarter of its updates and with fewer letters.
//!
//! Jelassi et al., Repeat After Me: Transformers are Better than State Space Models at Copying, 2024: a decoder that finds its place by the
//! last few tokens copies at any length.

use super::{accuracy_on, learn};
use lookback::data::TaskConfig;
use lookback::experiment::Config;
use std::path::Path;

/// Sequences of twice the trained length that are copied without a fault.
const COPIED: f64 = 0.6;

#[test]
#[ignore = "a minute; CI runs it as a step of its own"]
fn a_decoder_that_knows_letters_by_those_before_learns_what_it_can() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/copy-decoder-only.toml");
    let settings = ["training.batch_tokens=1024", "training.learning_rate=0.004"].map(String::from);
    let config = Config::load(Some(&path), &settings).unwrap();
    let task = |min_len: usize, max_len: usize| -> TaskConfig {
        let text = format!("kind = \"copy\"\nn_symbols = 16\nmin_len = {min_len}\nmax_len = {max_len}\n");
        toml::from_str(&text).expect("the keys are right")
    };
    let copied = accuracy_on(&learn(config, task(1, 20), 1600), &task(40, 40));
    eprintln!("{copied} of the sequences");
    assert!(copied > COPIED, "{copied} of the sequences are right");
}
