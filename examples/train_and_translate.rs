//! Training and translating through the library: a small Transformer learns to write letters backwards.
//!
//! cargo run --release --example train_and_translate

use lookback::backend::Backend;
use lookback::decoding::{Request, decode};
use lookback::experiment::{Config, Run, TrainOptions, train};

const CONFIG: &str = r#"
backend = "flex"

[data]
task = { kind = "reverse", n_symbols = 8, min_len = 1, max_len = 5 }
n_train = 4000
n_valid = 50
n_test = 50

[tokenizer]
kind = "word"
shared = true

[model]
kind = "transformer"
d_model = 32
d_feed_forward = 64
n_heads = 2
n_encoder_layers = 1
n_decoder_layers = 1
dropout_rate = 0.0

[training]
max_updates = 400
batch_tokens = 512
learning_rate = 0.005
warmup_updates = 50
label_smoothing = 0.0
score = "sequence-accuracy"
"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let config: Config = toml::from_str(CONFIG)?;
    config.validate()?;
    let adapter = config.backend.open()?;
    let folder = tempfile::tempdir()?;
    let options = TrainOptions::new(folder.path().join("run"));
    let outcome = train(&config, &adapter, &options)?;
    println!("trained for {} updates", outcome.state.update);

    // The run folder is all that translating needs.
    let loaded = Run::open(&options.run)?.load_model(&Backend::Flex.open()?, None, |warning| println!("{warning}"))?;
    let texts = ["a b c", "e d a h", "g"];
    let requests = texts.map(|text| Request::new(loaded.tokenizers.source().encode(text)));
    let found = decode(&loaded.model, &requests, &loaded.config.decoding, loaded.config.seed, |_| ());
    let mut n_right = 0;
    for (text, hypotheses) in texts.iter().zip(&found) {
        let written = loaded.tokenizers.target().decode(&hypotheses[0].tokens);
        let expected: Vec<&str> = text.split(' ').rev().collect();
        n_right += usize::from(written == expected.join(" "));
        println!("{text} -> {written}");
    }
    println!("{n_right} of {} right", texts.len());
    Ok(())
}
