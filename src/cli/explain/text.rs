//! `lookback explain` of language models: the continuation of a text.

use super::{Bars, ExplainArgs, detail};
use crate::error::{Error, Result};
use crate::experiment::LoadedModel;
use crate::models::Autoregressive;
use crate::report::explanation::{Explanation, Given, TextQuestion, explain_text, note_of_unknown, unknown_words};

/// Tokens written by default: as many steps as are still readable.
const MAX_TOKENS: usize = 20;

/// The explanation of a beginning and what follows it.
///
/// # Errors
/// If an option is for translations, or the text does not fit into what the model has in sight.
pub(super) fn explanation(args: &ExplainArgs, loaded: &LoadedModel) -> Result<Explanation> {
    if args.beam.is_some() {
        let message = "--beam is for translations: a language model takes the likeliest token each time, or draws one";
        return Err(Error::message(message));
    }
    let tokenizer = loaded.tokenizers.target();
    let sampling = loaded.config.decoding.sampling.as_ref();
    let limit = loaded.model.limits().target.map(|limit| limit.len);
    let context = loaded.config.context_of_writing();
    let question = TextQuestion {
        beginning: &args.source,
        continuation: args.target.as_deref().map(Given::Text),
        max_tokens: args.max_tokens.map_or(MAX_TOKENS, |most| usize::try_from(most).unwrap_or(usize::MAX)),
        context: [context, limit].into_iter().flatten().min(),
        sampling,
        seed: loaded.config.seed,
        detail: detail(args),
    };
    let (beginning, continuation) = question.ids(tokenizer);
    let n_given = continuation.as_ref().map(Vec::len);
    if n_given == Some(0) {
        return Err(Error::message("--target is empty: it is how the text goes on"));
    }
    // The last token is not read.
    let n_read = beginning.len() + n_given.map_or(0, |n| n - 1);
    if let Some(most) = question.context.filter(|most| n_read > *most) {
        let what = if n_given.is_some() { "the beginning and --target have" } else { "the beginning has" };
        let message = format!("{what} {n_read} tokens, and this model has {most} in sight; give a shorter text");
        return Err(Error::message(message));
    }
    let mut bars = Bars::default();
    let show = |stage, done, total| bars.show(stage, done, total);
    let mut explanation = explain_text(&loaded.model, &loaded.config.model, tokenizer, &question, show);
    let texts = [("beginning", Some(&args.source)), ("continuation", args.target.as_ref())];
    let unknown = |(side, text): (&str, Option<&String>)| note_of_unknown(&unknown_words(tokenizer, text?), side);
    explanation.notes = texts.into_iter().filter_map(unknown).collect();
    Ok(explanation)
}
