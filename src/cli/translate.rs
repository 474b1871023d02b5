//! `lookback translate`.

use super::alignments::Alignments;
use super::decoding::{DecodingArgs, SetArgs, warn_of_cut};
use super::lines::LinesArgs;
use super::output::json_line;
use super::place::PlaceArgs;
use super::unknown::{self, Unknown};
use super::{check_lengths, ensemble, load_all, output, progress};
use crate::data::batch::Example;
use crate::data::read_lines;
use crate::decoding::{DecodingConfig, Hypothesis, Request, count_cut, decode, score_targets};
use crate::error::{Error, Result};
use crate::experiment::LoadedModel;
use crate::files;
use crate::models::{Autoregressive, Ensemble, Model, Seq2Seq};
use crate::notice;
use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;
use std::io::Write;
use std::path::{Path, PathBuf};

#[derive(Args, Debug)]
#[command(after_help = "One sentence a line, UTF-8, plain, .gz or .zst; a blank line in is a blank line out.
Lines from standard input are translated at once, so another program can send line by line.

Examples:
  lookback translate --run runs/first --input test.de --output test.en --beam 5
  lookback translate --run runs/first 'ein Hund' --beam 5 --n-best 3
  lookback translate --run runs/first --run runs/second --beam 5     two models together
  lookback translate --run runs/first --input a.de --output a.en --alignments a.pharaoh
  lookback translate --run runs/first --input a.de --targets a.en    log-probabilities")]
pub(super) struct TranslateArgs {
    /// The run folder; given more than once, the models write together (an ensemble).
    #[arg(short, long, required = true)]
    run: Vec<PathBuf>,
    #[command(flatten)]
    lines: LinesArgs,
    /// The file of the translations; - is standard output.
    #[arg(short, long, default_value = "-")]
    output: PathBuf,
    #[command(flatten)]
    place: PlaceArgs,
    /// The checkpoint to take [default: the best].
    #[arg(short, long, value_name = "NAME")]
    checkpoint: Option<String>,
    /// One JSON object for each line, with scores and tokens.
    #[arg(long)]
    json: bool,
    /// Target prefixes, a line for each sentence; a blank line is none.
    #[arg(long, value_name = "FILE")]
    prefixes: Option<PathBuf>,
    /// Also write which source word each target word comes from, by the mean of all cross-attention: a line for each translation in
    /// Pharaoh format (0-0 1-2: source word, target word, counted from 0).
    #[arg(long, value_name = "FILE", conflicts_with = "targets")]
    alignments: Option<PathBuf>,
    /// Do not translate: print the log-probability (nats) and the perplexity of these targets.
    #[arg(long, value_name = "FILE", conflicts_with_all = [
        "text", "prefixes", "beam", "n_best", "length_penalty", "early_stopping", "no_early_stopping", "max_len_factor", "sample", "set"])]
    targets: Option<PathBuf>,
    #[command(flatten, next_help_heading = "Decoding")]
    decoding: DecodingArgs,
    #[command(flatten, next_help_heading = "Decoding")]
    set: SetArgs,
}

pub(super) fn run(args: TranslateArgs) -> Result<()> {
    args.check_inputs()?;
    let mut loaded = load_all(&args.run, &args.place, args.checkpoint.as_deref())?;
    if let Some(i) = loaded.iter().position(|loaded| loaded.config.model.family().answers().is_some()) {
        let message = "is an encoder-only model, which writes no text: `predict` writes its tags, classes or words";
        return Err(Error::file(&args.run[i], message));
    }
    let prepared = args.decoding.prepare(&mut loaded)?;
    let (loaded, model) = ensemble(loaded);
    if let Some(targets) = &args.targets {
        return score(&args, &loaded, &model, &read_lines(&args.lines.input)?, targets);
    }
    let config = args.decoding.apply(&args.set.decoding_of(&args.run[0])?)?;
    let output = args.open_output()?;
    Session::new(&args, &loaded, &prepared, config, output)?.run()
}

impl TranslateArgs {
    /// Standard input can be read once.
    fn check_inputs(&self) -> Result<()> {
        let is_stdin = |path: &Path| path.as_os_str() == "-";
        for (option, path) in [("--prefixes", &self.prefixes), ("--targets", &self.targets)] {
            if is_stdin(self.lines.place()) && path.as_deref().is_some_and(is_stdin) {
                let message = format!("--input and {option} are both standard input; give one of them as a file");
                return Err(Error::message(message));
            }
        }
        Ok(())
    }

    /// Opens the output, which is not to be what is still to be read.
    fn open_output(&self) -> Result<Box<dyn Write>> {
        let read = [Some(&self.lines.input), self.prefixes.as_ref(), self.targets.as_ref()];
        output::open(&self.output, read.into_iter().flatten().map(PathBuf::as_path))
    }

    fn open_alignments(&self) -> Result<Option<Alignments>> {
        let Some(path) = &self.alignments else { return Ok(None) };
        if *path == self.output || files::are_same(path, &self.output) {
            let message = format!("--alignments and --output are both {}; give two files", path.display());
            return Err(Error::message(message));
        }
        let read = [Some(&self.lines.input), self.prefixes.as_ref()];
        let output = output::open(path, read.into_iter().flatten().map(PathBuf::as_path))?;
        Ok(Some(Alignments::new(path, output)))
    }
}

/// A stream of lines that are translated as they come.
struct Session<'a, M> {
    args: &'a TranslateArgs,
    loaded: &'a LoadedModel,
    model: &'a Ensemble<M>,
    config: DecodingConfig,
    prefixes: Option<Vec<String>>,
    output: Box<dyn Write>,
    alignments: Option<Alignments>,
    /// Lines translated.
    n_lines: usize,
    /// Translations that were cut at the length cap.
    n_cut: usize,
    unknown: Unknown,
}

impl<'a, M: Seq2Seq> Session<'a, M> {
    fn new(
        args: &'a TranslateArgs,
        loaded: &'a LoadedModel,
        model: &'a Ensemble<M>,
        config: DecodingConfig,
        output: Box<dyn Write>,
    ) -> Result<Self> {
        let prefixes = args.prefixes.as_ref().map(read_lines).transpose()?;
        if let Some(prefixes) = &prefixes {
            unknown::encode(prefixes, loaded.tokenizers.target(), "prefix");
        }
        let alignments = args.open_alignments()?;
        let unknown = Unknown::default();
        Ok(Self { args, loaded, model, config, prefixes, output, alignments, n_lines: 0, n_cut: 0, unknown })
    }

    /// Translates what is there as a whole, which makes the best batches; anything else as its lines come.
    fn run(mut self) -> Result<()> {
        if let Some(lines) = self.args.lines.whole()? {
            self.check_prefixes(lines.len())?;
            let bar = progress::bar(lines.len() as u64, "translating");
            self.translate(&lines, |n| bar.set_position(n as u64))?;
            bar.finish_and_clear();
        } else {
            let mut stream = self.args.lines.stream();
            while let Some(lines) = stream.next()? {
                self.translate(&lines, |_| ())?;
            }
            self.check_prefixes(self.n_lines)?;
        }
        // No lines are a file without any.
        self.output.flush().map_err(output::error(&self.args.output))?;
        self.warn();
        Ok(())
    }

    fn check_prefixes(&self, n_lines: usize) -> Result<()> {
        match (&self.prefixes, &self.args.prefixes) {
            (Some(prefixes), Some(path)) if prefixes.len() != n_lines => {
                let input = self.args.lines.place().display();
                Err(Error::file(path, format!("has {} lines where {input} has {n_lines}", prefixes.len())))
            }
            _ => Ok(()),
        }
    }

    /// Translates some lines and writes the results.
    fn translate(&mut self, lines: &[String], progress: impl FnMut(usize)) -> Result<()> {
        let requests = self.requests(lines)?;
        let tokenizer = self.loaded.tokenizers.source();
        let mut unknown: Vec<Vec<String>> = Vec::new();
        for (number, (line, request)) in (self.n_lines + 1..).zip(lines.iter().zip(&requests)) {
            unknown.push(self.unknown.note(number, tokenizer, line.trim(), &request.source));
        }
        let seed = self.args.decoding.sampling.seed.unwrap_or(self.loaded.config.seed);
        let found = decode(self.model, &requests, &self.config, seed, progress);
        // Before the translations: a model that aligns nothing writes nothing.
        if let Some(alignments) = &mut self.alignments {
            for ((line, request), hypotheses) in lines.iter().zip(&requests).zip(&found) {
                alignments.write(
                    self.model.models(),
                    &self.loaded.tokenizers,
                    line.trim(),
                    &request.source,
                    hypotheses,
                )?;
            }
        }
        for (i, (line, hypotheses)) in lines.iter().zip(&found).enumerate() {
            let written = match self.args.json {
                true => writeln!(self.output, "{}", json_line(&self.json(line, &unknown[i], hypotheses))),
                false => self.write_text(self.n_lines + i, hypotheses),
            };
            written.map_err(output::error(&self.args.output))?;
        }
        self.output.flush().map_err(output::error(&self.args.output))?;
        self.n_cut += count_cut(&found);
        self.n_lines += lines.len();
        Ok(())
    }

    fn requests(&self, lines: &[String]) -> Result<Vec<Request>> {
        let (source, target) = (self.loaded.tokenizers.source(), self.loaded.tokenizers.target());
        let prefix_of = |i: usize| self.prefixes.as_ref().and_then(|prefixes| prefixes.get(i));
        let request = |(i, line): (usize, &String)| Request {
            source: source.encode(line.trim()),
            prefix: prefix_of(self.n_lines + i).map(|prefix| target.encode(prefix.trim())).unwrap_or_default(),
            number: Some((self.n_lines + i) as u64),
        };
        let requests: Vec<Request> = lines.iter().enumerate().map(request).collect();
        let limits = self.model.limits();
        check_lengths(self.config.source_limit(limits.source), requests.iter().map(|r| &r.source), |i, message| {
            Error::line(self.args.lines.place(), self.n_lines + i + 1, message)
        })?;
        if let Some(path) = &self.args.prefixes {
            check_lengths(limits.target, requests.iter().map(|r| &r.prefix), |i, message| {
                Error::line(path, self.n_lines + i + 1, message)
            })?;
        }
        Ok(requests)
    }

    fn json(&self, line: &str, unknown: &[String], hypotheses: &[Hypothesis]) -> Translated {
        let tokenizer = self.loaded.tokenizers.target();
        let shown = |h: &Hypothesis| ShownHypothesis {
            text: tokenizer.decode(&h.tokens),
            score: h.score,
            log_probability: h.log_probability,
            perplexity: h.perplexity(),
            complete: h.is_complete,
            tokens: h.tokens.iter().map(|id| tokenizer.label(*id)).collect(),
        };
        let hypotheses = hypotheses.iter().map(shown).collect();
        Translated { source: line.to_owned(), unknown: unknown.to_vec(), hypotheses }
    }

    fn write_text(&mut self, i: usize, hypotheses: &[Hypothesis]) -> std::io::Result<()> {
        let tokenizer = self.loaded.tokenizers.target();
        if self.config.n_best == 1 {
            return writeln!(self.output, "{}", tokenizer.decode(&hypotheses[0].tokens));
        }
        for h in hypotheses {
            writeln!(self.output, "{i} ||| {} ||| {:.4}", tokenizer.decode(&h.tokens), h.score)?;
        }
        Ok(())
    }

    fn warn(&self) {
        if let Some(warning) = self.unknown.warning() {
            notice::warn(warning);
        }
        warn_of_cut(self.n_cut, self.n_lines, "translations", "--max-len-factor", &self.config);
    }
}

/// A line of `lookback translate --json`.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "A line of lookback translate --json")]
pub(super) struct Translated {
    /// The line that was read.
    source: String,
    /// Words of it that the vocabulary lacks.
    unknown: Vec<String>,
    /// The translations, best first.
    hypotheses: Vec<ShownHypothesis>,
}

/// A translation.
#[derive(Serialize, JsonSchema)]
struct ShownHypothesis {
    text: String,
    /// The log-probability over the length penalty.
    score: f64,
    /// In nats.
    log_probability: f64,
    /// The exponential of the mean negative log-probability of a token.
    perplexity: f64,
    /// Whether it came to its end; false if it was cut at the length cap.
    complete: bool,
    /// Its tokens as people read them.
    tokens: Vec<String>,
}

/// A line of `lookback translate --targets FILE --json`.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "A line of lookback translate --targets FILE --json")]
pub(super) struct Scored {
    source: String,
    /// The given translation.
    target: String,
    /// In nats, its end included.
    log_probability: f64,
    /// The exponential of the mean negative log-probability of a token.
    perplexity: f64,
    /// Of each token, the end symbol last.
    token_log_probabilities: Vec<f64>,
}

/// Prints what the model thinks of given targets.
fn score(
    args: &TranslateArgs,
    loaded: &LoadedModel,
    model: &Ensemble<Model>,
    sources: &[String],
    path: &Path,
) -> Result<()> {
    let targets = read_lines(path)?;
    if sources.len() != targets.len() {
        let message = format!("has {} lines where {} has {}", targets.len(), args.lines.input.display(), sources.len());
        return Err(Error::file(path, message));
    }
    let encoded_sources = unknown::encode(sources, loaded.tokenizers.source(), "source");
    let encoded_targets = unknown::encode(&targets, loaded.tokenizers.target(), "target");
    let examples: Vec<Example> =
        encoded_sources.into_iter().zip(encoded_targets).map(|(source, target)| Example { source, target }).collect();
    let config = args.decoding.apply(&loaded.config.decoding)?;
    check_lengths(config.source_limit(model.limits().source), examples.iter().map(|e| &e.source), |i, message| {
        Error::line(&args.lines.input, i + 1, message)
    })?;
    check_lengths(model.limits().target, examples.iter().map(|e| &e.target), |i, message| {
        Error::line(path, i + 1, message)
    })?;
    let scores = score_targets(model, &examples, config.batch_tokens);
    let mut output = args.open_output()?;
    for ((source, target), scores) in sources.iter().zip(&targets).zip(&scores) {
        let sum: f64 = scores.iter().sum();
        let perplexity = (-sum / scores.len().max(1) as f64).exp();
        let written = if args.json {
            let line = Scored {
                source: source.clone(),
                target: target.clone(),
                log_probability: sum,
                perplexity,
                token_log_probabilities: scores.clone(),
            };
            writeln!(output, "{}", json_line(&line))
        } else {
            writeln!(output, "{sum:.6}\t{perplexity:.4}")
        };
        written.map_err(output::error(&args.output))?;
    }
    output.flush().map_err(output::error(&args.output))
}
