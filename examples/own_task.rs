//! A task of one's own for `compare`: letters are to be sorted, by a recurrent model with attention and by a Transformer.
//!
//! cargo run --release --example own_task

use lookback::compare::{Budget, Options, compare};
use lookback::report::comparison::{files, words};
use std::fs;

const DATA: &str = r#"
backend = "flex"

[data]
train = { tsv = "train.tsv" }
valid = { tsv = "valid.tsv" }
test = { tsv = "test.tsv" }

[tokenizer]
kind = "word"
shared = true

[training]
batch_tokens = 512
learning_rate = 0.005
warmup_updates = 50
score = "sequence-accuracy"
"#;

const MODELS: [(&str, &str); 2] = [
    ("attention", "[model]\nkind = \"rnn\"\nd_embedding = 16\nd_hidden = 32\nattention = { kind = \"luong\" }\n"),
    (
        "transformer",
        "[model]\nkind = \"transformer\"\nd_model = 32\nd_feed_forward = 64\nn_heads = 2\nn_encoder_layers = 1\nn_decoder_layers = 1\n",
    ),
];

/// `n` lines of letters, a tab, and the same letters in order; by a small generator of random numbers.
fn lines(n: usize, seed: u64) -> String {
    let mut state = seed;
    let mut below = |n: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % n
    };
    let line = |_| {
        let mut letters: Vec<String> = (0..=below(5)).map(|_| char::from(b'a' + below(8) as u8).to_string()).collect();
        let source = letters.join(" ");
        letters.sort();
        format!("{source}\t{}\n", letters.join(" "))
    };
    (0..n).map(line).collect()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text);
    for (name, n, seed) in [("train.tsv", 3000, 1), ("valid.tsv", 50, 2), ("test.tsv", 200, 3)] {
        write(name, &lines(n, seed))?;
    }
    let mut options = Options::new(folder.path().join("comparison"));
    for (name, model) in MODELS {
        write(&format!("{name}.toml"), &format!("{DATA}{model}"))?;
        options.configs.push(folder.path().join(format!("{name}.toml")));
    }
    options.budget = Some(Budget::Updates(150));
    options.cost_lengths.clear();
    let comparison = compare(&options, &|status| println!("{:3.0} %  {}", 100.0 * status.done, status.what))?;
    print!("{}", words::summary(&comparison));
    println!("the report is {}", files::write(&comparison, &options.out)?.display());
    Ok(())
}
