//! Model configs that cannot be used, and what is said about them.

use crate::support::flex;
use lookback::layers::attention::AttentionConfig;
use lookback::layers::mixer::{MixerConfig, MixerKind, Mixers};
use lookback::layers::position::PositionConfig;
use lookback::models::readout::ReadoutConfig;
use lookback::models::rnn::{Bridge, ContextUse};
use lookback::models::transformer::TiedEmbeddings;
use lookback::models::{
    Autoregressive, LengthLimit, LengthLimits, ModelConfig, RnnConfig, TransformerConfig, Vocabularies,
};

const SEPARATE: Vocabularies = Vocabularies { source: 11, target: 13, shared: false };

#[track_caller]
fn refused(config: ModelConfig, message: &str) {
    let error = config.validate().expect_err("the config cannot be used").to_string();
    assert_eq!(error, message);
    // What is not valid cannot be made either.
    assert_eq!(config.init(SEPARATE, 1, &flex()).expect_err("it cannot be made").to_string(), message);
}

/// As [`refused`], of a longer message.
fn refused_beginning(config: ModelConfig, message: &str) {
    let error = config.validate().expect_err("the config cannot be used").to_string();
    assert!(error.starts_with(message), "{error}");
}

fn transformer(change: impl FnOnce(&mut TransformerConfig)) -> ModelConfig {
    let mut config = TransformerConfig::default();
    change(&mut config);
    ModelConfig::Transformer(config)
}

fn rnn(change: impl FnOnce(&mut RnnConfig)) -> ModelConfig {
    let mut config = RnnConfig::default();
    change(&mut config);
    ModelConfig::Rnn(config)
}

#[test]
fn the_defaults_can_be_used() {
    assert!(transformer(|_| ()).validate().is_ok() && rnn(|_| ()).validate().is_ok());
}

#[test]
fn heads_must_divide_the_width() {
    let config = transformer(|c| (c.d_model, c.n_heads) = (10, 4));
    refused(config, "model.n_heads: must divide model.d_model, got 4 and 10");
}

#[test]
fn heads_of_keys_and_values_must_divide_the_heads_of_queries() {
    let config = transformer(|c| c.n_key_value_heads = Some(3));
    refused(config, "model.n_key_value_heads: must divide model.n_heads, got 3 and 4");
    assert!(transformer(|c| c.n_key_value_heads = Some(2)).validate().is_ok());
}

#[test]
fn rotary_positions_need_heads_of_an_even_width() {
    let rotary = PositionConfig::Rotary { base: 10_000.0 };
    let message = |key: &str| {
        format!(
            "{key}: \"rotary\" turns pairs of numbers, so that the width of a head, model.d_model / model.n_heads, must be \
             even, got 10 / 2 = 5"
        )
    };
    let config = transformer(|c| (c.d_model, c.n_heads, c.positions) = (10, 2, rotary.clone()));
    refused(config, &message("model.positions"));
    let config = transformer(|c| (c.d_model, c.n_heads, c.decoder_positions) = (10, 2, Some(rotary.clone())));
    refused(config, &message("model.decoder_positions"));
}

#[test]
fn lengths_end_on_the_side_whose_table_ends() {
    let learned = |max_len| PositionConfig::Learned { max_len };
    let limits = |config: ModelConfig| config.init(SEPARATE, 1, &flex()).expect("it can be made").limits();
    let limit = |len, key| Some(LengthLimit { len, key });
    let both = limits(transformer(|c| c.positions = learned(7)));
    let expected = limit(7, "model.positions.max_len");
    assert_eq!(both, LengthLimits { source: expected, target: expected });
    let decoder = limits(transformer(|c| c.decoder_positions = Some(learned(5))));
    let expected = limit(5, "model.decoder_positions.max_len");
    assert_eq!(decoder, LengthLimits { source: None, target: expected });
    let apart = limits(transformer(|c| (c.positions, c.decoder_positions) = (learned(7), Some(learned(5)))));
    assert_eq!(apart, LengthLimits { source: limit(7, "model.positions.max_len"), target: expected });
    let encoder =
        limits(transformer(|c| (c.positions, c.decoder_positions) = (learned(7), Some(PositionConfig::None {}))));
    assert_eq!(encoder, LengthLimits { source: limit(7, "model.positions.max_len"), target: None });
}

#[test]
fn each_default_of_a_scheme_is_the_published_one() {
    let scheme = |text: &str| serde_json::from_str::<PositionConfig>(text).expect("a scheme");
    assert_eq!(scheme(r#"{"kind": "rotary"}"#), PositionConfig::Rotary { base: 10_000.0 });
    assert_eq!(scheme(r#"{"kind": "t5"}"#), PositionConfig::T5 { n_buckets: 32, max_distance: 128 });
    assert_eq!(scheme(r#"{"kind": "shaw"}"#), PositionConfig::Shaw { max_distance: 16 });
    for (text, scheme_of) in [
        (r#"{"kind": "sinusoidal"}"#, PositionConfig::Sinusoidal {}),
        (r#"{"kind": "alibi"}"#, PositionConfig::Alibi {}),
        (r#"{"kind": "none"}"#, PositionConfig::None {}),
    ] {
        assert_eq!(scheme(text), scheme_of);
    }
}

#[test]
fn sizes_of_zero_are_refused() {
    refused(transformer(|c| c.d_model = 0), "model.d_model: must be at least 1, got 0");
    refused(transformer(|c| c.d_feed_forward = 0), "model.d_feed_forward: must be at least 1, got 0");
    refused(transformer(|c| c.n_heads = 0), "model.n_heads: must be at least 1, got 0");
    refused(transformer(|c| c.n_encoder_layers = 0), "model.n_encoder_layers: must be at least 1, got 0");
    refused(transformer(|c| c.n_decoder_layers = 0), "model.n_decoder_layers: must be at least 1, got 0");
    let learned = transformer(|c| c.positions = PositionConfig::Learned { max_len: 0 });
    refused(learned, "model.positions.max_len: must be at least 1, got 0");
    refused(rnn(|c| c.d_embedding = 0), "model.d_embedding: must be at least 1, got 0");
    refused(rnn(|c| c.d_hidden = 0), "model.d_hidden: must be at least 1, got 0");
    refused(rnn(|c| c.n_layers = 0), "model.n_layers: must be at least 1, got 0");
    let bahdanau = rnn(|c| c.attention = AttentionConfig::bahdanau(0));
    refused(bahdanau, "model.attention.score.d_attention: must be at least 1, got 0");
    let deep = rnn(|c| c.readout = ReadoutConfig::DeepOutput { d_maxout: 0 });
    refused(deep, "model.readout.d_maxout: must be at least 1, got 0");
}

#[test]
fn a_rate_is_a_probability_below_one() {
    let rule = "must be at least 0 and less than 1, got";
    refused(transformer(|c| c.dropout_rate = 1.0), &format!("model.dropout_rate: {rule} 1"));
    refused(transformer(|c| c.attention_dropout_rate = -0.1), &format!("model.attention_dropout_rate: {rule} -0.1"));
    refused(
        transformer(|c| c.embedding_dropout_rate = Some(1.5)),
        &format!("model.embedding_dropout_rate: {rule} 1.5"),
    );
    refused(transformer(|c| c.activation_dropout_rate = 2.0), &format!("model.activation_dropout_rate: {rule} 2"));
    refused(rnn(|c| c.dropout_rate = f64::NAN), &format!("model.dropout_rate: {rule} NaN"));
}

#[test]
fn an_initial_context_needs_a_bridge_and_no_attention() {
    let initial = |change: fn(&mut RnnConfig)| {
        rnn(|c| {
            c.context = ContextUse::Initial;
            change(c);
        })
    };
    assert!(initial(|_| ()).validate().is_ok());
    refused(
        initial(|c| c.bridge = Bridge::Zeros),
        "model.context: \"initial\" cannot be used here: the decoder would see nothing of the source",
    );
    refused(
        initial(|c| c.attention = AttentionConfig::bahdanau(3)),
        "model.context: \"initial\" cannot be used here: attention makes a new context at every step",
    );
}

#[test]
fn an_encoder_of_a_recurrent_model_has_states_that_are_vectors() {
    let with = |mixer: MixerConfig| rnn(|c| c.encoder.mixer = Some(Mixers::One(mixer)));
    for kind in MixerKind::RECURRENT {
        let (config, key) = (with(MixerConfig::new(kind)), "model.encoder.mixer.kind");
        match kind.has_vector() {
            true => assert!(config.validate().is_ok(), "{kind:?}"),
            false => refused_beginning(config, &format!("{key}: \"{}\" has no state that is a vector", kind.name())),
        }
    }
    let min_gru = MixerConfig::new(MixerKind::MinGru);
    refused_beginning(
        with(MixerConfig::new(MixerKind::Attention)),
        "model.encoder.mixer.kind: \"attention\" has no state",
    );
    refused(
        with(MixerConfig { bidirectional: Some(false), ..min_gru }),
        "model.encoder.mixer.bidirectional: is said by model.directions here; leave it out",
    );
    refused_beginning(
        with(MixerConfig { expansion: Some(2), ..min_gru }),
        "model.encoder.mixer.expansion: is for Trans",
    );
    let two = vec![min_gru, MixerConfig::new(MixerKind::Delta)];
    refused_beginning(
        rnn(|c| c.encoder.mixer = Some(Mixers::InTurn(two))),
        "model.encoder.mixer[1].kind: \"delta\" has",
    );
    refused_beginning(rnn(|c| c.encoder.mixer = Some(Mixers::InTurn(vec![]))), "model.encoder.mixer: is an empty list");
}

#[test]
fn tying_everything_needs_a_shared_vocabulary() {
    let config = transformer(|c| (c.d_model, c.tied_embeddings) = (8, TiedEmbeddings::All));
    assert!(config.validate().is_ok(), "before the vocabularies are known nothing is wrong");
    let error = config.init(SEPARATE, 1, &flex()).expect_err("two vocabularies").to_string();
    let message = "model.tied_embeddings: \"all\" needs one vocabulary for both sides: set tokenizer.shared = true, or tie \
                   \"target-output\"";
    assert_eq!(error, message);
    assert!(config.init(Vocabularies { shared: true, source: 13, target: 13 }, 1, &flex()).is_ok());
}

#[test]
fn misspelt_keys_and_kinds_are_refused() {
    for (text, hint) in [
        (r#"{"kind": "rnn", "d_hiden": 3}"#, "d_hiden"),
        (r#"{"kind": "transformer", "n_head": 3}"#, "n_head"),
        (
            r#"{"kind": "rnn", "attention": {"kind": "bahdanau", "score": {"kind": "additive", "d_attention": 3, "d_attn": 4}}}"#,
            "d_attn",
        ),
        (r#"{"kind": "rnn", "attention": {"kind": "hard"}}"#, "hard"),
        (r#"{"kind": "transformer", "positions": {"kind": "alibi", "base": 3}}"#, "base"),
        (r#"{"kind": "transformer", "decoder_positions": {"kind": "rope"}}"#, "rope"),
        (r#"{"kind": "convolution"}"#, "convolution"),
    ] {
        let error = serde_json::from_str::<ModelConfig>(text).expect_err(text).to_string();
        assert!(error.contains(hint), "{text}: {error}");
    }
}
