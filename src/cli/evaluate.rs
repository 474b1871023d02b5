//! `lookback evaluate`.

use super::decoding::DecodingArgs;
use super::{check_lengths, print, progress};
use crate::backend::Backend;
use crate::data::{Pair, Split, read_lines};
use crate::decoding::{DecodingConfig, Request, decode};
use crate::error::{Error, Result};
use crate::models::Seq2Seq;
use crate::scoring::{Bleu, BleuTokenizer, Chrf, Scorer, Scores};
use crate::training::{LoadedModel, Run, dataset, validate};
use clap::Args;
use std::path::PathBuf;

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  lookback evaluate --run runs/first --beam 5
  lookback evaluate --hypotheses out.en --references test.en --sources test.de --json")]
pub(super) struct EvaluateArgs {
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
    tokenize: BleuTokenizer,
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

pub(super) fn run(args: EvaluateArgs) -> Result<()> {
    let scores = match &args.run {
        Some(_) => of_run(&args)?,
        None => of_files(&args)?,
    };
    if args.json {
        return print(&(serde_json::to_string(&scores).expect("scores are plain data") + "\n"));
    }
    print(&table(&scores))
}

fn scorer(args: &EvaluateArgs, lowercase: bool) -> Scorer {
    Scorer {
        bleu: Bleu { tokenizer: args.tokenize, lowercase, ..Bleu::default() },
        chrf: Chrf { lowercase, ..Chrf::default() },
        ..Scorer::default()
    }
}

fn of_files(args: &EvaluateArgs) -> Result<Scores> {
    let (Some(hypotheses), Some(references)) = (&args.hypotheses, &args.references) else {
        return Err(Error::message("give --run, or --hypotheses and --references"));
    };
    let (hypotheses, references) = (read_lines(hypotheses)?, read_lines(references)?);
    let sources = args.sources.as_ref().map(read_lines).transpose()?;
    scorer(args, args.lowercase).score(&hypotheses, &references, sources.as_deref())
}

fn of_run(args: &EvaluateArgs) -> Result<Scores> {
    let run = Run::open(args.run.as_ref().expect("the caller has looked"))?;
    let split = Split::ALL
        .into_iter()
        .find(|split| split.name() == args.split)
        .ok_or_else(|| Error::message(format!("unknown split \"{}\"; there are train, valid and test", args.split)))?;
    let config = run.config_with(&args.set)?;
    let backend = args.backend.unwrap_or(config.backend);
    let mut loaded = run.load_model(&backend.open()?, |warning| eprintln!("warning: {warning}"))?;
    let decoding = args.decoding.apply(&config.decoding)?;
    let int8 = args.decoding.round(&mut loaded)?;
    let pairs = dataset::pairs_of(&config.data, split, config.seed)?;
    let examples = dataset::encode(&pairs, &loaded.tokenizers);
    check_lengths(loaded.model.limits().target, examples.iter().map(|e| &e.target), |i, message| {
        pair_fault(i, "target", message)
    })?;
    let hypotheses = match &int8 {
        Some(model) => translate_pairs(model, &loaded, &pairs, &decoding, "translating"),
        None => translate_pairs(&loaded.model, &loaded, &pairs, &decoding, "translating"),
    }?;
    if let Some(path) = &args.output {
        std::fs::write(path, hypotheses.join("\n") + "\n").map_err(Error::io(path))?;
    }
    let references: Vec<String> = pairs.iter().map(|pair| pair.target.clone()).collect();
    let sources: Vec<String> = pairs.iter().map(|pair| pair.source.clone()).collect();
    let lowercase = args.lowercase || loaded.tokenizers.config().is_lowercase();
    let mut scores = scorer(args, lowercase).score(&hypotheses, &references, Some(&sources))?;
    let sums = validate(&loaded.model, &examples, decoding.batch_tokens);
    scores.perplexity = Some((sums.cross_entropy / sums.n_tokens.max(1) as f64).exp());
    Ok(scores)
}

fn pair_fault(i: usize, side: &str, message: String) -> Error {
    Error::message(format!("the {side} of pair {} {message}", i + 1))
}

/// The best translation of every source by `model`, in the words of `loaded`.
///
/// # Errors
/// If a source is longer than the model's positions reach.
pub(super) fn translate_pairs<M: Seq2Seq>(
    model: &M,
    loaded: &LoadedModel,
    pairs: &[Pair],
    config: &DecodingConfig,
    what: &str,
) -> Result<Vec<String>> {
    let sources: Vec<&str> = pairs.iter().map(|pair| pair.source.as_str()).collect();
    let requests: Vec<Request> =
        loaded.tokenizers.source().encode_batch(&sources).into_iter().map(Request::new).collect();
    check_lengths(model.limits().source, requests.iter().map(|r| &r.source), |i, message| {
        pair_fault(i, "source", message)
    })?;
    let bar = progress::bar(pairs.len() as u64, what);
    let found = decode(model, &requests, config, loaded.config.seed, |n| bar.set_position(n as u64));
    bar.finish_and_clear();
    Ok(found.iter().map(|hypotheses| loaded.tokenizers.target().decode(&hypotheses[0].tokens)).collect())
}

fn table(scores: &Scores) -> String {
    let m = &scores.metrics;
    let mut text = format!("sentences          {:>8}\n", scores.sentences);
    text += &format!("BLEU               {:>8.2}   {}\n", m.bleu, scores.signature);
    text += &format!("chrF               {:>8.2}\n", m.chrf);
    text += &format!("sequence accuracy  {:>8.2} %\n", 100.0 * m.sequence_accuracy);
    text += &format!("token accuracy     {:>8.2} %\n", 100.0 * m.token_accuracy);
    text += &format!("WER                {:>8.2} %\n", 100.0 * m.wer);
    text += &format!("CER                {:>8.2} %\n", 100.0 * m.cer);
    if let Some(perplexity) = scores.perplexity {
        text += &format!("perplexity         {perplexity:>8.3}\n");
    }
    if !scores.by_length.is_empty() {
        text += "\nsource length  sentences     BLEU     chrF  sequences right\n";
        for bucket in &scores.by_length {
            let range = match bucket.to {
                Some(to) => format!("{}-{to}", bucket.from),
                None => format!("{}-", bucket.from),
            };
            text += &format!(
                "{range:>13}  {:>9}  {:>7.2}  {:>7.2}  {:>13.2} %\n",
                bucket.sentences,
                bucket.metrics.bleu,
                bucket.metrics.chrf,
                100.0 * bucket.metrics.sequence_accuracy
            );
        }
    }
    text
}
