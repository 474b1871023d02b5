//! Models, tasks and searches in a few words.

use crate::config::DataConfig;
use crate::decoding::DecodingConfig;
use crate::layers::mixer::MixerKind;
use crate::models::{ModelConfig, TransformerConfig};

/// What is learnt.
pub(super) fn task_name(data: &DataConfig) -> String {
    match (&data.task, &data.test) {
        (Some(task), _) => task.name().to_string(),
        (None, Some(files)) => {
            let paths = data.resolve(files);
            // Which text they hold, their hash says; where they lie is nobody's concern.
            let names = paths.paths().into_iter().filter_map(|path| path.file_name());
            let names = names.map(|name| name.to_string_lossy().trim_end_matches(".gz").to_string());
            names.collect::<Vec<_>>().join(", ")
        }
        (None, None) => "held-out part of the training files".into(),
    }
}

/// How answers are written.
pub(super) fn decoding_words(decoding: &DecodingConfig) -> String {
    let search = match (&decoding.sampling, decoding.beam_size) {
        (Some(_), _) => "sampled".to_string(),
        (None, 1) => "greedy".to_string(),
        (None, n) => {
            let end = if decoding.early_stopping { ", early stopping" } else { "" };
            format!("beam {n}, length penalty {}{end}", decoding.length_penalty)
        }
    };
    if decoding.max_len_factor.is_none() && decoding.max_len_extra.is_none() {
        return format!("{search}, at most the length that each run derived from its training data");
    }
    let (factor, extra) = decoding.length_cap();
    format!("{search}, at most {factor} tokens for each source token and {extra} more")
}

/// The family of a model.
pub(super) fn family(model: &ModelConfig) -> &'static str {
    match model {
        ModelConfig::Rnn(config) if config.attention.alignment().is_none() => "recurrent",
        ModelConfig::Rnn(_) => "recurrent with attention",
        ModelConfig::Transformer(config) if config.has_attention_alone() => "transformer",
        ModelConfig::Transformer(_) => "transformer with recurrences",
        ModelConfig::DecoderOnly(config) if config.has_attention_alone() => "decoder-only",
        ModelConfig::DecoderOnly(_) => "decoder-only with recurrences",
        ModelConfig::EncoderOnly(config) if config.has_attention_alone() => "encoder-only",
        ModelConfig::EncoderOnly(_) => "encoder-only with recurrences",
    }
}

/// A model in a few words.
pub(super) fn model_words(model: &ModelConfig) -> String {
    match model {
        ModelConfig::Rnn(config) => {
            let attention = match config.attention.alignment() {
                None => {
                    let source = if config.reverse_source { ", source reversed" } else { "" };
                    let context = serde_json::to_value(config.context).unwrap_or_default();
                    format!("one fixed context ({}{source})", context.as_str().unwrap_or_default())
                }
                Some((score, _)) => format!("{} attention, {} score", kind(&config.attention), kind(score)),
            };
            let cell = MixerKind::from(config.cell).name();
            let over = config.encoder.mixer.as_ref().map(|mixers| format!(" over {}", mixers.names()));
            format!("{} x {} {cell}{}, {attention}", config.n_layers, config.d_hidden, over.unwrap_or_default())
        }
        ModelConfig::Transformer(config) => format!(
            "{} + {} layers of {}{}, {} heads, {} positions",
            config.n_encoder_layers,
            config.n_decoder_layers,
            config.d_model,
            mixers(config),
            config.n_heads,
            kind(&config.positions)
        ),
        ModelConfig::EncoderOnly(config) => format!(
            "encoder-only{}, {} layers of {}{} ({}), {} heads, {} positions",
            if config.is_causal { ", causal" } else { "" },
            config.n_layers,
            config.d_model,
            if config.share_layers { ", shared" } else { "" },
            config.mixer.names(),
            config.n_heads,
            kind(&config.positions)
        ),
        ModelConfig::DecoderOnly(config) => format!(
            "decoder-only, {} layers of {}{} ({}), {} heads, {} positions",
            config.n_layers,
            config.d_model,
            if config.share_layers { ", shared" } else { "" },
            config.mixer.names(),
            config.n_heads,
            kind(&config.positions)
        ),
    }
}

/// What mixes, where it is not attention alone.
fn mixers(config: &TransformerConfig) -> String {
    let shared = if config.share_layers { ", shared" } else { "" };
    if config.has_attention_alone() {
        return shared.into();
    }
    let (encoder, decoder) = (config.encoder_mixers().names(), config.decoder_mixers().names());
    match encoder == decoder {
        true => format!("{shared} ({encoder})"),
        false => format!("{shared} ({encoder}; {decoder})"),
    }
}

/// The `kind` of a choice.
fn kind(choice: &impl serde::Serialize) -> String {
    let value = serde_json::to_value(choice).unwrap_or_default();
    value["kind"].as_str().unwrap_or_default().to_string()
}
