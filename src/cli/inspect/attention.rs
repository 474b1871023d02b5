//! `lookback inspect attention`.

use super::{extension, faithfulness, picture, series, tables, text, write};
use crate::backend::Backend;
use crate::cli::decoding::search;
use crate::cli::{check_lengths, load_any, print, progress};
use crate::data::{Split, TaskConfig, read_lines};
use crate::error::{Error, Result};
use crate::models::Seq2Seq;
use crate::notice;
use crate::report::alignment::{self, Gold};
use crate::report::attention::collect::{self, Written};
use crate::report::attention::measure::{HeadSummary, summarize};
use crate::report::attention::select::{Choice, Selection};
use crate::report::attention::{AttentionMap, Part, SentenceMaps, files, html, memory};
use crate::training::{LoadedModel, Run, dataset};
use clap::Args;
use std::path::{Path, PathBuf};

const ENDINGS: [&str; 5] = ["html", "svg", "png", "csv", "safetensors"];

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
    #[arg(long)]
    pub(super) run: PathBuf,
    /// Sentences, or texts, to look at, one a line; - is standard input [default: the first of the run's test data].
    #[arg(long, value_name = "FILE")]
    pub(super) input: Option<PathBuf>,
    /// Their targets, a line for each; without, the model's own translations.
    #[arg(long, value_name = "FILE", requires = "input")]
    pub(super) target: Option<PathBuf>,
    /// Where the maps go: a page (.html), a picture (.svg, .png) or numbers (.csv, .safetensors).
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// The maps of --out: who looks at whom (cross, encoder, decoder), or what recurrences keep (memory, encoder-memory,
    /// encoder-memory-backward) [default: the first that is there in pictures, all elsewhere].
    #[arg(long, requires = "out")]
    part: Option<Part>,
    /// The layer of the maps of --out, counted from 1, "all" or "average" [default: all].
    #[arg(long, requires = "out")]
    layer: Option<Choice>,
    /// The head of the maps of --out, counted from 1, "all" or "average" [default: all].
    #[arg(long, requires = "out")]
    head: Option<Choice>,
    /// Only this sentence, counted from 1.
    #[arg(long, value_name = "N")]
    sentence: Option<usize>,
    /// Sentences of the run's own test data to look at when there is no --input.
    #[arg(long, value_name = "N", default_value_t = 20, conflicts_with_all = ["input", "sentence"],
          value_parser = clap::value_parser!(u64).range(1..))]
    sentences: u64,
    /// Right word alignments in Pharaoh format (0-0 1-2, words counted from 0, 1?2 for a possible one), for the alignment
    /// error rate of given targets.
    #[arg(long, value_name = "FILE", requires = "target")]
    pub(super) alignments: Option<PathBuf>,
    /// Erase source words and see whether those with the most weight matter most, beside gradient x input.
    #[arg(long)]
    pub(super) faithfulness: bool,
    /// Where the tensors live.
    #[arg(long)]
    pub(super) backend: Option<Backend>,
    /// The checkpoint to take [default: the best].
    #[arg(long, value_name = "NAME")]
    pub(super) checkpoint: Option<String>,
    /// Beam size of the model's own translations.
    #[arg(long, conflicts_with = "target")]
    pub(super) beam: Option<usize>,
    /// One JSON object instead of tables.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: InspectAttentionArgs) -> Result<()> {
    // A wrong ending is said before the model works for minutes.
    let ending = args.out.as_deref().map(|out| extension(out, &ENDINGS)).transpose()?;
    let files = [&args.input, &args.target, &args.alignments];
    if files.into_iter().flatten().filter(|path| path.as_os_str() == "-").count() > 1 {
        return Err(Error::message("standard input (-) can be read only once; give a file for the others"));
    }
    if Run::open(&args.run)?.config()?.model.answers_with_numbers() {
        let (loaded, maps, report) = series::maps(&args)?;
        if let (Some(out), Some(ending)) = (&args.out, ending) {
            save(&args, &loaded, out, ending, &maps, &report)?;
        }
        return print(&if args.json { tables::json(&report) } else { tables::text(&report) });
    }
    let loaded = load_any(&args.run, args.backend, args.checkpoint.as_deref())?;
    let written = match loaded.config.model.reads_source() {
        true => written(&args, &loaded)?,
        false => text::written(&args, &loaded)?,
    };
    let gold = gold(&args, &loaded, &written)?;
    let bar = progress::bar(written.len() as u64, "looking");
    let maps: Result<Vec<SentenceMaps>> = written
        .iter()
        .inspect(|_| bar.inc(1))
        .map(|written| collect::collect(&loaded.model, &loaded.tokenizers, written))
        .collect();
    bar.finish_and_clear();
    // A model without attention has no maps, but what its source words do can still be told.
    let sentences = match maps {
        Err(_) if args.faithfulness && args.out.is_none() => Vec::new(),
        maps => maps?,
    };
    let heads = summarize(&sentences);
    let memories = memory::summarize(&sentences);
    let report = tables::Report {
        sentences: written.len(),
        faithfulness: args.faithfulness.then(|| faithfulness::of(&loaded.model, &written, &sentences)),
        errors: tables::error_rates(&sentences, &gold),
        aligned: gold.iter().filter(|gold| gold.is_some()).count(),
        heads,
        memories,
    };
    if let (Some(out), Some(ending)) = (&args.out, ending) {
        save(&args, &loaded, out, ending, &sentences, &report)?;
    }
    print(&if args.json { tables::json(&report) } else { tables::text(&report) })
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

/// The sentence pairs to look at: given ones, or the model's own translations.
fn written(args: &InspectAttentionArgs, loaded: &LoadedModel) -> Result<Vec<Written>> {
    let (sources, lines) = sources(args, loaded)?;
    let encoded: Vec<Vec<u32>> = sources.iter().map(|(_, text)| loaded.tokenizers.source().encode(text)).collect();
    let origin = args.origin();
    let limit = loaded.config.decoding.source_limit(loaded.model.limits().source);
    check_lengths(limit, &encoded, |i, message| Error::line(origin, sources[i].0, message))?;
    if let Some(path) = &args.target {
        if loaded.config.model.has_masks() {
            let message = "--target has no effect here: a model of masked words answers for each token of the text";
            return Err(Error::message(message));
        }
        let targets = read_lines(path)?;
        if targets.len() != lines {
            let message = format!("has {} lines where {} has {lines}", targets.len(), origin.display());
            return Err(Error::file(path, message));
        }
        let pairs: Vec<Written> = sources
            .iter()
            .map(|(number, source)| Written::given(*number, source, &targets[number - 1], &loaded.tokenizers))
            .collect();
        let tokens: Vec<Vec<u32>> = pairs.iter().map(Written::words).collect();
        check_lengths(loaded.model.limits().target, &tokens, |i, message| Error::line(path, pairs[i].number, message))?;
        return Ok(pairs);
    }
    let config = search(&loaded.config.decoding, args.beam)?;
    let bar = progress::bar(sources.len() as u64, "translating");
    let seed = loaded.config.seed;
    let found =
        collect::write(&loaded.model, &loaded.tokenizers, &sources, &config, seed, |n| bar.set_position(n as u64));
    bar.finish_and_clear();
    Ok(found)
}

/// The sentences with their numbers, blank ones left out, and the number of all lines: standard input can be read only once.
pub(super) fn sources(args: &InspectAttentionArgs, loaded: &LoadedModel) -> Result<(Vec<(usize, String)>, usize)> {
    if loaded.config.model.learns_from_text() {
        return numbered(args, || text::own_lines(loaded));
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
    let origin = args.origin();
    let mut numbered: Vec<(usize, String)> = lines.into_iter().enumerate().map(|(i, line)| (i + 1, line)).collect();
    if let Some(number) = args.sentence {
        numbered.retain(|(i, _)| *i == number);
        let [(_, line)] = &numbered[..] else {
            let message = format!("has no sentence {number}; it has sentences 1 to {n_lines}");
            return Err(Error::file(origin, message));
        };
        if line.is_empty() {
            let message = format!("sentence {number} is blank: there is nothing to look at; give another --sentence");
            return Err(Error::file(origin, message));
        }
    }
    numbered.retain(|(_, line)| !line.is_empty());
    if numbered.is_empty() {
        return Err(Error::file(origin, "has no sentence to look at: every line is blank"));
    }
    Ok((numbered, n_lines))
}

/// The right alignment of each pair, where it is known: from a file, or because the task says it.
fn gold(args: &InspectAttentionArgs, loaded: &LoadedModel, written: &[Written]) -> Result<Vec<Option<Aligned>>> {
    let (source, target) = (loaded.tokenizers.source(), loaded.tokenizers.target());
    let words = |pair: &Written| {
        let target_text = pair.target_text(&loaded.tokenizers);
        (alignment::words_of_tokens(&pair.source_text, source), alignment::words_of_tokens(&target_text, target))
    };
    if let Some(path) = &args.alignments {
        let all = alignment::read(path)?;
        let paired = written.iter().map(|pair| {
            let missing = || Error::file(path, format!("has {} lines; sentence {} has none", all.len(), pair.number));
            let gold = all.get(pair.number - 1).ok_or_else(missing)?;
            let (source_words, target_words) = words(pair);
            let count = |words: &[usize]| words.last().map_or(0, |last| last + 1);
            let (n_source, n_target) = (count(&source_words), count(&target_words));
            if let Some((i, j)) = gold.beyond(n_source, n_target) {
                let message = format!(
                    "links word {i} to word {j}, but the source has {n_source} words and the target {n_target}; words are \
                     what stands between spaces, counted from 0"
                );
                return Err(Error::line(path, pair.number, message));
            }
            Ok(Some(Aligned { gold: gold.clone(), source_words, target_words }))
        });
        return paired.collect();
    }
    let of_task = |pair: &Written| {
        let target_text = pair.target_text(&loaded.tokenizers);
        let gold = of_task(loaded.config.data.task.as_ref()?, &pair.source_text, &target_text)?;
        let (source_words, target_words) = words(pair);
        Some(Aligned { gold, source_words, target_words })
    };
    Ok(written.iter().map(of_task).collect())
}

/// The right alignment of a sentence and the words that its tokens belong to.
pub(super) struct Aligned {
    pub(super) gold: Gold,
    pub(super) source_words: Vec<usize>,
    pub(super) target_words: Vec<usize>,
}

/// The right alignment of copying and reversing, provided that the target is right.
fn of_task(task: &TaskConfig, source: &str, target: &str) -> Option<Gold> {
    let (source, target): (Vec<&str>, Vec<&str>) =
        (source.split_whitespace().collect(), target.split_whitespace().collect());
    let n = source.len();
    match task {
        TaskConfig::Copy(_) if source == target => Some(Gold::sure((0..n).map(|i| (i, i)))),
        TaskConfig::Reverse(_) if source.iter().rev().eq(&target) => Some(Gold::sure((0..n).map(|i| (n - 1 - i, i)))),
        _ => None,
    }
}

fn save(
    args: &InspectAttentionArgs,
    loaded: &LoadedModel,
    out: &Path,
    ending: &str,
    sentences: &[SentenceMaps],
    report: &tables::Report,
) -> Result<()> {
    let selection =
        Selection { part: args.part, layer: args.layer.unwrap_or_default(), head: args.head.unwrap_or_default() };
    let select = |sentence: &SentenceMaps| selection.apply(sentence);
    match ending {
        "svg" | "png" => {
            if sentences.len() > 1 {
                notice::say(format_args!("drawing sentence {}; --sentence N draws another", sentences[0].number));
            }
            let svg = picture::of(&sentences[0], selection)?;
            let bytes = super::picture(svg, ending)?;
            write(out, &bytes)
        }
        "html" => {
            let chosen: Result<Vec<SentenceMaps>> = sentences
                .iter()
                .map(|sentence| Ok(SentenceMaps { maps: select(sentence)?, ..sentence.clone() }))
                .collect();
            let chosen = chosen?;
            let heads: Vec<HeadSummary> = summarize(&chosen);
            let page = html::page("Attention", &about(args, loaded), &chosen, &heads, &tables::html(report));
            write(out, page.render().as_bytes())
        }
        _ => {
            let chosen: Result<Vec<(&SentenceMaps, Vec<AttentionMap>)>> =
                sentences.iter().map(|sentence| Ok((sentence, select(sentence)?))).collect();
            let chosen = chosen?;
            let bytes = if ending == "csv" { files::csv(&chosen).into_bytes() } else { files::safetensors(&chosen)? };
            write(out, &bytes)
        }
    }
}

/// Where the maps come from, in a sentence.
fn about(args: &InspectAttentionArgs, loaded: &LoadedModel) -> String {
    let name = args.run.file_name().unwrap_or(args.run.as_os_str()).to_string_lossy();
    let targets = match &args.target {
        _ if !loaded.config.model.reads_source() => "A row is a token of the text, which predicts the next one.",
        None if loaded.config.model.answers_with_numbers() => "The targets are the model's own answers.",
        Some(_) => "The targets were given.",
        None => "The targets are the model's own translations.",
    };
    format!("The model {name}, checkpoint {} ({} updates). {targets}", loaded.checkpoint, loaded.updates)
}
