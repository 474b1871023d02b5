//! `lookback predict`.

mod series;

pub(super) use series::PredictedSeries;

use super::lines::LinesArgs;
use super::output::json_line;
use super::place::PlaceArgs;
use super::unknown::Unknown;
use super::{check_lengths, load_encoder_only, output};
use crate::data::MASK;
use crate::decoding::{Choice, answers};
use crate::error::{Error, Result};
use crate::experiment::LoadedModel;
use crate::models::{Answers, Autoregressive, EncoderOnlyConfig};
use crate::notice;
use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;
use std::io::Write;
use std::path::PathBuf;

#[derive(Args, Debug)]
#[command(
    after_help = "The output has one tag for each token, separated by spaces, or one class. In a text with hidden
words, written <mask>, each of them is replaced by a word, predicted independently of the others.
Series have steps separated by spaces, channels by commas, in input and output. A blank line stays
blank.

Examples:
  lookback predict --run runs/rises-encoder-only 'c d a h'
  lookback predict --run runs/captions-masked-words 'a man in a <mask> hat'
  lookback predict --run runs/next-value-encoder-only '0.5 1.2 0.9'
  lookback predict --run runs/parity --input sequences.txt --json --n-best 2"
)]
pub(super) struct PredictArgs {
    /// The run folder of an encoder-only model.
    #[arg(short, long)]
    run: PathBuf,
    #[command(flatten)]
    lines: LinesArgs,
    /// The file of the answers; `-` is standard output.
    #[arg(short, long, default_value = "-")]
    output: PathBuf,
    /// Choices in the JSON for each answer, most likely first.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..), requires = "json")]
    n_best: u16,
    #[command(flatten)]
    place: PlaceArgs,
    /// The checkpoint to take [default: the best].
    #[arg(short, long, value_name = "NAME")]
    checkpoint: Option<String>,
    /// One JSON object a line, with the probabilities of words.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: PredictArgs) -> Result<()> {
    let (loaded, config) = load_encoder_only(&args.run, &args.place, args.checkpoint.as_deref())?;
    if config.output == Answers::Values {
        return series::run(&args, &loaded);
    }
    let mut output = output::open(&args.output, [args.lines.input.as_path()])?;
    let mut session =
        Session { args: &args, loaded: &loaded, config: &config, n_lines: 0, unknown: Unknown::default() };
    args.lines.for_each_group(|lines| session.answer(lines, &mut output))?;
    output.flush().map_err(output::error(&args.output))?;
    if let Some(warning) = session.unknown.warning() {
        notice::warn(warning);
    }
    Ok(())
}

struct Session<'a> {
    args: &'a PredictArgs,
    loaded: &'a LoadedModel,
    config: &'a EncoderOnlyConfig,
    n_lines: usize,
    unknown: Unknown,
}

impl Session<'_> {
    fn answer(&mut self, lines: &[String], output: &mut dyn Write) -> Result<()> {
        let tokenizer = self.loaded.tokenizers.source();
        let decoding = &self.loaded.config.decoding;
        let sources: Vec<Vec<u32>> = lines.iter().map(|line| tokenizer.encode(line.trim())).collect();
        check_lengths(decoding.source_limit(self.loaded.model.limits().source), &sources, |i, message| {
            Error::line(self.args.lines.place(), self.n_lines + i + 1, message)
        })?;
        let n_best = usize::from(self.args.n_best);
        let len = |n| self.config.answer_len(n);
        let found = answers(&self.loaded.model, &sources, len, n_best, decoding.batch_tokens);
        for ((i, line), (source, words)) in lines.iter().enumerate().zip(sources.iter().zip(&found)) {
            let unknown = self.unknown.note(self.n_lines + i + 1, tokenizer, line.trim(), source);
            let words = self.asked(source, words);
            let written = match self.args.json {
                true => writeln!(output, "{}", json_line(&self.json(line, source, &words, unknown))),
                false => writeln!(output, "{}", self.text(line, &words)),
            };
            written.map_err(output::error(&self.args.output))?;
        }
        self.n_lines += lines.len();
        output.flush().map_err(output::error(&self.args.output))
    }

    /// The requested answers, each with the position of its token: all, or those to hidden words.
    fn asked<'a>(&self, source: &[u32], words: &'a [Vec<Choice>]) -> Vec<(usize, &'a Vec<Choice>)> {
        let mask = self.loaded.tokenizers.source().mask().filter(|_| self.config.output == Answers::MaskedWords);
        let is_asked = |place: usize| mask.is_none_or(|mask| source.get(place) == Some(&mask));
        words.iter().enumerate().filter(|(place, _)| is_asked(*place)).collect()
    }

    fn text(&self, line: &str, words: &[(usize, &Vec<Choice>)]) -> String {
        let names = self.loaded.tokenizers.target();
        let best = words.iter().filter_map(|(_, choices)| choices.first()).map(|choice| choice.id);
        if self.config.output != Answers::MaskedWords {
            return names.decode(&best.collect::<Vec<_>>());
        }
        // What is not hidden stays as it was written.
        let between = best.map(|id| names.decode(&[id]).trim().to_owned()).chain(std::iter::repeat(MASK.to_owned()));
        let parts = self.loaded.tokenizers.source().around_masks(line);
        let first = std::iter::once(String::new());
        first.chain(between).zip(parts).map(|(word, part)| word + part).collect()
    }

    fn json(&self, line: &str, source: &[u32], words: &[(usize, &Vec<Choice>)], unknown: Vec<String>) -> Predicted {
        let (tokens, names) = (self.loaded.tokenizers.source(), self.loaded.tokenizers.target());
        let tokens: Vec<String> = source.iter().map(|id| tokens.label(*id)).collect();
        let choice = |choice: &Choice| ShownChoice { answer: names.label(choice.id), probability: choice.probability };
        let choices = |(_, word): &(usize, &Vec<Choice>)| word.iter().map(choice).collect::<Vec<_>>();
        let answer = match self.config.output {
            Answers::Tags => Answer::Tags { tags: words.iter().map(choices).collect() },
            Answers::Class => Answer::Class { class: words.first().map(choices) },
            Answers::MaskedWords => {
                let word = |word: &(usize, &Vec<Choice>)| HiddenWord { place: word.0, choices: choices(word) };
                Answer::Words { words: words.iter().map(word).collect(), text: self.text(line, words) }
            }
            Answers::Values => unreachable!("numbers have their own answers"),
        };
        Predicted { source: line.to_owned(), tokens, unknown, answer }
    }
}

/// A line of `lookback predict --json`.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "A line of lookback predict --json, where answers are words")]
pub(super) struct Predicted {
    /// The line that was read.
    source: String,
    /// Its tokens as people read them.
    tokens: Vec<String>,
    /// Parts of it that the vocabulary lacks.
    unknown: Vec<String>,
    #[serde(flatten)]
    answer: Answer,
}

/// By what the model answers with (`model.output`).
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum Answer {
    Tags {
        /// For each token the likeliest tags, best first.
        tags: Vec<Vec<ShownChoice>>,
    },
    Class {
        /// The likeliest classes, best first; nothing for a blank line.
        class: Option<Vec<ShownChoice>>,
    },
    Words {
        /// The hidden words.
        words: Vec<HiddenWord>,
        /// The line with the likeliest of each.
        text: String,
    },
}

/// The answers to a hidden word.
#[derive(Serialize, JsonSchema)]
struct HiddenWord {
    /// Its place among the tokens, from 0.
    place: usize,
    /// The likeliest words, best first.
    choices: Vec<ShownChoice>,
}

/// An answer.
#[derive(Serialize, JsonSchema)]
struct ShownChoice {
    answer: String,
    probability: f64,
}
