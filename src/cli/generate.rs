//! `lookback generate`.

use super::decoding::{SamplingArgs, decoding_with};
use super::load_language_model;
use super::output::json_line;
use super::place::PlaceArgs;
use crate::data::text::prompt_ids;
use crate::data::tokenizer::quoted;
use crate::data::{GrowingText, Tokenizer};
use crate::decoding::{Continuation, NextToken, SamplingConfig, line_ends};
use crate::error::{Error, Result};
use crate::models::PreparedModel;
use crate::notice;
use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;
use std::io::{Read, Write};
use std::path::PathBuf;

#[derive(Args, Debug)]
#[command(after_help = "The prompt and the text are written token by token. Without --sample each token is the most
likely one, which leads to repetition. The context of a long text is its last
`data.text.context` tokens.

Examples:
  lookback generate --run runs/captions-decoder-only 'A man in a' --sample
  lookback generate --run runs/captions-decoder-only --sample --samples 3 --lines 1
  cat beginning.txt | lookback generate --run runs/captions-decoder-only - --max-tokens 1000")]
pub(super) struct GenerateArgs {
    /// The run folder of a language model.
    #[arg(short, long)]
    run: PathBuf,
    /// The text to continue, `-` for standard input; without it, the text begins with a new line.
    #[arg(default_value = "", hide_default_value = true)]
    prompt: String,
    /// Tokens to write at most.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..))]
    max_tokens: u64,
    /// Stop after so many ends of lines.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    lines: Option<u64>,
    /// Texts to draw.
    #[arg(long, requires = "sample", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    samples: u64,
    #[command(flatten)]
    place: PlaceArgs,
    /// The checkpoint to take [default: the best].
    #[arg(short, long, value_name = "NAME")]
    checkpoint: Option<String>,
    /// One JSON object for each text, when it is done.
    #[arg(long)]
    json: bool,
    #[command(flatten, next_help_heading = "Decoding")]
    sampling: SamplingArgs,
    /// Override a key of the run's config under decoding.sampling: --set decoding.sampling.temperature=0.8
    #[arg(short, long = "set", value_name = "KEY.PATH=VALUE", help_heading = "Decoding")]
    set: Vec<String>,
}

pub(super) fn run(args: GenerateArgs) -> Result<()> {
    let prompt = match args.prompt.as_str() {
        "-" => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).map_err(Error::io("<standard input>"))?;
            text
        }
        text => text.to_string(),
    };
    let loaded = load_language_model(&args.run, &args.place, args.checkpoint.as_deref())?;
    let tokenizer = loaded.tokenizers.target();
    let message = "has no effect here: a text is written token by token, and its length is that of --max-tokens and \
                   --lines; only decoding.sampling can be set";
    let decoding = decoding_with(&args.run, &args.set, "decoding.sampling", message)?;
    let own = decoding.sampling.as_ref();
    let sampling = args.sampling.drawn(own).or(own.cloned());
    sampling.iter().try_for_each(SamplingConfig::validate)?;
    let ids = prompt_ids(&prompt, tokenizer);
    let unknown: Vec<String> = prompt.lines().flat_map(|line| tokenizer.unknown(line)).collect();
    if !unknown.is_empty() {
        notice::warn(format_args!(
            "the vocabulary does not hold {} of the prompt's tokens: {}",
            unknown.len(),
            quoted(&unknown)
        ));
    }
    let context = loaded.config.context_of_writing();
    let first_seed = args.sampling.seed.unwrap_or(loaded.config.seed);
    let model = PreparedModel::new(loaded.model.clone());
    let begun = GrowingText::after(&ids, prompt.ends_with([' ', '\t']), tokenizer);
    for sample in 0..args.samples {
        let seed = first_seed.wrapping_add(sample);
        let words = Continuation::new(&model, &ids, context, sampling.as_ref(), seed);
        let mut output = Output { text: begun.clone(), out: std::io::stdout().lock() };
        if !args.json {
            output.show(&prompt)?;
        }
        let mut written: Vec<NextToken> = Vec::new();
        let mut n_lines = 0;
        for next in words.take(args.max_tokens as usize) {
            let id = next.id;
            written.push(next);
            let before = n_lines;
            n_lines += line_ends(id, tokenizer) as u64;
            let is_last = args.lines.is_some_and(|lines| n_lines >= lines);
            if !args.json {
                let new = output.text.push(id, tokenizer);
                // Of the last token, what stands before the end of the last line.
                let wanted = args.lines.filter(|_| is_last).map(|lines| (lines - before) as usize);
                output.show(wanted.map_or(&new[..], |wanted| before_line_end(&new, wanted)))?;
            }
            if is_last {
                break;
            }
        }
        if args.json {
            output.show(&json_line(&continued(&prompt, begun.clone(), &written, unknown.clone(), tokenizer)))?;
        }
        output.show("\n")?;
        if !args.json && sample + 1 < args.samples {
            output.show("\n")?;
        }
    }
    Ok(())
}

/// What of `text` stands before its `n`th end of a line.
fn before_line_end(text: &str, n: usize) -> &str {
    let end = text.match_indices('\n').nth(n - 1);
    end.map_or(text, |(end, _)| &text[..end])
}

/// A line of `lookback generate --json`.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "A line of lookback generate --json")]
pub(super) struct Continued {
    prompt: String,
    /// Parts of the prompt that the vocabulary lacks.
    unknown: Vec<String>,
    /// What follows the prompt.
    text: String,
    /// Its tokens as people read them.
    tokens: Vec<String>,
    /// Of each token, in nats.
    token_log_probabilities: Vec<f64>,
    /// Their sum.
    log_probability: f64,
    /// The exponential of the mean negative log-probability of a token.
    perplexity: f64,
}

fn continued(
    prompt: &str,
    mut begun: GrowingText,
    written: &[NextToken],
    unknown: Vec<String>,
    tokenizer: &Tokenizer,
) -> Continued {
    let ids: Vec<u32> = written.iter().map(|next| next.id).collect();
    let log_probability: f64 = written.iter().map(|next| next.log_probability).sum();
    Continued {
        prompt: prompt.to_owned(),
        unknown,
        text: begun.extend(&ids, tokenizer),
        tokens: ids.iter().map(|id| tokenizer.label(*id)).collect(),
        token_log_probabilities: written.iter().map(|next| next.log_probability).collect(),
        log_probability,
        perplexity: (-log_probability / written.len().max(1) as f64).exp(),
    }
}

/// Text on its way to the reader.
struct Output<W> {
    text: GrowingText,
    out: W,
}

impl<W: Write> Output<W> {
    fn show(&mut self, text: &str) -> Result<()> {
        self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush()).map_err(Error::io("standard output"))
    }
}
