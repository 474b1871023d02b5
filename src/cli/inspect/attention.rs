//! `lookback inspect attention`.

use super::arguments::{InspectAttentionArgs, Line, sources, with_tokens};
use super::tables::Aligned;
use super::{extension, faithfulness, picture, series, tables, text, write};
use crate::cli::decoding::search;
use crate::cli::{answer_fault, check_lengths, load_any, output, print, progress};
use crate::data::{TaskConfig, read_lines};
use crate::error::{Error, Result};
use crate::experiment::{LoadedModel, Run};
use crate::models::Autoregressive;
use crate::notice;
use crate::report::alignment::{self, Gold};
use crate::report::attention::collect::{self, Written};
use crate::report::attention::measure::{HeadSummary, HeadSums, summarize};
use crate::report::attention::select::Selection;
use crate::report::attention::{AttentionMap, SentenceMaps, files, html, memory};
use crate::report::faithfulness::Attribution;
use std::path::{Path, PathBuf};

const ENDINGS: [&str; 5] = ["html", "svg", "png", "csv", "safetensors"];

pub(super) fn run(args: InspectAttentionArgs) -> Result<()> {
    // What cannot be written is said before the model works for minutes.
    let files = [&args.input, &args.target, &args.alignments];
    if let Some(out) = &args.out {
        output::check_unread(out, "--out", files.into_iter().flatten().map(PathBuf::as_path))?;
    }
    output::check([args.out.as_ref()])?;
    let ending = args.out.as_deref().map(|out| extension(out, &ENDINGS)).transpose()?;
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
    let loaded = load_any(&args.run, &args.place, args.checkpoint.as_deref())?;
    let (written, n_lines) = match loaded.config.model.reads_source() {
        true => written(&args, &loaded)?,
        false => text::written(&args, &loaded)?,
    };
    let gold = gold(&args, &loaded, &written, n_lines)?;
    let bar = progress::bar(written.len() as u64, "looking");
    let mut seen = Seen::default();
    for (written, gold) in written.iter().zip(&gold) {
        match collect::collect(&loaded.model, &loaded.tokenizers, written) {
            Ok(sentence) => seen.add(sentence, gold.as_ref(), &args),
            // A model without attention has no maps, but the effect of its source words can be measured.
            Err(_) if args.faithfulness && args.out.is_none() => {
                seen = Seen::default();
                break;
            }
            Err(error) => return Err(error),
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    let Seen { heads, memories, errors, weights, sentences } = seen;
    let report = tables::Report {
        sentences: written.len(),
        faithfulness: args.faithfulness.then(|| faithfulness::of(&loaded.model, &written, &weights)),
        errors: errors.rates(),
        aligned: gold.iter().filter(|gold| gold.is_some()).count(),
        heads: heads.finish(),
        memories: memories.finish(),
    };
    if let (Some(out), Some(ending)) = (&args.out, ending) {
        save(&args, &loaded, out, ending, &sentences, &report)?;
    }
    print(&if args.json { tables::json(&report) } else { tables::text(&report) })
}

/// What has been seen of one sentence after the other. The maps of all of them take a megabyte a line, and are kept where they are
/// written out.
#[derive(Default)]
struct Seen {
    heads: HeadSums,
    memories: memory::MemorySums,
    errors: tables::ErrorCounts,
    /// What attention says of source words, to be compared with the effect of erasing them.
    weights: Vec<Attribution>,
    sentences: Vec<SentenceMaps>,
}

impl Seen {
    fn add(&mut self, sentence: SentenceMaps, gold: Option<&Aligned>, args: &InspectAttentionArgs) {
        self.heads.add(&sentence);
        self.memories.add(&sentence);
        gold.into_iter().for_each(|gold| self.errors.add(&sentence, gold));
        if args.faithfulness {
            self.weights.extend(faithfulness::of_attention(&sentence));
        }
        if args.out.is_some() {
            self.sentences.push(sentence);
        }
    }
}

/// The sentence pairs to look at: given ones, or the model's own translations; and the number of all lines.
fn written(args: &InspectAttentionArgs, loaded: &LoadedModel) -> Result<(Vec<Written>, usize)> {
    let (sources, n_lines) = sources(args, loaded)?;
    let sources = with_tokens(args, sources, loaded.tokenizers.source())?;
    let limit = loaded.config.decoding.source_limit(loaded.model.limits().source);
    check_lengths(limit, sources.iter().map(|line| &line.ids), |i, message| {
        Error::line(args.origin(), sources[i].number, message)
    })?;
    if let Some(path) = &args.target {
        if loaded.config.model.has_masks() {
            let message = "--target has no effect here: a model of masked words answers for each token of the text";
            return Err(Error::message(message));
        }
        return Ok((given(args, loaded, &sources, path, n_lines)?, n_lines));
    }
    let config = search(&loaded.config.decoding, args.beam)?;
    let sources: Vec<(usize, String)> = sources.into_iter().map(|line| (line.number, line.text)).collect();
    let bar = progress::bar(sources.len() as u64, "translating");
    let seed = loaded.config.seed;
    let found =
        collect::write(&loaded.model, &loaded.tokenizers, &sources, &config, seed, |n| bar.set_position(n as u64));
    bar.finish_and_clear();
    Ok((found, n_lines))
}

/// The pairs of some lines of the input and the lines of a file that belong to them.
fn given(
    args: &InspectAttentionArgs,
    loaded: &LoadedModel,
    sources: &[Line],
    path: &Path,
    n_lines: usize,
) -> Result<Vec<Written>> {
    let targets = read_lines(path)?;
    check_n_lines(args, path, targets.len(), n_lines)?;
    let pairs: Vec<Written> = sources
        .iter()
        .map(|Line { number, text, .. }| Written::given(*number, text, &targets[number - 1], &loaded.tokenizers))
        .collect();
    let tokens: Vec<Vec<u32>> = pairs.iter().map(Written::words).collect();
    check_lengths(loaded.model.limits().target, &tokens, |i, message| Error::line(path, pairs[i].number, message))?;
    let fault = |(pair, tokens): (&Written, &Vec<u32>)| {
        Some((pair.number, answer_fault(&loaded.model, pair.source.len(), tokens.len())?))
    };
    match pairs.iter().zip(&tokens).find_map(fault) {
        Some((number, message)) => Err(Error::line(path, number, message)),
        None => Ok(pairs),
    }
}

/// Refuses a file that does not have a line for each of the input.
fn check_n_lines(args: &InspectAttentionArgs, path: &Path, n: usize, n_lines: usize) -> Result<()> {
    if n == n_lines {
        return Ok(());
    }
    Err(Error::file(path, format!("has {n} lines where {} has {n_lines}", args.origin().display())))
}

/// The right alignment of each pair, where it is known: from a file, or because the task says it.
fn gold(
    args: &InspectAttentionArgs,
    loaded: &LoadedModel,
    written: &[Written],
    n_lines: usize,
) -> Result<Vec<Option<Aligned>>> {
    let (source, target) = (loaded.tokenizers.source(), loaded.tokenizers.target());
    let words = |pair: &Written| {
        let target_text = pair.target_text(&loaded.tokenizers);
        (alignment::words_of_tokens(&pair.source_text, source), alignment::words_of_tokens(&target_text, target))
    };
    if let Some(path) = &args.alignments {
        let all = alignment::read(path)?;
        check_n_lines(args, path, all.len(), n_lines)?;
        let paired = written.iter().map(|pair| {
            let gold = &all[pair.number - 1];
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_aligned_straight_and_a_reversal_crosswise() {
        let task = |kind: &str| -> TaskConfig { toml::from_str(&format!("kind = \"{kind}\"")).unwrap() };
        let links = |kind: &str, target: &str| of_task(&task(kind), "a b c", target);
        assert_eq!(links("copy", "a b c"), Some(Gold::sure([(0, 0), (1, 1), (2, 2)])));
        assert_eq!(links("reverse", "c b a"), Some(Gold::sure([(2, 0), (1, 1), (0, 2)])));
        // A wrong answer has no alignment that is known.
        assert_eq!((links("copy", "a c b"), links("reverse", "a b c"), links("sort", "a b c")), (None, None, None));
    }
}
