//! `lookback translate`.

use super::decoding::DecodingArgs;
use super::{check_lengths, load, progress};
use crate::backend::Backend;
use crate::data::batch::Example;
use crate::data::read_lines;
use crate::decoding::{Hypothesis, Request, decode, score_targets};
use crate::error::{Error, Result};
use crate::models::Seq2Seq;
use crate::training::LoadedModel;
use clap::Args;
use serde_json::json;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

#[derive(Args, Debug)]
#[command(after_help = "One sentence a line, UTF-8, plain or .gz; a blank line in is a blank line out.

Examples:
  lookback translate --run runs/first --input test.de --output test.en --beam 5
  echo 'ein Hund' | lookback translate --run runs/first --beam 5 --n-best 3
  lookback translate --run runs/first --input a.de --targets a.en      log-probabilities of given targets")]
pub(super) struct TranslateArgs {
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

pub(super) fn run(args: TranslateArgs) -> Result<()> {
    let mut loaded = load(&args.run, args.backend)?;
    let int8 = args.decoding.round(&mut loaded)?;
    let lines = read_lines(&args.input)?;
    if let Some(targets) = &args.targets {
        return score(&args, &loaded, &lines, targets);
    }
    let config = args.decoding.apply(&loaded.config.decoding)?;
    let limits = loaded.model.limits();
    let mut requests: Vec<Request> =
        lines.iter().map(|line| Request::new(loaded.tokenizers.source().encode(line.trim()))).collect();
    check_lengths(limits.source, requests.iter().map(|r| &r.source), |i, message| {
        Error::line(&args.input, i + 1, message)
    })?;
    if let Some(path) = &args.prefixes {
        let prefixes = read_lines(path)?;
        if prefixes.len() != lines.len() {
            let message = format!("has {} lines where {} has {}", prefixes.len(), args.input.display(), lines.len());
            return Err(Error::file(path, message));
        }
        for (request, prefix) in requests.iter_mut().zip(&prefixes) {
            request.prefix = loaded.tokenizers.target().encode(prefix.trim());
        }
        check_lengths(limits.target, requests.iter().map(|r| &r.prefix), |i, message| {
            Error::line(path, i + 1, message)
        })?;
    }
    let bar = progress::bar(lines.len() as u64, "translating");
    let seed = args.decoding.seed.unwrap_or(loaded.config.seed);
    let progress = |n| bar.set_position(n as u64);
    let found = match &int8 {
        Some(model) => decode(model, &requests, &config, seed, progress),
        None => decode(&loaded.model, &requests, &config, seed, progress),
    };
    bar.finish_and_clear();
    let mut output = open(&args.output)?;
    for (i, (line, hypotheses)) in lines.iter().zip(&found).enumerate() {
        write_line(&mut output, i, line, hypotheses, &loaded, args.json, config.n_best)
            .map_err(Error::io(&args.output))?;
    }
    output.flush().map_err(Error::io(&args.output))?;
    let cut = found.iter().filter(|hypotheses| !hypotheses[0].is_complete).count();
    if cut > 0 {
        eprintln!(
            "warning: {cut} of {} translations were cut at the length cap of {} tokens for each source token and {} more; \
             raise --max-len-factor",
            found.len(),
            config.max_len_factor,
            config.max_len_extra
        );
    }
    Ok(())
}

fn write_line(
    output: &mut dyn Write,
    i: usize,
    line: &str,
    hypotheses: &[Hypothesis],
    loaded: &LoadedModel,
    is_json: bool,
    n_best: usize,
) -> std::io::Result<()> {
    let tokenizer = loaded.tokenizers.target();
    if is_json {
        let hypotheses: Vec<_> = hypotheses
            .iter()
            .map(|h| {
                json!({
                    "text": tokenizer.decode(&h.tokens),
                    "score": h.score,
                    "log_probability": h.log_probability,
                    "perplexity": h.perplexity(),
                    "complete": h.is_complete,
                    "tokens": h.tokens.iter().map(|id| tokenizer.label(*id)).collect::<Vec<_>>(),
                })
            })
            .collect();
        return writeln!(output, "{}", json!({ "source": line, "hypotheses": hypotheses }));
    }
    if n_best == 1 {
        return writeln!(output, "{}", tokenizer.decode(&hypotheses[0].tokens));
    }
    for h in hypotheses {
        writeln!(output, "{i} ||| {} ||| {:.4}", tokenizer.decode(&h.tokens), h.score)?;
    }
    Ok(())
}

/// Prints what the model thinks of given targets.
fn score(args: &TranslateArgs, loaded: &LoadedModel, sources: &[String], path: &Path) -> Result<()> {
    let targets = read_lines(path)?;
    if sources.len() != targets.len() {
        let message = format!("has {} lines where {} has {}", targets.len(), args.input.display(), sources.len());
        return Err(Error::file(path, message));
    }
    let examples: Vec<Example> = sources
        .iter()
        .zip(&targets)
        .map(|(source, target)| Example {
            source: loaded.tokenizers.source().encode(source.trim()),
            target: loaded.tokenizers.target().encode(target.trim()),
        })
        .collect();
    check_lengths(loaded.model.limits().source, examples.iter().map(|e| &e.source), |i, message| {
        Error::line(&args.input, i + 1, message)
    })?;
    check_lengths(loaded.model.limits().target, examples.iter().map(|e| &e.target), |i, message| {
        Error::line(path, i + 1, message)
    })?;
    let config = args.decoding.apply(&loaded.config.decoding)?;
    let scores = score_targets(&loaded.model, &examples, config.batch_tokens);
    let mut output = open(&args.output)?;
    for ((source, target), scores) in sources.iter().zip(&targets).zip(&scores) {
        let sum: f64 = scores.iter().sum();
        let perplexity = (-sum / scores.len().max(1) as f64).exp();
        let written = if args.json {
            let line = json!({
                "source": source, "target": target, "log_probability": sum, "perplexity": perplexity,
                "token_log_probabilities": scores,
            });
            writeln!(output, "{line}")
        } else {
            writeln!(output, "{sum:.6}\t{perplexity:.4}")
        };
        written.map_err(Error::io(&args.output))?;
    }
    output.flush().map_err(Error::io(&args.output))
}

fn open(path: &Path) -> Result<Box<dyn Write>> {
    if path.as_os_str() == "-" {
        return Ok(Box::new(BufWriter::new(std::io::stdout().lock())));
    }
    Ok(Box::new(BufWriter::new(File::create(path).map_err(Error::io(path))?)))
}
