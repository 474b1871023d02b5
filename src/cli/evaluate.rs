//! `lookback evaluate`.

mod files;
mod masked;
pub(super) mod series;
mod text;

use super::decoding::{CAP, DecodingArgs, check_keys, warn_of_cut};
use super::output::{self, json_line, print_json};
use super::place::PlaceArgs;
use super::unknown::Unknown;
use super::{check_lengths, ensemble, load_all, print, progress};
use crate::compare::describe::{search_words, task_name};
use crate::data::{Pair, Sentence, Split, TokenizerConfig};
use crate::decoding::{DecodingConfig, Request, count_cut, decode};
use crate::error::{Error, Result};
use crate::experiment::{Config, LoadedModel, Run, dataset, differences, validate};
use crate::models::{Autoregressive, Seq2Seq};
use crate::notice;
use crate::ranks::Alone;
use crate::scoring::{Bleu, BleuTokenizer, Chrf, LengthBuckets, LengthUnit, Metric, Scorer, Scores};
use clap::{ArgGroup, Args};
use schemars::JsonSchema;
use serde::Serialize;
use std::path::{Path, PathBuf};

#[derive(Args, Debug)]
#[command(group = ArgGroup::new("scored").required(true))]
#[command(after_help = "Examples:
  lookback evaluate --run runs/first --beam 5
  lookback evaluate --run runs/seed1 --run runs/seed2                       an ensemble
  lookback evaluate --run runs/gpt --run runs/min-gru --chart loss.svg      two language models
  lookback evaluate --run runs/g2p --metric per --metric sequence-error
  lookback evaluate --hypotheses out.en --references test.en --sources test.de --json
  lookback evaluate --hypotheses out.en --references a.en --references b.en")]
pub(super) struct EvaluateArgs {
    /// The run folder; given more than once, the models write together (an ensemble), or, if they are language models, are
    /// measured one after the other.
    #[arg(short, long, group = "scored")]
    run: Vec<PathBuf>,
    /// Which of the run's data.
    #[arg(long, default_value = "test", conflicts_with = "hypotheses")]
    split: Split,
    /// Override a key of the run's config under data or decoding, such as the path of moved data.
    #[arg(short, long = "set", value_name = "KEY.PATH=VALUE", conflicts_with = "hypotheses")]
    set: Vec<String>,
    #[command(flatten)]
    place: PlaceArgs,
    /// The checkpoint to take [default: the best].
    #[arg(short, long, value_name = "NAME", conflicts_with = "hypotheses")]
    checkpoint: Option<String>,
    /// Sentences to score.
    #[arg(long, group = "scored", requires = "references", conflicts_with_all = ["backend", "device"])]
    hypotheses: Option<PathBuf>,
    /// Their references; may be given more than once, for several references of each sentence.
    #[arg(long, requires = "hypotheses", conflicts_with = "run")]
    references: Vec<PathBuf>,
    /// Their sources, for scores by length; the references of lines that share a source are one sentence's where there is one
    /// hypothesis for each different source, as a run with several references writes them.
    #[arg(long, requires = "hypotheses", conflicts_with = "run")]
    sources: Option<PathBuf>,
    /// sacreBLEU's tokenizer for BLEU [default: 13a].
    #[arg(long)]
    tokenize: Option<BleuTokenizer>,
    /// Score BLEU and chrF in lower case. All scores of a model that writes lower case are in lower case.
    #[arg(long)]
    lowercase: bool,
    /// Write the hypotheses here.
    #[arg(short, long, conflicts_with = "hypotheses", value_name = "FILE")]
    output: Option<PathBuf>,
    /// Show only this score; may be given more than once [default: all, the run's own first]. PER is WER for targets whose
    /// tokens are phones.
    #[arg(long = "metric", value_name = "NAME")]
    metrics: Vec<Metric>,
    /// Draw the loss of language models by the number of tokens in the context here: .svg or .png.
    #[arg(long, conflicts_with = "hypotheses", value_name = "FILE")]
    chart: Option<PathBuf>,
    /// One JSON object, always with all scores; PER is `wer` there.
    #[arg(long)]
    json: bool,
    #[command(flatten, next_help_heading = "Decoding")]
    decoding: DecodingArgs,
}

pub(super) fn run(args: EvaluateArgs) -> Result<()> {
    output::check([args.output.as_ref(), args.chart.as_ref()])?;
    if let Some(first) = args.run.first() {
        let model = Run::open(first)?.config()?.model;
        if model.has_masks() {
            return print(&masked::evaluate(&args)?);
        }
        if model.learns_from_text() {
            return print(&text::evaluate(&args)?);
        }
        if model.answers_with_numbers() {
            return print(&series::evaluate(&args, first)?);
        }
    }
    let (found, own) = match args.run.first() {
        Some(first) => of_run(&args, first)?,
        None => (OfPairs { scores: files::evaluate(&args)?, tested: None }, Metric::Bleu),
    };
    if args.json {
        return print_json(&found);
    }
    print(&table(&found.scores, &args.metrics, own))
}

/// The scores of pairs, and of what they are.
#[derive(Serialize, JsonSchema)]
pub(super) struct OfPairs {
    #[serde(flatten)]
    scores: Scores,
    #[serde(flatten)]
    tested: Option<Tested>,
}

/// What was scored, where models wrote it.
#[derive(Serialize, JsonSchema)]
struct Tested {
    /// The names of the files, or of the task.
    test: String,
    /// How the answers were looked for.
    decoding: String,
    /// The seed of each model's training.
    seeds: Vec<u64>,
}

fn scorer(args: &EvaluateArgs, lowercase: bool, unit: LengthUnit) -> Scorer {
    Scorer {
        bleu: Bleu { tokenizer: args.tokenize.unwrap_or_default(), lowercase, ..Bleu::default() },
        chrf: Chrf { lowercase, ..Chrf::default() },
        buckets: LengthBuckets::default().counted_in(unit),
    }
}

/// The scores of a run, and the score that its config calls its own.
fn of_run(args: &EvaluateArgs, first: &Path) -> Result<(OfPairs, Metric)> {
    if args.chart.is_some() {
        let message = "--chart has no effect here: it draws the loss of language models of plain text";
        return Err(Error::message(message));
    }
    if args.decoding.has_n_best() {
        let message = "--n-best has no effect here: the best hypothesis is scored; `translate` writes lists";
        return Err(Error::message(message));
    }
    check_overrides(&args.set)?;
    let split = args.split;
    let config = Run::open(first)?.config_with(&args.set)?;
    if let Some(path) = args.output.as_ref().filter(|output| config.data.names(output)) {
        return Err(Error::file(path, "is data of the run and would be written over; give another --output"));
    }
    let pairs = dataset::pairs_of(&config.data, split, config.seed).map_err(|error| moved(error, &files_of(split)))?;
    let sentences =
        dataset::sentences_from(&config.data, split, &pairs).map_err(|error| moved(error, &files_of(split)))?;
    let mut loaded = load_all(&args.run, &args.place.or(config.backend), args.checkpoint.as_deref())?;
    let decoding = args.decoding.apply(&config.decoding)?;
    let prepared = args.decoding.prepare(&mut loaded)?;
    let tested = Tested {
        test: test_name(&Run::open(first)?.config()?, &config, split),
        decoding: search_words(&decoding),
        seeds: loaded.iter().map(|loaded| loaded.config.seed).collect(),
    };
    let (loaded, model) = ensemble(loaded);
    let examples = dataset::encode(&pairs, &loaded.tokenizers);
    let blank: Vec<bool> = pairs.iter().map(Pair::is_blank).collect();
    check_lengths(model.limits().target, examples.iter().map(|e| &e.target), |i, message| {
        pair_fault(i, "target", message)
    })?;
    // Here, where pairs have the numbers that they have in their files.
    check_lengths(decoding.source_limit(model.limits().source), examples.iter().map(|e| &e.source), |i, message| {
        pair_fault(i, "source", message)
    })?;
    let sources: Vec<String> = sentences.iter().map(|sentence| sentence.source.clone()).collect();
    let seed = args.decoding.sampling.seed.unwrap_or(loaded.config.seed);
    let found = translate_sources(&prepared, &loaded, &sources, &decoding, seed, "translating");
    if let Some(path) = &args.output {
        crate::files::replace(path, (found.texts.join("\n") + "\n").as_bytes())?;
    }
    // An empty answer to an empty source is right and says nothing: what is blank is translated, so that files stay side by side, and
    // not scored.
    let n_sentences = sentences.len();
    let real = |(text, sentence): (String, Sentence)| Some((text, sentence.without_blanks()?));
    let (texts, sentences): (Vec<String>, Vec<Sentence>) =
        found.texts.into_iter().zip(sentences).filter_map(real).unzip();
    let n_blank = n_sentences - sentences.len();
    if n_blank > 0 {
        notice::warn(format_args!(
            "{n_blank} of {n_sentences} sentences have no source or no reference, and are not scored"
        ));
    }
    let sources: Vec<String> = sentences.iter().map(|sentence| sentence.source.clone()).collect();
    let references: Vec<Vec<String>> =
        sentences.iter().map(|sentence| loaded.tokenizers.references(sentence)).collect();
    let settings = loaded.tokenizers.config();
    let lowercase = args.lowercase || settings.target().is_lowercase();
    let unit = match settings.source() {
        TokenizerConfig::Char(_) => LengthUnit::Letters,
        _ => LengthUnit::Words,
    };
    let mut scores = scorer(args, lowercase, unit).score_any(&texts, &references, Some(&sources))?;
    scores.cut = Some(found.cut);
    if let Some(warning) = found.unknown.warning() {
        notice::warn(warning);
    }
    warn_of_cut(found.cut, n_sentences, "answers", CAP, &decoding);
    let examples: Vec<_> = examples.into_iter().zip(blank).filter(|(_, blank)| !blank).map(|(own, _)| own).collect();
    let sums = validate(&model, &examples, decoding.batch_tokens, &Alone);
    scores.perplexity = Some((sums.cross_entropy / sums.n_tokens.max(1) as f64).exp());
    Ok((OfPairs { scores, tested: Some(tested) }, config.training.score))
}

/// What was scored: the test set, and what of it is not as the run's config says.
fn test_name(own: &Config, config: &Config, split: Split) -> String {
    let task = task_name(&config.data, split);
    let is_seed = |key: &str| key == "seed" && config.data.task.is_some();
    // Other files have other names.
    let is_named =
        |key: &str| ["dir", "prepared", "train", "valid", "test"].contains(&key.split('.').next().unwrap_or(key));
    let is_other = |key: &str| key.strip_prefix("data.").is_some_and(|key| !is_named(key));
    let changes = differences(own, config).into_iter().filter(|(key, _, _)| is_seed(key) || is_other(key));
    let split = (split != Split::Test).then(|| split.to_string());
    let others: Vec<String> = split.into_iter().chain(changes.map(|(key, _, new)| format!("{key}={new}"))).collect();
    if others.is_empty() { task } else { format!("{task} ({})", others.join(", ")) }
}

/// The scores of a language model.
#[derive(Serialize, JsonSchema)]
pub(super) struct OfRun<S> {
    #[serde(flatten)]
    scores: S,
    /// The run, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<String>,
}

/// The scores of each run as a table or as one JSON object a line; where there are several, with the name of the run.
fn shown<S: Serialize>(measured: &[(String, S)], json: bool, table: impl Fn(&S) -> String) -> String {
    let is_one = measured.len() == 1;
    let of_one = |(run, scores): &(String, S)| match json {
        true => {
            let run = (!is_one).then(|| run.clone());
            json_line(&OfRun { scores, run }) + "\n"
        }
        false if is_one => table(scores),
        false => format!("{run}\n{}\n", table(scores)),
    };
    measured.iter().map(of_one).collect()
}

/// Refuses overrides without effect: keys of the model cannot change.
fn check_overrides(set: &[String]) -> Result<()> {
    let message =
        "has no effect here: the model is trained; only data, decoding, backend, seed and training.score can be set";
    check_keys(set, &["data.", "decoding.", "backend", "seed", "training.score"], message)
}

/// How the files of a split of pairs are named.
fn files_of(split: Split) -> String {
    format!("data.{split}.tsv=FILE (data.{split}.source and data.{split}.target for two files)")
}

/// A run that was moved, or whose data were, names files that are not there; `keys` is how else they are named.
fn moved(error: Error, keys: &str) -> Error {
    match error {
        Error::Io { path, source } if source.kind() == std::io::ErrorKind::NotFound => Error::file(
            path,
            format!("is not there; if the data have moved, say where: --set data.dir=FOLDER, or --set {keys}"),
        ),
        Error::Config { key, message } if key == "data.test" => {
            Error::config(key, format!("{message}; or take the validation data, --split valid"))
        }
        other => other,
    }
}

fn pair_fault(i: usize, side: &str, message: String) -> Error {
    Error::message(format!("the {side} of pair {} {message}", i + 1))
}

/// What a model wrote for some sources.
pub(super) struct Written {
    /// The best translation of each.
    pub(super) texts: Vec<String>,
    /// How many of them were cut at the length cap.
    pub(super) cut: usize,
    /// What of the sources the vocabulary does not hold.
    pub(super) unknown: Unknown,
}

/// The best translation of every source by `model`, in the words of `loaded`; none may be longer than the model reads.
pub(super) fn translate_sources<M: Seq2Seq, S: AsRef<str> + Sync>(
    model: &M,
    loaded: &LoadedModel,
    sources: &[S],
    config: &DecodingConfig,
    seed: u64,
    what: &str,
) -> Written {
    let tokenizer = loaded.tokenizers.source();
    let requests: Vec<Request> = tokenizer.encode_batch(sources).into_iter().map(Request::new).collect();
    let mut unknown = Unknown::default();
    for (i, (source, request)) in sources.iter().zip(&requests).enumerate() {
        unknown.note(i + 1, tokenizer, source.as_ref(), &request.source);
    }
    let bar = progress::bar(sources.len() as u64, what);
    let found = decode(model, &requests, config, seed, |n| bar.set_position(n as u64));
    bar.finish_and_clear();
    let texts = found.iter().map(|hypotheses| loaded.tokenizers.target().decode(&hypotheses[0].tokens)).collect();
    Written { texts, cut: count_cut(&found), unknown }
}

/// The scores as a table: those in `asked`, or all, `own` first.
fn table(scores: &Scores, asked: &[Metric], own: Metric) -> String {
    // PER is WER under another name: shown where it was chosen.
    let others = Metric::ALL
        .into_iter()
        .filter(|metric| *metric != own && *metric != if own == Metric::Per { Metric::Wer } else { Metric::Per })
        .filter(|metric| *metric != Metric::SpanF1 || scores.metrics.span_f1.is_some());
    let shown: Vec<Metric> =
        if asked.is_empty() { std::iter::once(own).chain(others).collect() } else { without_repetitions(asked) };
    let mut text = format!("{:<30}{:>8}\n", "sentences", scores.sentences);
    for metric in &shown {
        if *metric == Metric::SpanF1 && scores.metrics.span_f1.is_none() {
            text += &format!("{:<30}{:>8}   no spans: no tag has the form B-X or I-X\n", metric.title(), "-");
            continue;
        }
        let value = metric.of(&scores.metrics);
        let after = match (metric, metric.unit()) {
            (Metric::Bleu, _) => format!("   {}", scores.signature),
            (_, Some(_)) => " %".into(),
            _ => String::new(),
        };
        text += &format!("{:<30}{value:>8.2}{after}\n", metric.title());
    }
    if let Some(perplexity) = scores.perplexity.filter(|_| asked.is_empty()) {
        text += &format!("{:<30}{perplexity:>8.3}\n", "perplexity (tokens)");
    }
    if let Some(cut) = scores.cut {
        text += &format!("{:<30}{cut:>8}\n", "answers cut at the length cap");
    }
    if !scores.by_length.is_empty() {
        text += &by_length(scores, &shown);
    }
    text
}

/// Each score once, where it was first asked for.
fn without_repetitions(asked: &[Metric]) -> Vec<Metric> {
    let all = asked.iter().enumerate();
    all.filter(|(place, metric)| !asked[..*place].contains(metric)).map(|(_, metric)| *metric).collect()
}

/// Most scores in the table by length.
const N_COLUMNS: usize = 3;

fn by_length(scores: &Scores, shown: &[Metric]) -> String {
    let first = format!("source length ({})", scores.length_unit.name());
    let columns = &shown[..shown.len().min(N_COLUMNS)];
    let titles: Vec<String> = columns.iter().map(|metric| metric.title()).collect();
    let mut text = format!("\n{first:>23}  sentences");
    titles.iter().for_each(|title| text += &format!("  {title:>9}"));
    text.push('\n');
    for bucket in &scores.by_length {
        let range = match bucket.to {
            Some(to) => format!("{}-{to}", bucket.from),
            None => format!("{}-", bucket.from),
        };
        text += &format!("{range:>23}  {:>9}", bucket.sentences);
        for (metric, title) in columns.iter().zip(&titles) {
            let width = title.chars().count().max(9);
            text += &match (metric, bucket.metrics.span_f1) {
                (Metric::SpanF1, None) => format!("  {:>width$}", "-"),
                _ => format!("  {:>width$.2}", metric.of(&bucket.metrics)),
            };
        }
        text.push('\n');
    }
    text
}
