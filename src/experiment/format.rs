//! The config in a run folder: its checksum, and what older formats called things. The formats are listed in
//! [`training::format`](crate::training::format).

use crate::training::hash;

/// What the first line of a run's config begins with; the SHA-256 of all other lines follows.
const SEAL: &str = "# sha256 ";
const SEAL_END: &str = " of all other lines, as lookback wrote them; to change a key: --set";

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
