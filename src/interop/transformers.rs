//! Models of this program as transformers reads them.

use super::shipped::Shipped;
use super::{language_model, marian};
use crate::error::{Error, Result};
use crate::experiment::{ExportOptions, Run};
use crate::models::ModelConfig;
use std::path::Path;

/// Writes the model of `run` as transformers reads it into `out`, which must not exist yet or be empty. Returns the bytes written.
///
/// A Transformer becomes a MarianMTModel, or a PegasusForConditionalGeneration if its norms stand before the sublayers; a language
/// model one of GPT-2, GPT-NeoX or LLaMA.
///
/// # Errors
/// If the run has no whole checkpoint, the model has a part for which these have no place, or `out` holds something.
pub fn export_hugging_face(run: &Run, out: &Path, options: &ExportOptions, warn: impl FnOnce(String)) -> Result<u64> {
    if options.int8 {
        let message = "--int8: transformers has no such files; it rounds a model when it loads it. Leave it out";
        return Err(Error::message(message));
    }
    let shipped = Shipped::open(run, out, options, "transformers", warn)?;
    let (files, usage) = match &shipped.config.model {
        ModelConfig::DecoderOnly(config) => language_model::files(&shipped, config)?,
        _ => marian::files(&shipped, shipped.transformer()?)?,
    };
    shipped.write(files, &usage)
}
