//! `lookback evaluate` of a model that answers with numbers.

use super::{EvaluateArgs, check_overrides, files_of, moved};
use crate::cli::output::json_line;
use crate::cli::{load_encoder_only, progress};
use crate::data::{Series, SeriesPair};
use crate::decoding::predict_series;
use crate::error::{Error, Result};
use crate::experiment::series::{is_without_series, length_fault, scalings, series_of};
use crate::experiment::{LoadedModel, Run, dataset};
use crate::files;
use crate::models::Autoregressive;
use crate::ranks::Alone;
use crate::scoring::{ErrorScores, SeriesScores, SeriesStatistics};
use std::path::Path;

/// What comes of a run: a table, or one JSON object.
pub(super) fn evaluate(args: &EvaluateArgs, run: &Path) -> Result<String> {
    check_options(args)?;
    check_overrides(&args.set)?;
    let split = args.split;
    let config = Run::open(run)?.config_with(&args.set)?;
    if let Some(path) = args.output.as_ref().filter(|output| config.data.names(output)) {
        return Err(Error::file(path, "is data of the run and would be written over; give another --output"));
    }
    let pairs = dataset::pairs_of(&config.data, split, config.seed).map_err(|error| moved(error, &files_of(split)))?;
    let (loaded, _) = load_encoder_only(run, &args.place.or(config.backend), args.checkpoint.as_deref())?;
    let is_blank: Vec<bool> = pairs.iter().map(is_without_series).collect();
    let pairs = series_of(&config.data, split, &pairs, Some(&loaded.tokenizers))?;
    if pairs.is_empty() {
        return Err(Error::config(format!("data.{split}"), "has no series to score"));
    }
    let limit = loaded.model.limits().source;
    if let Some(fault) = pairs.iter().find_map(|pair| length_fault(pair.source.n_steps(), limit)) {
        return Err(Error::config(format!("data.{split}"), format!("a series {fault}")));
    }
    let found = predictions(&loaded, &pairs);
    if let Some(path) = &args.output {
        let (_, target) = scalings(&loaded.tokenizers);
        // Line for line beside the data: what is blank there is blank here.
        let mut answers = found.iter().map(|series| target.rounded(series).to_string());
        let line = |is_blank: &bool| if *is_blank { None } else { answers.next() }.unwrap_or_default() + "\n";
        let text: String = is_blank.iter().map(line).collect();
        files::replace(path, text.as_bytes())?;
    }
    let scores = statistics(&loaded, &pairs, &found).scores();
    Ok(if args.json { json_line(&scores) + "\n" } else { table(&scores) })
}

/// Options that are about words, and more runs than one.
fn check_options(args: &EvaluateArgs) -> Result<()> {
    let given = [
        (!args.metrics.is_empty(), "--metric"),
        (args.lowercase, "--lowercase"),
        (args.tokenize.is_some(), "--tokenize"),
        (args.chart.is_some(), "--chart"),
    ];
    let first = given.into_iter().find(|(is_given, _)| *is_given).map(|(_, name)| name);
    if let Some(option) = first.or(args.decoding.first_given()) {
        let message = format!("{option} has no effect here: the model answers with numbers, whose errors are measured");
        return Err(Error::message(message));
    }
    if args.run.len() > 1 {
        let message = "models that answer with numbers are evaluated one at a time; give one --run";
        return Err(Error::message(message));
    }
    Ok(())
}

/// What the model answers to each source.
pub(in crate::cli) fn predictions(loaded: &LoadedModel, pairs: &[SeriesPair]) -> Vec<Series> {
    let (source, target) = scalings(&loaded.tokenizers);
    let bar = progress::bar(pairs.len() as u64, "predicting");
    let sources: Vec<&Series> = pairs.iter().map(|pair| &pair.source).collect();
    let found = predict_series(&loaded.model, &sources, source, target, loaded.config.decoding.batch_tokens, &Alone);
    bar.finish_and_clear();
    found
}

/// The errors of `found`, and of forecasts without a model.
pub(in crate::cli) fn statistics(loaded: &LoadedModel, pairs: &[SeriesPair], found: &[Series]) -> SeriesStatistics {
    let (source, target) = scalings(&loaded.tokenizers);
    let has_last = source.n_channels() == target.n_channels();
    let mut statistics = SeriesStatistics::default();
    for (pair, predicted) in pairs.iter().zip(found) {
        let last = has_last.then(|| pair.source.values());
        statistics.add(predicted.values(), pair.target.values(), last, target.mean());
    }
    statistics
}

/// The scores as a table.
fn table(scores: &SeriesScores) -> String {
    let mut text = format!("{:<30}{:>12}\n{:<30}{:>12}\n", "series", scores.sequences, "steps", scores.steps);
    text += &format!("\n{:>30}{:>12}{:>12}{:>12}\n", "", "MSE", "root MSE", "MAE");
    let mut row = |name: &str, errors: &ErrorScores| {
        text += &format!("{name:<30}{:>12}{:>12}{:>12}\n", digits(errors.mse), digits(errors.rmse), digits(errors.mae));
    };
    row("the model", &scores.errors);
    if let Some(last) = &scores.baselines.last_value {
        row("the value last seen", last);
    }
    row("the mean of training", &scores.baselines.training_mean);
    if scores.by_channel.len() > 1 {
        for (channel, errors) in scores.by_channel.iter().enumerate() {
            row(&format!("the model, channel {}", channel + 1), errors);
        }
    }
    text += &format!("\n{:>14}{:>16}{:>12}{:>12}{:>12}\n", "place", "steps", "MSE", "root MSE", "MAE");
    for place in &scores.by_position {
        let name = if place.from == place.to { place.to.to_string() } else { format!("{}-{}", place.from, place.to) };
        let errors = place.errors;
        text += &format!(
            "{name:>14}{:>16}{:>12}{:>12}{:>12}\n",
            place.steps,
            digits(errors.mse),
            digits(errors.rmse),
            digits(errors.mae)
        );
    }
    text
}

/// Four digits behind the point, or an exponent where those would say nothing.
pub(in crate::cli) fn digits(value: f64) -> String {
    if value == 0.0 || (1e-3..1e7).contains(&value) { format!("{value:.4}") } else { format!("{value:.3e}") }
}
