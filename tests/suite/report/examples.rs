//! Models of every kind, and explanations of what they make of a sentence.

use crate::support::flex;
use lookback::data::{Pair, TokenizerConfig, Tokenizers};
use lookback::decoding::DecodingConfig;
use lookback::experiment::run::vocabularies;
use lookback::layers::attention::{AttentionConfig, ScoreConfig, WindowConfig};
use lookback::layers::mixer::{MixerKind, SideConfig};
use lookback::layers::position::PositionConfig;
use lookback::layers::recurrent::CellKind;
use lookback::models::readout::ReadoutConfig;
use lookback::models::rnn::{ContextUse, Directions, OutputKind};
use lookback::models::transformer::{NormPosition, TiedEmbeddings};
use lookback::models::{Model, ModelConfig, RnnConfig, TransformerConfig};
use lookback::report::explanation::{Detail, Explanation, Given, Question, explain};

/// Narrow, and without what attention does not need.
pub fn rnn(attention: AttentionConfig) -> RnnConfig {
    RnnConfig {
        d_embedding: 6,
        d_hidden: 8,
        attention,
        directions: Directions::Forward,
        output: OutputKind::Projection,
        ..RnnConfig::default()
    }
}

/// Narrow, with heads of four numbers.
pub fn transformer(positions: PositionConfig) -> TransformerConfig {
    TransformerConfig {
        d_model: 16,
        d_feed_forward: 24,
        n_heads: 4,
        n_encoder_layers: 2,
        n_decoder_layers: 2,
        positions,
        ..TransformerConfig::default()
    }
}

/// A small model of every kind.
pub fn configs() -> Vec<(String, ModelConfig)> {
    let mut configs = Vec::new();
    let scores = [
        ScoreConfig::Dot {},
        ScoreConfig::ScaledDot {},
        ScoreConfig::General {},
        ScoreConfig::Additive { d_attention: 5 },
        ScoreConfig::Concat { d_attention: 5 },
        ScoreConfig::Cosine {},
        ScoreConfig::Location { max_source_len: 9 },
    ];
    let windows =
        [WindowConfig::Global {}, WindowConfig::LocalM { half_width: 1 }, WindowConfig::LocalP { half_width: 2 }];
    for score in &scores {
        for window in &windows {
            let (score, window) = (score.clone(), window.clone());
            let kinds = [
                AttentionConfig::Bahdanau { score: score.clone(), window: window.clone() },
                AttentionConfig::Luong { score: score.clone(), window: window.clone(), input_feeding: true },
                AttentionConfig::Luong { score, window, input_feeding: false },
            ];
            configs.extend(kinds.map(|kind| (format!("{kind:?}"), ModelConfig::Rnn(rnn(kind)))));
        }
    }
    let fixed = rnn(AttentionConfig::None {});
    configs.extend([
        ("fixed".into(), ModelConfig::Rnn(fixed.clone())),
        ("initial".into(), ModelConfig::Rnn(RnnConfig { context: ContextUse::Initial, ..fixed.clone() })),
        (
            "two layers of LSTMs, both ways, reversed".into(),
            ModelConfig::Rnn(RnnConfig {
                cell: CellKind::Lstm,
                n_layers: 2,
                directions: Directions::Both,
                reverse_source: true,
                output: OutputKind::Similarity,
                ..rnn(AttentionConfig::bahdanau(5))
            }),
        ),
    ]);
    let positions = [
        PositionConfig::Sinusoidal {},
        PositionConfig::Learned { max_len: 9 },
        serde_json::from_str(r#"{"kind": "rotary"}"#).unwrap(),
        serde_json::from_str(r#"{"kind": "alibi"}"#).unwrap(),
        serde_json::from_str(r#"{"kind": "t5"}"#).unwrap(),
        PositionConfig::Shaw { max_distance: 3 },
        PositionConfig::None {},
    ];
    for positions in positions {
        configs.push((format!("{positions:?}"), ModelConfig::Transformer(transformer(positions))));
    }
    let small = TransformerConfig {
        n_heads: 1,
        n_encoder_layers: 1,
        n_decoder_layers: 1,
        ..transformer(PositionConfig::None {})
    };
    configs.push(("one layer of one head".into(), ModelConfig::Transformer(small)));
    let post = TransformerConfig {
        norm_position: NormPosition::Post,
        tied_embeddings: TiedEmbeddings::TargetOutput,
        n_heads: 2,
        decoder_positions: Some(PositionConfig::Alibi {}),
        ..transformer(PositionConfig::Sinusoidal {})
    };
    configs.push(("post-norm, tied, ALiBi in the decoder".into(), ModelConfig::Transformer(post)));
    for readout in [ReadoutConfig::State {}, ReadoutConfig::StateContext {}] {
        let name = format!("similarity with the readout {readout:?}");
        let output = OutputKind::Similarity;
        configs.push((name, ModelConfig::Rnn(RnnConfig { readout, output, ..rnn(AttentionConfig::bahdanau(5)) })));
    }
    let residual = RnnConfig { n_layers: 2, residual: true, ..rnn(AttentionConfig::None {}) };
    configs.push(("two layers with residual connections".into(), ModelConfig::Rnn(residual)));
    let over = |kind: MixerKind, config: RnnConfig| {
        ModelConfig::Rnn(RnnConfig { encoder: SideConfig { mixer: Some(kind.into()) }, ..config })
    };
    configs.push(("over minGRU".into(), over(MixerKind::MinGru, rnn(AttentionConfig::bahdanau(5)))));
    let reversed = RnnConfig { n_layers: 2, reverse_source: true, directions: Directions::Both, ..fixed };
    configs.push(("over SSRU, both ways, reversed".into(), over(MixerKind::Ssru, reversed)));
    let grouped = TransformerConfig { n_key_value_heads: Some(2), ..transformer(PositionConfig::Sinusoidal {}) };
    configs.push(("grouped heads".into(), ModelConfig::Transformer(grouped)));
    configs
}

/// Of one pair.
pub fn tokenizers() -> Tokenizers {
    let pair = Pair { source: "one two three four five".into(), target: "eins zwei drei vier".into() };
    let config: TokenizerConfig = serde_json::from_str(r#"{"kind": "word"}"#).unwrap();
    Tokenizers::train(&[pair], &config).unwrap()
}

/// The model of a config, and every number of its explanation.
pub fn example(config: &ModelConfig, target: Option<&str>) -> (Model, Tokenizers, Explanation) {
    example_of(config, "two one five one", target)
}

/// The same of another source.
pub fn example_of(config: &ModelConfig, source: &str, target: Option<&str>) -> (Model, Tokenizers, Explanation) {
    let tokenizers = tokenizers();
    let model = config.init(vocabularies(&tokenizers), 1, &flex()).unwrap();
    let decoding = DecodingConfig::default();
    let question = Question {
        source_text: source,
        target: target.map(Given::Text),
        decoding: &decoding,
        seed: 1,
        detail: Detail::Everything,
    };
    let explanation = explain(&model, config, &tokenizers, &question, |_, _, _| ());
    (model, tokenizers, explanation)
}

/// In 64 bits.
pub fn softmax(scores: impl Iterator<Item = f64> + Clone) -> Vec<f64> {
    let max = scores.clone().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = scores.clone().map(|score| (score - max).exp()).sum();
    scores.map(|score| (score - max).exp() / sum).collect()
}
