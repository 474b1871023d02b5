//! `lookback evaluate` of a model of masked words.

use super::text::{check_options, lines_of_split};
use super::{EvaluateArgs, check_overrides, shown};
use crate::cli::{load_encoder_only, progress};
use crate::data::TokenStream;
use crate::data::masking::Masking;
use crate::decoding::score_masked;
use crate::error::{Error, Result};
use crate::experiment::{Run, check_can_hide, dataset};
use crate::models::Autoregressive;
use crate::notice;
use crate::ranks::Alone;
use crate::scoring::MaskedScores;
use std::path::Path;

/// What comes of the models of all runs: a table, or one JSON object a line.
pub(super) fn evaluate(args: &EvaluateArgs) -> Result<String> {
    check_options(args)?;
    check_overrides(&args.set)?;
    if args.chart.is_some() {
        return Err(Error::message("--chart has no effect here: it draws the loss of language models of plain text"));
    }
    let measured = args.run.iter().map(|run| Ok((run.display().to_string(), of_run(args, run)?)));
    Ok(shown(&measured.collect::<Result<Vec<_>>>()?, args.json, table))
}

/// How well the model of a run predicts hidden words of a split of its text.
fn of_run(args: &EvaluateArgs, run: &Path) -> Result<MaskedScores> {
    let config = Run::open(run)?.config_with(&args.set)?;
    let (loaded, _) = load_encoder_only(run, &args.place.or(config.backend), args.checkpoint.as_deref())?;
    let lines = lines_of_split(args, &config)?;
    let text = TokenStream::new(&lines, loaded.tokenizers.source());
    let own = config.data.text.clone().unwrap_or_default();
    let masking = Masking::new(loaded.tokenizers.source(), own.masked_rate).ok_or_else(|| {
        Error::file(run, "has a vocabulary without a token for hidden words: it is that of another kind of model")
    })?;
    check_can_hide(&masking, &text, args.split)?;
    dataset::check_context(own.context, 1, loaded.model.limits().source)?;
    if text.n_unknown() > 0 {
        notice::warn(format_args!(
            "{} of {} tokens are not in the vocabulary; they are never hidden",
            text.n_unknown(),
            text.n_tokens()
        ));
    }
    let bar = progress::bar(text.n_tokens() as u64, "reading");
    let sizes = (own.context, config.decoding.batch_tokens);
    let scores =
        score_masked(&loaded.model, &text, &masking, sizes, config.seed, &Alone, |n| bar.set_position(n as u64));
    bar.finish_and_clear();
    Ok(scores)
}

fn table(scores: &MaskedScores) -> String {
    let mut text = String::new();
    let mut row = |name: &str, value: String| text += &format!("{name:<30}{value:>10}\n");
    row("tokens", scores.tokens.to_string());
    row("hidden tokens", scores.masked.to_string());
    row("loss (nats per hidden token)", format!("{:.4}", scores.loss));
    row("perplexity (hidden tokens)", format!("{:.3}", scores.perplexity));
    row("masked accuracy (%)", format!("{:.2}", 100.0 * scores.masked_accuracy));
    text
}
