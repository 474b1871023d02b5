//! The run folder's format, and what older ones called things.
//!
//! | format | what it changed |
//! | --- | --- |
//! | 1 | |
//! | 2 | attention of recurrent models is a score, a window and a placement: `d_attention` moved into `score`, and the parameters with it |
//! | 3 | a run keeps the end of its learning rate's schedule; pairs are held out only for splits without files of their own |
//! | 4 | a run's config and manifests have a checksum of their own; checkpoints have that of their tokenizer, `best` and `last` that of their checkpoint |

use crate::models::weights::Weights;

/// The version that this program writes; it reads all before it.
pub const FORMAT_VERSION: u32 = 4;

/// Since when configs and manifests have a checksum of their own.
pub(crate) const SEALED: u32 = 4;

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
