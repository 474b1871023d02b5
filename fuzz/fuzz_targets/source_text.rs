//! Text of any kind through tokenizers of every kind, and through a decoder: prefixes and targets too.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lookback::backend::Backend;
use lookback::data::{Pair, Tokenizers, TokenizersConfig};
use lookback::decoding::{DecodingConfig, Request, decode};
use lookback::experiment::Config;
use lookback::models::{Model, ModelConfig, TransformerConfig, Vocabularies};
use std::sync::OnceLock;

const KINDS: [&str; 4] =
    ["kind = \"char\"", "kind = \"word\"", "kind = \"bpe\"\nvocab_size = 60", "kind = \"byte-bpe\"\nvocab_size = 300"];

/// A tokenizer of each kind, and an untrained model for each.
fn all() -> &'static [(Tokenizers, Model)] {
    static ALL: OnceLock<Vec<(Tokenizers, Model)>> = OnceLock::new();
    ALL.get_or_init(|| {
        let device = Backend::Flex.open().expect("a CPU").device;
        let pairs: Vec<Pair> =
            ["ein Hund läuft", "a b c d", "zwei Katzen, drei Vögel!"].map(|text| Pair::new(text, text)).into();
        let make = |kind: &str| {
            let text = format!("[tokenizer]\n{kind}\n");
            let config: TokenizersConfig = Config::embedded(
                "t",
                &(include_str!("../tiny.toml").split("[tokenizer]").next().unwrap().to_owned() + &text),
                &[],
            )
            .expect("a config")
            .tokenizer;
            let tokenizers = Tokenizers::train(&pairs, config).expect("tokenizers");
            let (source, target) = (tokenizers.source().vocab_size(), tokenizers.target().vocab_size());
            let model = TransformerConfig {
                d_model: 8,
                d_feed_forward: 8,
                n_heads: 2,
                n_encoder_layers: 1,
                n_decoder_layers: 1,
                ..TransformerConfig::default()
            };
            let vocabularies = Vocabularies { source, target, shared: tokenizers.is_shared() };
            (tokenizers, ModelConfig::Transformer(model).init(vocabularies, 1, &device).expect("a model"))
        };
        KINDS.map(make).into()
    })
}

fuzz_target!(|text: &str| {
    // A source, and what its translation begins with.
    let (source, prefix) = text.split_once('\n').unwrap_or((text, ""));
    for (tokenizers, model) in all() {
        let ids = tokenizers.source().encode(source);
        assert!(ids.iter().all(|id| (*id as usize) < tokenizers.source().vocab_size()));
        let _ = (tokenizers.source().decode(&ids), tokenizers.source().unknown(source));
        let (ids, prefix) =
            (ids.into_iter().take(12).collect(), tokenizers.target().encode(prefix).into_iter().take(5).collect());
        let request = Request { source: ids, prefix, number: None };
        let config = DecodingConfig {
            beam_size: 2,
            max_len_factor: Some(1.0),
            max_len_extra: Some(2),
            ..DecodingConfig::default()
        };
        let found = decode(model, std::slice::from_ref(&request), &config, 1, |_| ());
        assert!(found[0].iter().all(|h| h.log_probability.is_finite()));
        if !request.source.is_empty() {
            assert!(found[0].iter().all(|h| h.tokens.starts_with(&request.prefix)));
        }
    }
});
