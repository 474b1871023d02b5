//! `lookback config`.

use super::absent::absent;
use super::output::json_for_people;
use super::print;
use super::unknown::Unknown;
use crate::data::{DataConfig, Pair, Split, Tokenizer, Tokenizers};
use crate::error::Result;
use crate::experiment::series::series_of;
use crate::experiment::{Config, check_data, dataset};
use clap::{Args, Subcommand};
use std::collections::HashSet;
use std::path::PathBuf;

#[derive(Subcommand, Debug)]
pub(super) enum ConfigCommand {
    /// Print the resolved config, with every field.
    Show(ConfigArgs),
    /// Check the keys and values of a config, and with --data its data, and say what is wrong.
    Check(CheckArgs),
    /// Print the JSON schema of configs, with the meaning of every key.
    Schema,
}

#[derive(Args, Debug)]
pub(super) struct ConfigArgs {
    /// The config; without it, the quick start.
    config: Option<PathBuf>,
    /// Override a key of the config.
    #[arg(short, long = "set", value_name = "KEY.PATH=VALUE")]
    set: Vec<String>,
}

#[derive(Args, Debug)]
pub(super) struct CheckArgs {
    #[command(flatten)]
    config: ConfigArgs,
    /// Read the data as `train` would, and count what there is, and what the vocabulary does not hold.
    #[arg(long)]
    data: bool,
}

pub(super) fn run(command: ConfigCommand) -> Result<()> {
    match command {
        ConfigCommand::Show(args) => {
            let config = Config::load(args.config.as_deref(), &args.set)?;
            print(&config.to_toml())
        }
        ConfigCommand::Check(args) => check(&args),
        ConfigCommand::Schema => print(&json_for_people(&schema())),
    }
}

/// The JSON Schema of configs.
pub(super) fn schema() -> serde_json::Value {
    let mut schema = serde_json::to_value(schemars::schema_for!(Config)).expect("a schema is plain data");
    limit_integers(&mut schema);
    schema
}

fn check(args: &CheckArgs) -> Result<()> {
    let config = Config::load(args.config.config.as_deref(), &args.config.set)?;
    let name = args.config.config.as_ref().map_or("the quick start".into(), |path| path.display().to_string());
    let right = format!("{name}: every key and value is right");
    if !args.data {
        return print(&format!("{right}; the data were not read, --data reads them\n"));
    }
    let amounts = amounts(&config).map_err(|error| absent(error, &config.data))?;
    print(&format!("{right}\n{amounts}"))
}

/// How much data there is, all of which has been read.
fn amounts(config: &Config) -> Result<String> {
    let tokenizers = check_data(config)?;
    if config.data.text.is_some() {
        return text_of_splits(&config.data);
    }
    let corpus = dataset::load(&config.data, config.seed)?;
    if config.model.answers_with_numbers()
        && let Ok(test) = dataset::pairs_of(&config.data, Split::Test, config.seed)
    {
        series_of(&config.data, Split::Test, &test, Some(&tokenizers))?;
    }
    let dropped = match corpus.dropped.total() {
        0 => String::new(),
        n => format!(", {n} left out by the filter ({})", corpus.dropped),
    };
    // With several references, a source is one sentence, however many pairs it has.
    let unit = if config.data.several_references { "sources" } else { "pairs" };
    // Training needs no test data; but files that are named have to be there.
    let test = match dataset::sentences_of(&config.data, Split::Test, config.seed) {
        Ok(sentences) => format!("{} {unit}", sentences.len()),
        Err(error) if config.data.has_test() => return Err(error),
        Err(error) => format!("none; {error}"),
    };
    let mut said = format!(
        "training    {} pairs{dropped}\nvalidation  {} {unit}\ntest        {test}\n",
        corpus.train.len(),
        corpus.valid_sentences.len()
    );
    let read = |split| Some((split, dataset::pairs_of(&config.data, split, config.seed).ok()?));
    let others: Vec<(Split, Vec<Pair>)> = [Split::Valid, Split::Test].into_iter().filter_map(read).collect();
    if !config.model.answers_with_numbers() {
        said.extend(others.iter().map(|(split, pairs)| unknown_of(*split, pairs, &tokenizers)));
    }
    let known: HashSet<&str> = corpus.train.iter().map(|pair| pair.source.as_str()).collect();
    said.extend(others.iter().map(|(split, pairs)| known_of(*split, pairs, &known)));
    Ok(said)
}

fn name_of(split: Split) -> &'static str {
    if split == Split::Valid { "validation" } else { "test" }
}

/// How many sources a model will have met in training: scores on them say little of others.
fn known_of(split: Split, pairs: &[Pair], known: &HashSet<&str>) -> String {
    let sources: HashSet<&str> = pairs.iter().map(|pair| pair.source.as_str()).collect();
    match sources.iter().filter(|source| known.contains(*source)).count() {
        0 => String::new(),
        n => format!("{:<11} {n} of {} different sources are training sources, too\n", name_of(split), sources.len()),
    }
}

/// What the vocabulary does not hold of pairs, in a line for each side.
fn unknown_of(split: Split, pairs: &[Pair], tokenizers: &Tokenizers) -> String {
    let name = name_of(split);
    let of_side = |side: &str, tokenizer: &Tokenizer, text: fn(&Pair) -> &str| {
        let mut unknown = Unknown::default();
        for (i, pair) in pairs.iter().enumerate() {
            unknown.note(i + 1, tokenizer, text(pair), &tokenizer.encode(text(pair)));
        }
        unknown.warning_of(side).map_or_else(String::new, |warning| format!("{name:<11} {warning}\n"))
    };
    of_side("source", tokenizers.source(), |pair| &pair.source)
        + &of_side("target", tokenizers.target(), |pair| &pair.target)
}

/// How much plain text there is.
fn text_of_splits(config: &DataConfig) -> Result<String> {
    let mut said = String::new();
    for (split, name) in [(Split::Train, "training"), (Split::Valid, "validation"), (Split::Test, "test")] {
        let amount = match dataset::lines_of(config, split) {
            Ok(lines) => {
                let characters: usize = lines.iter().map(|line| line.chars().count() + 1).sum();
                format!("{} lines, {characters} characters", lines.len())
            }
            // Training needs no test data; but files that are named have to be there.
            Err(error) if split == Split::Test && config.text.as_ref().is_some_and(|text| text.test.is_empty()) => {
                format!("none; {error}")
            }
            Err(error) => return Err(error),
        };
        said += &format!("{name:<11} {amount}\n");
    }
    Ok(said)
}

/// Whole numbers of a config have 63 bits, as those of TOML, whatever the type that they are read into.
fn limit_integers(schema: &mut serde_json::Value) {
    match schema {
        serde_json::Value::Object(fields) => {
            let is_integer = fields.get("type").is_some_and(|kind| match kind {
                serde_json::Value::Array(kinds) => kinds.iter().any(|kind| kind == "integer"),
                kind => kind == "integer",
            });
            if is_integer && !fields.contains_key("maximum") {
                fields.insert("maximum".into(), i64::MAX.into());
            }
            fields.values_mut().for_each(limit_integers);
        }
        serde_json::Value::Array(values) => values.iter_mut().for_each(limit_integers),
        _ => {}
    }
}
