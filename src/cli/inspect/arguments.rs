//! The arguments of `lookback inspect attention`, and its input lines.

use crate::cli::place::PlaceArgs;
use crate::data::{Split, Tokenizer, read_lines};
use crate::error::{Error, Result};
use crate::experiment::{LoadedModel, dataset};
use crate::report::attention::Part;
use crate::report::attention::select::Choice;
use clap::Args;
use std::path::{Path, PathBuf};

#[derive(Args, Debug)]
#[command(after_help = "The numbers of every head are printed; --out adds the maps. A page (.html) has every sentence,
layer and head; a picture (.svg, .png) has one sentence: one map with its labels, or all heads
in a grid. Of a language model each line of --input is a text: a row is a token that was read
and predicts the next, a column a token that it looks at. The parts memory, encoder-memory and
encoder-memory-backward are of recurrences (min-gru, min-lstm, ssru, rg-lru, gated-linear): the
share of what a token (column) wrote that is left in the state after another (row).

Examples:
  lookback inspect attention --run runs/first --input test.de --out maps.html
  lookback inspect attention --run runs/first --layer average --head average --out dog.png
  lookback inspect attention --run runs/first --layer 2 --head 1 --out head.csv
  lookback inspect attention --run runs/first --input a.de --target a.en --alignments a.gold --json
  lookback inspect attention --run runs/first --input a.de --faithfulness
  lookback inspect attention --run runs/captions-decoder-only --input a.txt --out a.html")]
pub(in crate::cli) struct InspectAttentionArgs {
    /// The run folder.
    #[arg(short, long)]
    pub(super) run: PathBuf,
    /// Sentences or texts, one a line; - is standard input [default: the first of the run's test data].
    #[arg(short, long, value_name = "FILE")]
    pub(super) input: Option<PathBuf>,
    /// Their targets, a line for each; without, the model's own translations.
    #[arg(long, value_name = "FILE", requires = "input")]
    pub(super) target: Option<PathBuf>,
    /// Where the maps go: a page (.html), a picture (.svg, .png) or numbers (.csv, .safetensors).
    #[arg(short, long, value_name = "FILE")]
    pub(super) out: Option<PathBuf>,
    /// The maps of --out: who looks at whom (cross, encoder, decoder), or what recurrences keep (memory, encoder-memory,
    /// encoder-memory-backward) [default: the first that is there in pictures, all elsewhere].
    #[arg(long, requires = "out")]
    pub(super) part: Option<Part>,
    /// The layer of the maps of --out, counted from 1, "all" or "average" [default: all].
    #[arg(long, requires = "out")]
    pub(super) layer: Option<Choice>,
    /// The head of the maps of --out, counted from 1, "all" or "average" [default: all].
    #[arg(long, requires = "out")]
    pub(super) head: Option<Choice>,
    /// Only this sentence, counted from 1.
    #[arg(long, value_name = "N")]
    pub(super) sentence: Option<usize>,
    /// Sentences of the run's own test data to look at when there is no --input.
    #[arg(long, value_name = "N", default_value_t = 20, conflicts_with_all = ["input", "sentence"],
          value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) sentences: u64,
    /// Right word alignments in Pharaoh format (0-0 1-2, words counted from 0, 1?2 for a possible one), for the alignment
    /// error rate of given targets.
    #[arg(long, value_name = "FILE", requires = "target")]
    pub(super) alignments: Option<PathBuf>,
    /// Erase source words and see whether those with the most weight matter most, beside gradient x input.
    #[arg(long)]
    pub(super) faithfulness: bool,
    #[command(flatten)]
    pub(super) place: PlaceArgs,
    /// The checkpoint to take [default: the best].
    #[arg(short, long, value_name = "NAME")]
    pub(super) checkpoint: Option<String>,
    /// Beam size of the model's own translations.
    #[arg(long, conflicts_with = "target")]
    pub(super) beam: Option<usize>,
    /// One JSON object instead of tables.
    #[arg(long)]
    pub(super) json: bool,
}

impl InspectAttentionArgs {
    /// Where lines come from, for messages.
    pub(super) fn origin(&self) -> &Path {
        self.input.as_deref().unwrap_or(&self.run)
    }

    /// The first option that is given and has a meaning for words alone.
    pub(super) fn first_for_words(&self) -> Option<&'static str> {
        let given = [
            (self.alignments.is_some(), "--alignments"),
            (self.target.is_some(), "--target"),
            (self.faithfulness, "--faithfulness"),
            (self.beam.is_some(), "--beam"),
        ];
        given.into_iter().find(|(is_given, _)| *is_given).map(|(_, name)| name)
    }
}

/// The sentences with their numbers, blank ones left out, and the number of all lines: standard input can be read only once.
pub(super) fn sources(args: &InspectAttentionArgs, loaded: &LoadedModel) -> Result<(Vec<(usize, String)>, usize)> {
    if loaded.config.model.learns_from_text() {
        return numbered(args, || own_lines(loaded));
    }
    numbered(args, || {
        let pairs = dataset::pairs_of(&loaded.config.data, Split::Test, loaded.config.seed)
            .map_err(|error| Error::message(format!("{error}; or give sentences with --input FILE")))?;
        Ok(pairs.into_iter().map(|pair| pair.source).collect())
    })
}

/// The lines to look at, of --input or `own`, with their numbers, blank ones left out, and the number of all lines.
pub(super) fn numbered(
    args: &InspectAttentionArgs,
    own: impl FnOnce() -> Result<Vec<String>>,
) -> Result<(Vec<(usize, String)>, usize)> {
    let lines = match &args.input {
        Some(path) => read_lines(path)?,
        None => own()?.into_iter().take(args.sentence.unwrap_or(args.sentences as usize)).collect(),
    };
    let n_lines = lines.len();
    let mut numbered: Vec<(usize, String)> = lines.into_iter().enumerate().map(|(i, line)| (i + 1, line)).collect();
    if let Some(number) = args.sentence {
        numbered.retain(|(i, _)| *i == number);
        let [(_, line)] = &numbered[..] else {
            let message = match number {
                0 => "has no sentence 0; sentences are counted from 1".into(),
                _ => format!("has no sentence {number}; it has sentences 1 to {n_lines}"),
            };
            return Err(Error::file(args.origin(), message));
        };
        if line.is_empty() {
            return Err(nothing_to_look_at(args));
        }
    }
    numbered.retain(|(_, line)| !line.is_empty());
    if numbered.is_empty() {
        return Err(nothing_to_look_at(args));
    }
    Ok((numbered, n_lines))
}

/// The error where the sentence that was chosen, or every line, is blank.
fn nothing_to_look_at(args: &InspectAttentionArgs) -> Error {
    let message = match args.sentence {
        Some(number) => format!("sentence {number} is blank: there is nothing to look at; give another --sentence"),
        None => "has no sentence to look at: every line is blank".into(),
    };
    Error::file(args.origin(), message)
}

/// A line to look at.
pub(super) struct Line {
    /// Its number in the file, counted from 1.
    pub(super) number: usize,
    pub(super) text: String,
    pub(super) ids: Vec<u32>,
}

/// The lines that have a token; the others are left out, as blank ones are.
///
/// # Errors
/// If none has.
pub(super) fn with_tokens(
    args: &InspectAttentionArgs,
    lines: Vec<(usize, String)>,
    tokenizer: &Tokenizer,
) -> Result<Vec<Line>> {
    let line = |(number, text): (usize, String)| Line { number, ids: tokenizer.encode(&text), text };
    let lines: Vec<Line> = lines.into_iter().map(line).filter(|line| !line.ids.is_empty()).collect();
    if lines.is_empty() { Err(nothing_to_look_at(args)) } else { Ok(lines) }
}

/// The run's own test text, or that of validation where there is none.
pub(super) fn own_lines(loaded: &LoadedModel) -> Result<Vec<String>> {
    let data = &loaded.config.data;
    let has_text = data.text.as_ref().is_some_and(|text| Split::ALL.iter().any(|split| !text.files(*split).is_empty()));
    if !has_text {
        let message =
            "this model comes without a text of its own, such as an imported one; give lines of text with --input FILE";
        return Err(Error::message(message));
    }
    let test = dataset::lines_of(data, Split::Test);
    test.or_else(|error| dataset::lines_of(data, Split::Valid).map_err(|_| error))
        .map_err(|error| Error::message(format!("{error}; or give lines of text with --input FILE")))
}
