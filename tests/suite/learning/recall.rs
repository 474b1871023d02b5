//! Multi-query recall at length 128: eight keys and their values, then the keys in another order among blanks.
//!
//! Arora et al., Zoology: Measuring and Improving Recall in Efficient Language Models, 2023, figure 2: attention solves it at any
//! width. There it learns from millions of sequences; here from thousands, with what makes it quick: each token sees the one before
//! it by a convolution, so that a key and its value are one vector, and sequences with fewer pairs come beside those with eight.

use super::{accuracy_on, learn};
use lookback::data::TaskConfig;
use lookback::experiment::Config;

const RECALLING: &str = r#"
seed = 1
backend = "flex"
[data]
n_train = 20000
n_valid = 100
[tokenizer]
kind = "word"
split_punctuation = false
[model]
kind = "encoder-only"
is_causal = true
d_model = 64
d_feed_forward = 128
n_heads = 2
n_layers = 2
mixer = { kind = "attention", convolution = 2 }
positions = { kind = "rotary" }
dropout_rate = 0.0
[training]
batch_tokens = 4096
learning_rate = 0.003
warmup_updates = 100
schedule = "cosine"
label_smoothing = 0.0
validate_every = 500
save_every = 500
sample_size = 20
"#;

/// Sequences in which every question is answered right.
const LEARNT: f64 = 0.99;

#[test]
#[ignore = "minutes; CI runs it as a step of its own"]
fn attention_with_eight_pairs_at_length_128_learns_what_it_can() {
    let config: Config = toml::from_str(RECALLING).expect("the keys are right");
    let task = |min_len: usize| -> TaskConfig {
        let text = format!(
            "kind = \"recall\"\nn_keys = 64\nn_values = 64\nmin_len = {min_len}\nmax_len = 8\nasks_all = true\nin_place = true\n\
             n_blanks = 103\n"
        );
        toml::from_str(&text).expect("the keys are right")
    };
    let right = accuracy_on(&learn(config, task(1), 1000), &task(8));
    eprintln!("{right} of the sequences");
    assert!(right > LEARNT, "{right} of the sequences are right");
}
