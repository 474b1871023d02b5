//! `lookback predict` of a model that answers with numbers.

use super::PredictArgs;
use crate::cli::output;
use crate::cli::output::json_line;
use crate::data::Series;
use crate::decoding::predict_series;
use crate::error::{Error, Result};
use crate::experiment::LoadedModel;
use crate::experiment::series::{scalings, source_of};
use crate::models::Autoregressive;
use crate::ranks::Alone;
use schemars::JsonSchema;
use serde::Serialize;
use std::io::Write;

pub(super) fn run(args: &PredictArgs, loaded: &LoadedModel) -> Result<()> {
    if args.n_best > 1 {
        let message = "--n-best has no effect here: the model answers with numbers, which have no probabilities";
        return Err(Error::message(message));
    }
    let mut output = output::open(&args.output, [args.lines.input.as_path()])?;
    let mut n_lines = 0;
    args.lines.for_each_group(|lines| answer(args, loaded, lines, &mut n_lines, &mut output))?;
    output.flush().map_err(output::error(&args.output))
}

/// Answers some lines, which come after `n_lines` others.
fn answer(
    args: &PredictArgs,
    loaded: &LoadedModel,
    lines: &[String],
    n_lines: &mut usize,
    output: &mut dyn Write,
) -> Result<()> {
    let (source, target) = scalings(&loaded.tokenizers);
    let limit = loaded.model.limits().source;
    let read = |(i, line): (usize, &String)| {
        source_of(line, source, limit).map_err(|fault| Error::line(args.lines.place(), *n_lines + i + 1, fault))
    };
    let series = lines.iter().enumerate().map(read).collect::<Result<Vec<Series>>>()?;
    let given: Vec<&Series> = series.iter().collect();
    let found = predict_series(&loaded.model, &given, source, target, loaded.config.decoding.batch_tokens, &Alone);
    for (line, predicted) in lines.iter().zip(&found) {
        let predicted = target.rounded(predicted);
        let written = match args.json {
            true => {
                let values = predicted.steps().map(<[f64]>::to_vec).collect();
                writeln!(output, "{}", json_line(&PredictedSeries { source: line.trim().to_owned(), values }))
            }
            false => writeln!(output, "{predicted}"),
        };
        written.map_err(output::error(&args.output))?;
    }
    *n_lines += lines.len();
    output.flush().map_err(output::error(&args.output))
}

/// A line of `lookback predict --json`, where answers are numbers.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "A line of lookback predict --json, where answers are numbers")]
pub(in crate::cli) struct PredictedSeries {
    /// The line that was read.
    source: String,
    /// The numbers of each step.
    values: Vec<Vec<f64>>,
}
