//! The command line: every clap struct here, one file for each command.

mod compare;
mod completions;
mod config;
mod data;
mod devices;
mod evaluate;
mod explain;
mod inspect;
mod progress;
mod train;
mod translate;

use crate::backend::Backend;
use crate::decoding::DecodingConfig;
use crate::error::{Error, Result};
use crate::models::LengthLimit;
use crate::report::attention::Part;
use crate::report::attention::select::Choice;
use crate::training::{Dashboard, LoadedModel, Run};
use clap::{Args, Parser, Subcommand};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Train, measure, explain and run attention models, from the RNN encoder-decoder to the Transformer.
#[derive(Parser, Debug)]
#[command(name = "lookback", version, propagate_version = true, max_term_width = 100)]
#[command(after_help = "Examples:
  lookback train                                       the quick start: learn to reverse, in a few minutes
  lookback train config/numbers-transformer.toml       English number words into French
  echo 'one hundred' | lookback translate --run runs/numbers-transformer
  lookback evaluate --run runs/numbers-transformer --json
  lookback explain --run runs/numbers-transformer 'one hundred'
  lookback inspect attention --run runs/numbers-transformer --out maps.html")]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// List, generate and fetch data.
    #[command(subcommand)]
    Data(DataCommand),
    /// Train a model, or go on training.
    Train(TrainArgs),
    /// Translate text, one sentence a line.
    Translate(TranslateArgs),
    /// Score a model on held-out data, or hypotheses against references.
    Evaluate(EvaluateArgs),
    /// Walk through the decoding of a sentence, with the model's own numbers.
    Explain(ExplainArgs),
    /// Train, measure and compare models on long sequences, in one report.
    Compare(CompareArgs),
    /// Measure one cell of a comparison's table of costs.
    #[command(hide = true)]
    CompareCell(CompareCellArgs),
    /// Draw what a model attends to and what its states mean.
    #[command(subcommand)]
    Inspect(InspectCommand),
    /// List the backends and devices, and check that they agree.
    Devices(DevicesArgs),
    /// Show, check and document configs.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print shell completions.
    Completions(CompletionsArgs),
}

#[derive(Subcommand, Debug)]
enum DataCommand {
    /// List the generated tasks and the public corpora.
    List,
    /// Generate a task's pairs into train.tsv, valid.tsv and test.tsv.
    #[command(after_help = "Example:
  lookback data generate numbers --out datasets/numbers --pairs 20000 --min-len 1 --max-len 4 --seed 7")]
    Generate(GenerateArgs),
    /// Fetch a public corpus; continues where it was cut off, and verifies checksums.
    #[command(after_help = "Example:\n  lookback data fetch multi30k --out datasets/multi30k")]
    Fetch(FetchArgs),
}

#[derive(Args, Debug)]
struct GenerateArgs {
    /// The task; `data list` names them.
    task: String,
    /// Folder to write into.
    #[arg(long)]
    out: PathBuf,
    /// Training pairs; a tenth as many, at most 1000, for each of validation and test.
    #[arg(long, default_value_t = 10_000)]
    pairs: usize,
    /// Shortest source, in the task's own unit.
    #[arg(long)]
    min_len: Option<usize>,
    /// Longest source, in the task's own unit.
    #[arg(long)]
    max_len: Option<usize>,
    /// Seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Replace files that are there.
    #[arg(long)]
    force: bool,
}

#[derive(Args, Debug)]
struct FetchArgs {
    /// The corpus; `data list` names them.
    name: String,
    /// Folder to write into.
    #[arg(long)]
    out: PathBuf,
    /// Fetch from here instead of the corpus's home.
    #[arg(long)]
    base_url: Option<String>,
}

#[derive(Args, Debug)]
#[command(after_help = "Without CONFIG the quick start runs: a small Transformer learns to reverse sequences.
On a run folder that exists training goes on; the same command continues an interrupted run.

Examples:
  lookback train config/reverse-bahdanau.toml --set training.max_updates=2000
  lookback train config/multi30k-de-en-transformer.toml --backend flex --run runs/first
  lookback train my.toml --init-from runs/first")]
struct TrainArgs {
    /// The experiment; without it, the quick start.
    config: Option<PathBuf>,
    /// Overrides a key of the config: --set training.learning_rate=0.001
    #[arg(long = "set", value_name = "KEY.PATH=VALUE")]
    set: Vec<String>,
    /// Where the tensors live; `devices` lists what there is.
    #[arg(long)]
    backend: Option<Backend>,
    /// The run folder [default: runs/NAME, NAME being the config's].
    #[arg(long)]
    run: Option<PathBuf>,
    /// How training is shown: auto, tui, plain or none.
    #[arg(long, default_value = "auto")]
    dashboard: Dashboard,
    /// Start from the parameters of a finished run with the same tokenizer.
    #[arg(long, value_name = "RUN")]
    init_from: Option<PathBuf>,
}

#[derive(Args, Debug)]
#[command(after_help = "One sentence a line, UTF-8, plain or .gz; a blank line in is a blank line out.

Examples:
  lookback translate --run runs/first --input test.de --output test.en --beam 5
  echo 'ein Hund' | lookback translate --run runs/first --beam 5 --n-best 3
  lookback translate --run runs/first --input a.de --targets a.en      log-probabilities of given targets")]
struct TranslateArgs {
    /// The run folder.
    #[arg(long)]
    run: PathBuf,
    /// Sentences to translate; - is standard input.
    #[arg(long, default_value = "-")]
    input: PathBuf,
    /// Where translations go; - is standard output.
    #[arg(long, default_value = "-")]
    output: PathBuf,
    /// Where the tensors live.
    #[arg(long)]
    backend: Option<Backend>,
    /// One JSON object for each line, with scores and tokens.
    #[arg(long)]
    json: bool,
    /// Target prefixes, a line for each sentence; a blank line is none.
    #[arg(long, value_name = "FILE")]
    prefixes: Option<PathBuf>,
    /// Do not translate: print the log-probability (nats) and the perplexity of these targets.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["prefixes", "n_best", "sample"])]
    targets: Option<PathBuf>,
    #[command(flatten)]
    decoding: DecodingArgs,
}

/// Decoding options; what is not given comes from the run's config.
#[derive(Args, Debug)]
struct DecodingArgs {
    /// Beam size; 1 is greedy search.
    #[arg(long)]
    beam: Option<usize>,
    /// Hypotheses to print for each sentence, as "LINE ||| TEXT ||| SCORE".
    #[arg(long)]
    n_best: Option<usize>,
    /// Exponent of the length penalty.
    #[arg(long)]
    length_penalty: Option<f64>,
    /// Longest target, in tokens for each source token; `decoding.max_len_extra` is added.
    #[arg(long)]
    max_len_factor: Option<f64>,
    /// Source tokens in a batch.
    #[arg(long)]
    batch_tokens: Option<usize>,
    /// Draw at random instead of searching.
    #[arg(long)]
    sample: bool,
    /// Temperature of sampling.
    #[arg(long, requires = "sample")]
    temperature: Option<f64>,
    /// Sample from this many of the likeliest words.
    #[arg(long, requires = "sample")]
    top_k: Option<usize>,
    /// Sample from the likeliest words that together have this probability.
    #[arg(long, requires = "sample")]
    top_p: Option<f64>,
    /// Seed of sampling [default: the run's].
    #[arg(long, requires = "sample")]
    seed: Option<u64>,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  lookback evaluate --run runs/first --beam 5
  lookback evaluate --hypotheses out.en --references test.en --sources test.de --json")]
struct EvaluateArgs {
    /// The run folder.
    #[arg(long, required_unless_present = "hypotheses", conflicts_with = "hypotheses")]
    run: Option<PathBuf>,
    /// Which of the run's data: train, valid or test.
    #[arg(long, default_value = "test")]
    split: String,
    /// Override a key of the run's config, such as the path of moved data.
    #[arg(long = "set", value_name = "KEY.PATH=VALUE")]
    set: Vec<String>,
    /// Where the tensors live.
    #[arg(long)]
    backend: Option<Backend>,
    /// Sentences to score.
    #[arg(long, requires = "references")]
    hypotheses: Option<PathBuf>,
    /// What they should be.
    #[arg(long, requires = "hypotheses")]
    references: Option<PathBuf>,
    /// Their sources, for scores by length.
    #[arg(long, requires = "hypotheses")]
    sources: Option<PathBuf>,
    /// sacreBLEU's tokenizer for BLEU: 13a, intl, char or none.
    #[arg(long, default_value = "13a")]
    tokenize: crate::scoring::BleuTokenizer,
    /// Score BLEU and chrF in lower case; a model that writes lower case is always scored so.
    #[arg(long)]
    lowercase: bool,
    /// Write the hypotheses here.
    #[arg(long, requires = "run", value_name = "FILE")]
    output: Option<PathBuf>,
    /// One JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    decoding: DecodingArgs,
}

#[derive(Args, Debug)]
#[command(
    after_help = "Without CONFIG and --run the built-in comparison runs: one fixed context, attention and a Transformer learn to copy
letters, in about five minutes on two cores. What is finished is kept: the same command goes on after an interruption.

Examples:
  lookback compare
  lookback compare config/reverse-rnn.toml config/reverse-bahdanau.toml --seeds 3 --out runs/reverse
  lookback compare --run runs/first --run runs/second
  lookback compare config/reverse-rnn.toml --sweep model.d_hidden=64,128,256 --out runs/widths
  lookback compare a.toml b.toml --tune 6 --match-parameters --budget updates=2000"
)]
struct CompareArgs {
    /// Experiments to train and compare.
    configs: Vec<PathBuf>,
    /// Override a key of every config: --set training.max_updates=500
    #[arg(long = "set", value_name = "KEY.PATH=VALUE")]
    set: Vec<String>,
    /// Make a contestant of every config for each of these values: --sweep model.d_hidden=128,256,512; several make a grid.
    #[arg(long = "sweep", value_name = "KEY.PATH=VALUE,VALUE")]
    sweeps: Vec<crate::compare::Sweep>,
    /// A finished run to compare; may be repeated. Runs that differ in nothing but the seed count as one model.
    #[arg(long = "run", value_name = "RUN")]
    runs: Vec<PathBuf>,
    /// The folder of the comparison [default: runs/compare].
    #[arg(long)]
    out: Option<PathBuf>,
    /// Where the tensors live.
    #[arg(long)]
    backend: Option<Backend>,
    /// Train every config with so many seeds and report the spread.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=100))]
    seeds: u64,
    /// What every model may spend: updates=N or minutes=M [default: as the configs say].
    #[arg(long)]
    budget: Option<crate::compare::Budget>,
    /// First try so many learning rates and dropouts, the same for every model, and take the best.
    #[arg(long, default_value_t = 0)]
    tune: usize,
    /// Change widths until every model has as many parameters as the first, within 5 %.
    #[arg(long)]
    match_parameters: bool,
    /// Lengths at which generated tasks are tested besides, in the task's unit [default: 1, 1.5, 2 and 4 times the longest of
    /// training].
    #[arg(long, value_delimiter = ',', value_name = "N,N,...")]
    lengths: Vec<usize>,
    /// Sentences of each of these lengths.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    per_length: u64,
    /// The longest sentence whose time and memory are measured, from 16 on in powers of two; 0 for none [default: 4096, 512
    /// in the built-in comparison].
    #[arg(long, value_name = "N")]
    max_cost_length: Option<usize>,
    /// Seconds after which the measurement of one length is given up.
    #[arg(long, default_value_t = 20.0, value_name = "SECONDS")]
    cell_seconds: f64,
    /// Beam size of all models [default: as the first config says].
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1000))]
    beam: Option<u64>,
}

#[derive(Args, Debug)]
struct CompareCellArgs {
    /// The config of the model.
    #[arg(long)]
    config: PathBuf,
    /// What to measure.
    #[arg(long, value_parser = ["update", "decode"])]
    kind: String,
    /// Tokens on each side.
    #[arg(long)]
    length: usize,
    /// Entries of the source vocabulary.
    #[arg(long)]
    source_vocabulary: usize,
    /// Entries of the target vocabulary.
    #[arg(long)]
    target_vocabulary: usize,
    /// Whether they are one.
    #[arg(long)]
    shared: bool,
}

#[derive(Subcommand, Debug)]
enum InspectCommand {
    /// Attention maps: which source words each target word was made of, for every layer and head.
    Attention(InspectAttentionArgs),
    /// Sentence vectors, token states and word vectors: which sentences and words the model holds to be alike.
    States(InspectStatesArgs),
}

#[derive(Args, Debug)]
#[command(
    after_help = "The numbers of every head are printed; --out adds the maps. A page (.html) has every sentence, layer and head;
a picture (.svg, .png) has one sentence: one map with its labels, or all heads in a grid.

Examples:
  lookback inspect attention --run runs/first --input test.de --out maps.html
  echo 'ein Hund' | lookback inspect attention --run runs/first --input - --layer average --head average --out dog.png
  lookback inspect attention --run runs/first --layer 2 --head 1 --out head.csv
  lookback inspect attention --run runs/first --input a.de --target a.en --alignments a.gold --json
  lookback inspect attention --run runs/first --input a.de --faithfulness"
)]
struct InspectAttentionArgs {
    /// The run folder.
    #[arg(long)]
    run: PathBuf,
    /// Sentences to look at, one a line; - is standard input [default: the first of the run's test data].
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// Their targets, a line for each; without, the model's own translations.
    #[arg(long, value_name = "FILE", requires = "input")]
    target: Option<PathBuf>,
    /// Where the maps go: a page (.html), a picture (.svg, .png) or numbers (.csv, .safetensors).
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Who looks at whom: cross, encoder or decoder [default: cross in pictures, all elsewhere].
    #[arg(long)]
    part: Option<Part>,
    /// A layer, counted from 1, "all" or "average".
    #[arg(long, default_value = "all")]
    layer: Choice,
    /// A head, counted from 1, "all" or "average".
    #[arg(long, default_value = "all")]
    head: Choice,
    /// Only this sentence, counted from 1.
    #[arg(long, value_name = "N")]
    sentence: Option<usize>,
    /// Sentences of the run's own test data to look at when there is no --input.
    #[arg(long, value_name = "N", default_value_t = 20, conflicts_with = "input")]
    sentences: usize,
    /// Right word alignments in Pharaoh format (0-0 1-2, words counted from 0, 1?2 for a possible one), for the alignment
    /// error rate of given targets.
    #[arg(long, value_name = "FILE", requires = "target")]
    alignments: Option<PathBuf>,
    /// Erase source words and see whether those with the most weight matter most, beside gradient x input.
    #[arg(long)]
    faithfulness: bool,
    /// Where the tensors live.
    #[arg(long)]
    backend: Option<Backend>,
    /// Beam size of the model's own translations.
    #[arg(long)]
    beam: Option<usize>,
    /// One JSON object instead of tables.
    #[arg(long)]
    json: bool,
}

#[derive(Args, Debug)]
#[command(
    after_help = "Without --step every step is shown as long as that stays readable. Steps, layers and heads count from 1.

Examples:
  lookback explain --run runs/first 'ein Hund läuft'
  lookback explain --run runs/first 'ein Hund läuft' --step 2 --layer 3 --head 1
  lookback explain --run runs/first 'ein Hund läuft' --target 'a cat runs'      what the model would rather have said
  lookback explain --run runs/first 'ein Hund läuft' --html dog.html            a page to step through"
)]
struct ExplainArgs {
    /// The run folder.
    #[arg(long)]
    run: PathBuf,
    /// The sentence.
    source: String,
    /// Explain this translation instead of the model's own.
    #[arg(long, value_name = "TEXT", conflicts_with = "beam")]
    target: Option<String>,
    /// Show this step with all its numbers.
    #[arg(long)]
    step: Option<usize>,
    /// Show the heads of this layer.
    #[arg(long)]
    layer: Option<usize>,
    /// Show this head.
    #[arg(long)]
    head: Option<usize>,
    /// Beam size of the translation; 1 is greedy search [default: the run's].
    #[arg(long)]
    beam: Option<usize>,
    /// Where the tensors live.
    #[arg(long)]
    backend: Option<Backend>,
    /// Write a self-contained page to step through with the keyboard.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// One JSON object with every number; --step, --layer and --head choose among them.
    #[arg(long)]
    json: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "A line of the input is a sentence, or label TAB sentence; labels colour the points.

Examples:
  lookback inspect states --run runs/first --input datasets/meaning/de.tsv --out states.html
  lookback inspect states --run runs/first --input datasets/meaning/de.tsv --tokens --out tokens.svg
  lookback inspect states --run runs/first --word Hund --word Katze")]
struct InspectStatesArgs {
    /// The run folder.
    #[arg(long)]
    run: PathBuf,
    /// Sentences, or label TAB sentence, one a line; - is standard input.
    #[arg(long, value_name = "FILE", required_unless_present = "words")]
    input: Option<PathBuf>,
    /// Where the picture goes: a page (.html), a picture (.svg, .png) or numbers (.csv).
    #[arg(long, value_name = "FILE", requires = "input")]
    out: Option<PathBuf>,
    /// Draw tokens instead of sentences; a page has both.
    #[arg(long)]
    tokens: bool,
    /// List the words most alike to this one by their vectors; may be repeated, and then they are compared.
    #[arg(long = "word", value_name = "WORD")]
    words: Vec<String>,
    /// Where the tensors live.
    #[arg(long)]
    backend: Option<Backend>,
    /// One JSON object instead of text.
    #[arg(long)]
    json: bool,
}

#[derive(Args, Debug)]
struct DevicesArgs {
    /// Run one forward and backward pass of every model on every backend and print the largest difference from flex.
    #[arg(long)]
    check: bool,
}

#[derive(Subcommand, Debug)]
enum ConfigCommand {
    /// Print the resolved config, with every field.
    Show(ConfigArgs),
    /// Check a config and say what is wrong.
    Check(ConfigArgs),
    /// Print the JSON schema of configs, with the meaning of every key.
    Schema,
}

#[derive(Args, Debug)]
struct ConfigArgs {
    /// The config; without it, the quick start.
    config: Option<PathBuf>,
    /// Override a key of the config.
    #[arg(long = "set", value_name = "KEY.PATH=VALUE")]
    set: Vec<String>,
}

#[derive(Args, Debug)]
struct CompletionsArgs {
    /// The shell.
    shell: clap_complete::Shell,
}

impl Cli {
    /// Runs the command.
    pub fn run(self) -> Result<()> {
        match self.command {
            Command::Data(DataCommand::List) => data::list(),
            Command::Data(DataCommand::Generate(args)) => data::generate(args),
            Command::Data(DataCommand::Fetch(args)) => data::fetch(args),
            Command::Train(args) => train::run(args),
            Command::Translate(args) => translate::run(args),
            Command::Evaluate(args) => evaluate::run(args),
            Command::Explain(args) => explain::run(args),
            Command::Compare(args) => compare::run(args),
            Command::CompareCell(args) => compare::cell(args),
            Command::Inspect(InspectCommand::Attention(args)) => inspect::attention(args),
            Command::Inspect(InspectCommand::States(args)) => inspect::states(args),
            Command::Devices(args) => devices::run(args),
            Command::Config(command) => config::run(command),
            Command::Completions(args) => completions::run(args),
        }
    }
}

/// The model of a run folder, on the backend that was asked for or that it was trained on.
fn load(run: &Path, backend: Option<Backend>) -> Result<LoadedModel> {
    let run = Run::open(run)?;
    let backend = backend.map_or_else(|| run.config().map(|config| config.backend), Ok)?;
    run.load_model(&backend.open()?, |warning| eprintln!("warning: {warning}"))
}

/// Writes results to standard output. `print!` would panic where the reader has gone.
fn print(text: &str) -> Result<()> {
    let mut output = std::io::stdout().lock();
    output.write_all(text.as_bytes()).and_then(|()| output.flush()).map_err(Error::io("standard output"))
}

/// Refuses sentences longer than the model can take; `fault` is told which one and what is wrong with it.
fn check_lengths<'a>(
    limit: Option<LengthLimit>,
    sentences: impl IntoIterator<Item = &'a Vec<u32>>,
    fault: impl FnOnce(usize, String) -> Error,
) -> Result<()> {
    let Some(limit) = limit else { return Ok(()) };
    // One more for the end symbol.
    let mut lengths = sentences.into_iter().map(|sentence| sentence.len() + 1).enumerate();
    match lengths.find(|(_, len)| *len > limit.len) {
        Some((i, len)) => {
            let message = format!(
                "has {len} tokens with the end symbol, but the model was trained with {} = {}; split the line, or train a \
                 model without that limit",
                limit.key, limit.len
            );
            Err(fault(i, message))
        }
        None => Ok(()),
    }
}

/// How a model finds the translation that is looked at: it searches, even where a run samples, so that it is the same each
/// time.
fn search(config: &DecodingConfig, beam: Option<usize>) -> Result<DecodingConfig> {
    let beam_size = beam.unwrap_or(config.beam_size);
    let config = DecodingConfig { beam_size, n_best: 1, sampling: None, ..config.clone() };
    config.validate()?;
    Ok(config)
}

impl DecodingArgs {
    /// The run's decoding settings with what was given here, checked.
    fn apply(&self, config: &DecodingConfig) -> Result<DecodingConfig> {
        let mut config = config.clone();
        config.beam_size = self.beam.unwrap_or(config.beam_size);
        // A beam smaller than the configured n-best list gives a shorter list.
        config.n_best = self.n_best.unwrap_or(config.n_best.min(config.beam_size));
        if self.beam.is_none() && !self.sample {
            config.beam_size = config.beam_size.max(config.n_best);
        }
        config.length_penalty = self.length_penalty.unwrap_or(config.length_penalty);
        config.max_len_factor = self.max_len_factor.unwrap_or(config.max_len_factor);
        config.batch_tokens = self.batch_tokens.unwrap_or(config.batch_tokens);
        if self.sample {
            let mut sampling = config.sampling.take().unwrap_or_default();
            sampling.temperature = self.temperature.unwrap_or(sampling.temperature);
            sampling.top_k = self.top_k.unwrap_or(sampling.top_k);
            sampling.top_p = self.top_p.unwrap_or(sampling.top_p);
            config.sampling = Some(sampling);
            config.beam_size = 1;
        } else if self.beam.is_some() {
            config.sampling = None;
        }
        config.validate()?;
        Ok(config)
    }
}
