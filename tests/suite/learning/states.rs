//! Following a state: the parity of the bits so far, trained on up to 40 of them, tested on 41 to 256.
//!
//! Grazzi et al., Unlocking State-Tracking in Linear RNNs Through Negative Eigenvalues, 2025, table 1, has of these lengths 1.0 for
//! a recurrent network and for the delta rule with eigenvalues down to -1, and what guessing gives for the Transformer (0.022 above
//! chance) and for the delta rule without (0.017).

use super::{accuracy_on, learn};
use lookback::data::TaskConfig;
use lookback::experiment::Config;

const FOLLOWING: &str = r#"
seed = 1
backend = "flex"
[data]
n_train = 10000
n_valid = 100
[tokenizer]
kind = "word"
[model]
kind = "encoder-only"
is_causal = true
d_model = 32
d_feed_forward = 64
n_heads = 4
dropout_rate = 0.0
[training]
batch_tokens = 2000
learning_rate = 0.005
warmup_updates = 30
schedule = "cosine"
label_smoothing = 0.0
validate_every = 500
save_every = 500
sample_size = 10
"#;

/// Sequences in which every answer is right.
const LEARNT: f64 = 0.99;
/// Nobody guesses every answer to 41 bits or more.
const NOT_LEARNT: f64 = 0.01;

fn parity(min_len: usize, max_len: usize) -> TaskConfig {
    let text = format!("kind = \"parity\"\nasks_all = true\nmin_len = {min_len}\nmax_len = {max_len}\n");
    toml::from_str(&text).expect("the keys are right")
}

/// The part of sequences of 41 to 256 bits in which every answer of a model is right: the median of three seeds, since one of several
/// misses some of the longest.
fn beyond_what_was_trained(model: &str) -> f64 {
    let mut table: toml::Table = toml::from_str(FOLLOWING).expect("TOML");
    let own: toml::Table = toml::from_str(model).expect("TOML");
    table["model"].as_table_mut().expect("a section").extend(own);
    let mut right = [1, 2, 3].map(|seed| {
        table.insert("seed".into(), seed.into());
        let config: Config = table.clone().try_into().expect("the keys are right");
        accuracy_on(&learn(config, parity(1, 40), 1000), &parity(41, 256))
    });
    right.sort_by(f64::total_cmp);
    right[1]
}

#[test]
#[ignore = "minutes; CI runs it as a step of its own"]
fn every_way_to_follow_a_state_learns_what_it_can() {
    let none = "positions = { kind = \"none\" }\nn_layers = 1";
    for (model, learns) in [
        (format!("mixer = {{ kind = \"lstm\" }}\n{none}"), true),
        (format!("mixer = {{ kind = \"delta\", negative_eigenvalues = true }}\n{none}"), true),
        (format!("mixer = {{ kind = \"delta\" }}\n{none}"), false),
        ("positions = { kind = \"rotary\" }\nn_layers = 2".to_string(), false),
    ] {
        let right = beyond_what_was_trained(&model);
        eprintln!("{right} of the sequences: {}", model.lines().next().unwrap_or_default());
        match learns {
            true => assert!(right > LEARNT, "{right} of the sequences are right: {model}"),
            false => assert!(right < NOT_LEARNT, "{right} of the sequences are right: {model}"),
        }
    }
}
