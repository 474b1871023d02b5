//! `lookback inspect` of language models: what is looked at is a text that has no source.

use super::arguments::{InspectAttentionArgs, numbered, own_lines};
use crate::data::Tokenizer;
use crate::error::{Error, Result};
use crate::experiment::LoadedModel;
use crate::models::Autoregressive;
use crate::notice;
use crate::report::attention::collect::Written;
use std::path::Path;

/// The texts whose attention is looked at, and the number of all lines.
///
/// # Errors
/// If an option needs a source, or there is no text, or one is too long for the model.
pub(super) fn written(args: &InspectAttentionArgs, loaded: &LoadedModel) -> Result<(Vec<Written>, usize)> {
    refuse_options(args)?;
    let (lines, n_lines) = numbered(args, || own_lines(loaded))?;
    let origin = args.origin();
    let texts: Vec<Written> =
        lines.iter().filter_map(|(number, line)| Written::of_text(*number, line, &loaded.tokenizers)).collect();
    if texts.is_empty() {
        return Err(Error::file(origin, "has no text to look at: no line has a token that predicts another"));
    }
    check_lengths(loaded, origin, texts.iter().map(|text| (text.number, text.target.len())))?;
    warn_of_unknown(loaded.tokenizers.target(), lines.iter().map(|(_, line)| line.as_str()));
    Ok((texts, n_lines))
}

/// Options that are about a source or about what is written for it.
fn refuse_options(args: &InspectAttentionArgs) -> Result<()> {
    let Some(option) = args.first_for_words() else { return Ok(()) };
    let why = match option {
        "--target" => "a line of --input is the whole text",
        "--alignments" => "there are no two texts whose words could be aligned",
        "--faithfulness" => "it erases words of a source",
        _ => "nothing is translated",
    };
    let message = format!("{option} has no effect here: a language model has no source, and {why}; leave it out");
    Err(Error::message(message))
}

/// Refuses texts longer than the model can number, and warns of those longer than it has ever seen; `texts` has the number of
/// each line and the tokens that are read of it.
pub(super) fn check_lengths(
    loaded: &LoadedModel,
    origin: &Path,
    texts: impl Iterator<Item = (usize, usize)>,
) -> Result<()> {
    let limit = loaded.model.limits().target;
    let context = loaded.config.context_of_writing();
    let mut n_long = 0;
    for (number, len) in texts {
        if let Some(limit) = limit.filter(|limit| len > limit.len) {
            let (most, key) = (limit.len, limit.key);
            let message = format!("has {len} tokens, but the model was trained with {key} = {most}; split the line");
            return Err(Error::line(origin, number, message));
        }
        n_long += context.is_some_and(|context| len > context) as usize;
    }
    if let Some(context) = context.filter(|_| n_long > 0) {
        notice::warn(format_args!(
            "{n_long} of the lines have more tokens than the model had in sight in training (data.text.context = {context}): \
             it was not trained on longer texts"
        ));
    }
    Ok(())
}

/// Says what the vocabulary lacks.
pub(super) fn warn_of_unknown<'a>(tokenizer: &Tokenizer, lines: impl Iterator<Item = &'a str>) {
    let unknown: Vec<String> = lines.flat_map(|line| tokenizer.unknown(line)).collect();
    if !unknown.is_empty() {
        let first: Vec<&str> = unknown.iter().take(5).map(String::as_str).collect();
        notice::warn(format_args!(
            "the vocabulary lacks {} tokens of the text, which the model reads as <unk>: {}{}",
            unknown.len(),
            first.join(" "),
            if unknown.len() > first.len() { " .." } else { "" }
        ));
    }
}
