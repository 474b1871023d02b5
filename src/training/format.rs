//! The run folder's format, and what older ones called things.
//!
//! | format | what it changed |
//! | --- | --- |
//! | 1 | |
//! | 2 | attention of recurrent models is a score, a window and a placement: `d_attention` moved into `score`, and the parameters with it |
//! | 3 | a run keeps the end of its learning rate's schedule; pairs are held out only for splits without files of their own |
//! | 4 | a run's config and manifests have a checksum of their own; checkpoints have that of their tokenizer, `best` and `last` that of their checkpoint |

use super::manifest::hash;
use crate::models::weights::Weights;

/// What the first line of a run's config begins with; the SHA-256 of all other lines follows.
const SEAL: &str = "# sha256 ";
const SEAL_END: &str = " of all other lines, as lookback wrote them; to change a key: --set";

/// The version that this program writes; it reads all before it.
pub const FORMAT_VERSION: u32 = 4;

/// Since when configs and manifests have a checksum of their own.
pub(super) const SEALED: u32 = 4;

/// A run's config with its checksum before it.
pub(super) fn seal(config: &str) -> String {
    format!("{SEAL}{}{SEAL_END}\n{config}", hash(config.as_bytes()))
}

/// Whether `text` is a config with a checksum. The error says what is wrong with the file.
pub(super) fn check_seal(text: &str) -> Result<bool, String> {
    let Some(rest) = text.strip_prefix(SEAL) else { return Ok(false) };
    let (line, config) = rest.split_once('\n').unwrap_or((rest, ""));
    if line.strip_suffix(SEAL_END) == Some(&hash(config.as_bytes())) {
        return Ok(true);
    }
    Err("is not what was written: its SHA-256 is not that of its first line; put it back, and change keys with --set"
        .into())
}

/// Keys that came after format 1, each with a default that does what versions before it did.
const ADDED: [&str; 13] = [
    "data.task.asks_all",
    "data.task.in_place",
    "data.task.n_blanks",
    "data.several_references",
    "model.attention.window",
    "model.mixer",
    "model.norm",
    "model.residual",
    "model.share_layers",
    "training.fused",
    "training.scheduled_sampling",
    "decoding.early_stopping",
    "decoding.max_source_len",
];

/// Refuses a config without a checksum that lacks a key which all versions wrote: it was cut off, and its defaults would make
/// another model of it.
pub(super) fn check_whole(missing: &[String]) -> Result<(), String> {
    match missing.iter().find(|key| !ADDED.contains(&key.as_str())) {
        Some(key) => Err(format!("has no key {key}: it is not whole; put it back")),
        None => Ok(()),
    }
}

/// Turns a resolved config of any older format into one of today.
pub(super) fn upgrade_config(config: &mut toml::Table) {
    let attention = config.get_mut("model").and_then(|model| model.get_mut("attention"));
    let Some(attention) = attention.and_then(toml::Value::as_table_mut) else { return };
    if let Some(d_attention) = attention.remove("d_attention") {
        let mut score = toml::Table::new();
        score.insert("kind".into(), "additive".into());
        score.insert("d_attention".into(), d_attention);
        attention.insert("score".into(), score.into());
    }
}

/// The parameters, or what the optimizer knows of each, under the paths of today.
pub(super) fn upgrade_weights(weights: Weights, version: u32) -> Weights {
    if version >= 2 || !weights.keys().any(|path| path.starts_with("attention.")) {
        return weights;
    }
    weights.into_iter().map(|(path, weight)| (upgrade_path(path), weight)).collect()
}

/// From format 1 to 2, for recurrent models with attention.
fn upgrade_path(path: String) -> String {
    for (old, new) in [
        ("attention.query.", "attention.alignment.score.query."),
        ("attention.key.", "attention.alignment.score.key."),
        ("attention.score", "attention.alignment.score.vector"),
        ("context_input.", "attention.context_input."),
    ] {
        if let Some(rest) = path.strip_prefix(old) {
            return format!("{new}{rest}");
        }
    }
    path
}
