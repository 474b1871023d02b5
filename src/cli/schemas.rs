//! `lookback schemas`.

use super::output::json_for_people;
use super::{attend, devices, evaluate, generate, inspect, predict, print, translate};
use crate::error::{Error, Result};
use crate::files;
use crate::report::comparison::Comparison;
use crate::report::explanation::Explanation;
use crate::report::suite::Suite;
use crate::scoring::{MaskedScores, SeriesScores, TextScores};
use crate::training::MetricsLine;
use clap::Args;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use std::path::PathBuf;

#[derive(Args, Debug)]
#[command(
    after_help = "There is a file for each command with --json, for metrics.jsonl and for results.json of compare;
files of that name are replaced. `lookback config schema` prints the schema of configs,
`lookback serve` has that of its answers at /openapi.json.

Examples:
  lookback schemas --out schemas"
)]
pub(super) struct SchemasArgs {
    /// The folder to write into.
    #[arg(short, long)]
    out: PathBuf,
}

/// The schema of what is written as `T`.
fn of<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>()
}

/// Every output of the program by the name of its file.
fn all() -> Vec<(&'static str, Schema)> {
    vec![
        ("attend", of::<attend::Attended>()),
        ("compare-results", of::<Comparison>()),
        ("compare-suite-results", of::<Suite>()),
        ("devices", of::<devices::Devices>()),
        ("evaluate", of::<evaluate::OfPairs>()),
        ("evaluate-masked-words", of::<evaluate::OfRun<MaskedScores>>()),
        ("evaluate-numbers", of::<SeriesScores>()),
        ("evaluate-text", of::<evaluate::OfRun<TextScores>>()),
        ("explain", of::<Explanation>()),
        ("generate", of::<generate::Continued>()),
        ("inspect-attention", of::<inspect::AttentionReport>()),
        ("inspect-states", of::<inspect::StatesReport>()),
        ("metrics", of::<MetricsLine>()),
        ("predict", of::<predict::Predicted>()),
        ("predict-numbers", of::<predict::PredictedSeries>()),
        ("translate", of::<translate::Translated>()),
        ("translate-targets", of::<translate::Scored>()),
    ]
}

pub(super) fn run(args: SchemasArgs) -> Result<()> {
    std::fs::create_dir_all(&args.out).map_err(Error::io(&args.out))?;
    let all = all();
    for (name, schema) in &all {
        let text = json_for_people(schema);
        files::replace(&args.out.join(format!("{name}.schema.json")), text.as_bytes())?;
    }
    print(&format!("{}: {} schemas\n", args.out.display(), all.len()))
}
