//! A trained model as the smallest folder that inference takes, with a model card.
//!
//! ```text
//! folder/
//!   config.toml   tokenizer.json   model.safetensors   README.md   manifest.json (SHA-256 of each file)
//! ```

use super::Config;
use super::run::{Run, vocabularies};
use crate::backend::Backend;
use crate::data::Tokenizers;
use crate::error::{Error, Result};
use crate::models::PreparedModel;
use crate::models::weights::{self, Weights};
use crate::training::checkpoint::{self, Parameters};
use burn::module::Module;
use std::collections::BTreeMap;
use std::path::Path;

/// How a model is exported.
#[derive(Clone, Debug, Default)]
pub struct ExportOptions {
    /// Whether matrices are written in 8 bits, a quarter of the size.
    pub int8: bool,
    /// The checkpoint to take; without it, the best.
    pub checkpoint: Option<String>,
}

/// Writes the model of `run` into the folder `out`, which must not exist yet or be empty. Returns the bytes written.
///
/// # Errors
/// If the run has no whole checkpoint, or `out` holds something.
pub fn export(run: &Run, out: &Path, options: &ExportOptions, warn: impl FnOnce(String)) -> Result<u64> {
    check_free(out)?;
    let (name, mut parameters) = run.parameters(options.checkpoint.as_deref(), warn)?;
    let config = run.config()?;
    let tokenizers = run.tokenizers()?;
    // The model says which of its matrices can be in 8 bits; that needs the CPU, whatever backend it was trained on.
    let device = Backend::Flex.open().or_else(|_| Backend::Ndarray.open())?.device;
    let model = config.model.blank(vocabularies(&tokenizers), &device)?;
    let model = weights::apply(model, &parameters.weights, &parameters.file)?;
    let n_parameters = model.num_params();
    let scales = if options.int8 { PreparedModel::int8(model)?.scales().cloned() } else { None }.unwrap_or_default();
    parameters.is_int8 = options.int8;
    let besides = [
        ("config.toml", super::format::seal(&config.to_toml()).into_bytes()),
        ("tokenizer.json", read(&run.join("tokenizer.json"))?),
        (
            "README.md",
            model_card(run, &name, parameters.updates, options.int8, n_parameters, &usage(&config))?.into_bytes(),
        ),
    ];
    checkpoint::export(out, &parameters, &scales, &besides)?;
    let sizes = std::fs::read_dir(out).map_err(Error::io(out))?.flatten();
    Ok(sizes.filter_map(|entry| entry.metadata().ok()).map(|metadata| metadata.len()).sum())
}

/// Writes a model that comes from elsewhere into the folder `out`, as [`export`] does; `origin` says whence.
///
/// # Errors
/// If `out` holds something.
pub fn export_parts(
    out: &Path,
    config: &Config,
    tokenizers: &Tokenizers,
    weights: Weights,
    origin: &str,
) -> Result<()> {
    check_free(out)?;
    // A folder that is there has a name also where it is given as `.`.
    let place = out.canonicalize().unwrap_or_else(|_| out.to_path_buf());
    let card = format!("# {}\n\n{origin}.\n", place.file_name().unwrap_or_default().to_string_lossy());
    let besides = [
        ("config.toml", super::format::seal(&config.to_toml()).into_bytes()),
        ("tokenizer.json", tokenizers.to_json().into_bytes()),
        ("README.md", card.into_bytes()),
    ];
    let parameters = Parameters { weights, file: out.join(checkpoint::MODEL), updates: 0, is_int8: false };
    checkpoint::export(out, &parameters, &BTreeMap::new(), &besides)
}

/// Refuses a folder that holds something.
pub(crate) fn check_free(out: &Path) -> Result<()> {
    let is_taken = match std::fs::read_dir(out) {
        Ok(mut entries) => entries.next().is_some(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => false,
        Err(error) => return Err(Error::io(out)(error)),
    };
    if is_taken {
        return Err(Error::file(out, "holds something already; give another --out"));
    }
    Ok(())
}

fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(Error::io(path))
}

/// The commands for a folder of this program.
fn usage(config: &Config) -> String {
    let mut usage = format!("```sh\n{}\n", config.use_of(".").1);
    if config.data.task.is_none() {
        let place = "# the folder in which the paths of config.toml begin";
        usage += &format!("{} --set data.dir=FOLDER    {place}\n", config.evaluation_of("."));
    }
    usage + "lookback train CONFIG.toml --init-from .           # fine-tune\n```\n"
}

/// What a reader of the folder has to know: what the model is, what it learnt from, how good it was, how it is used.
pub(crate) fn model_card(
    run: &Run,
    checkpoint: &str,
    updates: u64,
    is_int8: bool,
    n_parameters: usize,
    usage: &str,
) -> Result<String> {
    let config = run.config()?;
    let mut toml = toml::Table::try_from(&config).expect("every field of a config is a TOML value");
    // How much is generated says nothing of data from files.
    if let Some(data) = toml["data"].as_table_mut().filter(|_| config.data.task.is_none()) {
        ["n_train", "n_valid", "n_test"].iter().for_each(|key| drop(data.remove(*key)));
    }
    let section = |name: &str| {
        let mut table = toml::Table::new();
        table.insert(name.into(), toml[name].clone());
        toml::to_string_pretty(&table).expect("a part of a config is TOML")
    };
    let environment = run.environment().ok();
    let mut card = format!("# {}\n\n", run.path().file_name().unwrap_or_default().to_string_lossy());
    let is_text = config.data.text.is_some();
    let what = match config.model.family().answers() {
        Some(_) => "A model that answers for a sequence or for each of its steps",
        None if is_text => "A language model",
        None => "A model that writes a target for a source",
    };
    // An imported model was trained elsewhere.
    let made = if environment.is_some() { "trained and exported" } else { "exported" };
    card += &format!("{what}, {made} by Lookback.\n\n| | |\n| --- | --- |\n");
    let mut row = |name: &str, value: String| card += &format!("| {name} | {value} |\n");
    row("parameters", n_parameters.to_string());
    row("numbers", if is_int8 { "matrices in 8 bits, else 32-bit floats" } else { "32-bit floats" }.into());
    if updates > 0 {
        row("checkpoint", format!("{checkpoint}, after {updates} updates"));
    }
    if let Some(environment) = &environment {
        row(
            "trained by",
            format!("Lookback {} on {} ({})", environment.version, environment.backend, environment.device),
        );
        row("command", format!("`{}`", environment.command));
    }
    if let Some(valid) = validation(run, checkpoint, updates) {
        let number = |key: &str| valid[key].as_f64();
        if let Some(perplexity) = number("perplexity") {
            row("validation perplexity", format!("{perplexity:.3} per target token"));
        }
        if let (Some(mse), Some(mae)) = (number("mse"), number("mae")) {
            row("validation errors", format!("MSE {mse:.6}, MAE {mae:.6}, in the units of the data"));
        }
        if let Some(bits) = number("bits_per_character") {
            row("validation, bits per character", format!("{bits:.3}"));
        }
        if let Some(score) = number("score") {
            let n = config.training.sample_size;
            let metric = config.training.score;
            let percent = metric.sign();
            let before = if is_int8 { ", before the rounding to 8 bits" } else { "" };
            row(
                "validation score",
                format!("{score:.2}{percent} {}, greedy, at most {n} sentences{before}", metric.title()),
            );
        }
    }
    card += &format!("\n## Use\n\nIn this folder:\n\n{usage}\n## Data\n\n");
    let is_known = is_text || config.data.task.is_some() || config.data.train.is_some();
    // A model that was imported does not say what it learnt from.
    card += &match is_known {
        true => format!("```toml\n{}\n{}```\n", section("data"), section("tokenizer")),
        false => format!("Not known here: the model was trained elsewhere.\n\n```toml\n{}```\n", section("tokenizer")),
    };
    if let Some(environment) = environment.filter(|environment| !environment.data_sha256.is_empty()) {
        card += "\n| data | SHA-256 |\n| --- | --- |\n";
        environment.data_sha256.iter().for_each(|(name, hash)| card += &format!("| {name} | {hash} |\n"));
    }
    card += &format!("\n## Model\n\n```toml\n{}```\n", section("model"));
    let (text, sentences) =
        if config.model.answers_with_numbers() { ("series", "series") } else { ("text", "sentences") };
    card += &format!(
        "\n## Limits\n\nThe model knows {text} like its training data. Scores of other {text}, and of {sentences} longer than those \
         of training, have to be measured: "
    );
    card += if config.model.answers_with_numbers() {
        "`lookback evaluate --run . --set data.test.tsv=FILE`.\n"
    } else if is_text {
        "`lookback evaluate --run . --set 'data.text.test=[\"FILE\"]'`.\n"
    } else {
        "`lookback evaluate --hypotheses FILE --references FILE`.\n"
    };
    Ok(card)
}

/// The validation of a checkpoint made after `update` updates, as it stands in `metrics.jsonl`; of a mean of several, and of parameters that
/// were examined after training, beside it.
fn validation(run: &Run, checkpoint: &str, update: u64) -> Option<serde_json::Value> {
    let folder = run.folder().checkpoint(checkpoint);
    let beside = || serde_json::from_slice(&std::fs::read(folder.join(checkpoint::VALIDATION)).ok()?).ok();
    if folder.is_dir() && checkpoint != checkpoint::name_of(update) {
        return beside();
    }
    let text = std::fs::read_to_string(run.join("metrics.jsonl")).ok()?;
    let lines = text.lines().rev().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    lines.into_iter().find(|line| line["split"] == "valid" && line["update"] == update).or_else(beside)
}
