//! `lookback evaluate` of a language model.

use super::{EvaluateArgs, check_overrides, moved, shown};
use crate::cli::output::{extension, picture};
use crate::cli::{load_language_model, progress};
use crate::data::TokenStream;
use crate::decoding::score_text;
use crate::error::{Error, Result};
use crate::experiment::{Config, Run, dataset};
use crate::files;
use crate::models::Autoregressive;
use crate::notice;
use crate::ranks::Alone;
use crate::report::by_position;
use crate::scoring::TextScores;
use std::path::Path;

/// Options that are about translations.
pub(super) fn check_options(args: &EvaluateArgs) -> Result<()> {
    let given = [
        (args.output.is_some(), "--output"),
        (!args.metrics.is_empty(), "--metric"),
        (args.lowercase, "--lowercase"),
        (args.tokenize.is_some(), "--tokenize"),
    ];
    let first = given.into_iter().find(|(is_given, _)| *is_given).map(|(_, name)| name);
    match first.or(args.decoding.first_given()) {
        Some(option) => {
            let message = format!(
                "{option} has no effect here: a model of plain text is measured on the text itself, and writes nothing"
            );
            Err(Error::message(message))
        }
        None => Ok(()),
    }
}

/// What comes of the language models of all runs: a table, or one JSON object a line; and a chart, if requested.
pub(super) fn evaluate(args: &EvaluateArgs) -> Result<String> {
    check_options(args)?;
    check_overrides(&args.set)?;
    // A wrong ending is said before the models work for minutes.
    let chart = args.chart.as_deref().map(|path| Ok((path, extension(path, &["svg", "png"])?))).transpose()?;
    let measured = args.run.iter().map(|run| Ok((run.display().to_string(), of_run(args, run)?)));
    let measured = measured.collect::<Result<Vec<(String, TextScores)>>>()?;
    if let Some((path, ending)) = chart {
        files::replace(path, &picture(by_position::chart(&measured).svg(), ending)?)?;
    }
    Ok(shown(&measured, args.json, table))
}

/// The lines that are measured on.
pub(super) fn lines_of_split(args: &EvaluateArgs, config: &Config) -> Result<Vec<String>> {
    let split = args.split;
    let keys = format!("data.text.{split}=[\"FILE\"]");
    dataset::lines_of(&config.data, split).map_err(|error| moved(error, &keys))
}

/// How well the model of a run predicts a split of its text.
fn of_run(args: &EvaluateArgs, run: &Path) -> Result<TextScores> {
    let config = Run::open(run)?.config_with(&args.set)?;
    let loaded = load_language_model(run, &args.place.or(config.backend), args.checkpoint.as_deref())?;
    let lines = lines_of_split(args, &config)?;
    let text = TokenStream::new(&lines, loaded.tokenizers.target());
    let context = config.data.text.as_ref().map_or(text.n_tokens(), |text| text.context);
    dataset::check_context(context, 0, loaded.model.limits().target)?;
    if text.n_unknown() > 0 {
        notice::warn(format_args!(
            "{} of {} tokens are not in the vocabulary; perplexity and bits say nothing of what they are",
            text.n_unknown(),
            text.n_tokens()
        ));
    }
    let bar = progress::bar(text.n_tokens() as u64, "reading");
    let scores =
        score_text(&loaded.model, &text, context, config.decoding.batch_tokens, &Alone, |n| bar.set_position(n as u64));
    bar.finish_and_clear();
    Ok(scores)
}

/// The scores as a table.
fn table(scores: &TextScores) -> String {
    let mut text = String::new();
    let mut row = |name: &str, value: String| text += &format!("{name:<30}{value:>10}\n");
    row("tokens", scores.tokens.to_string());
    row("characters", scores.characters.to_string());
    row("loss (nats per token)", format!("{:.4}", scores.loss));
    row("perplexity (tokens)", format!("{:.3}", scores.perplexity));
    row("bits per character", format!("{:.4}", scores.bits_per_character));
    row("bits per byte", format!("{:.4}", scores.bits_per_byte));
    row("token accuracy (%)", format!("{:.2}", 100.0 * scores.token_accuracy));
    text += &format!("\n{:>23}  {:>9}  {:>9}\n", "tokens in sight", "tokens", "loss");
    for range in &scores.by_position {
        let name = if range.from == range.to { range.to.to_string() } else { format!("{}-{}", range.from, range.to) };
        text += &format!("{name:>23}  {:>9}  {:>9.4}\n", range.tokens, range.loss);
    }
    text
}
