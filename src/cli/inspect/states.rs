//! `lookback inspect states`.

use super::{extension, text as plain_text, write};
use crate::cli::place::PlaceArgs;
use crate::cli::{check_lengths, load_any, output, print};
use crate::data::read_lines;
use crate::data::text::line_ids;
use crate::data::tokenizer::{BOS, Tokenizer, UNK};
use crate::error::{Error, Result};
use crate::experiment::LoadedModel;
use crate::models::Autoregressive;
use crate::notice;
use crate::report::attention::files::quoted;
use crate::report::states::scatter::{Dot, scatter};
use crate::report::states::words::{Neighbour, WordVectors, cosine};
use crate::report::states::{
    Grouping, Labelled, Map, SentenceStates, VectorKind, collect, collect_texts, grouping, html, sentence_map,
    token_map,
};
use clap::Args;
use maud::{Markup, html};
use schemars::JsonSchema;
use serde::Serialize;
use std::path::{Path, PathBuf};

const ENDINGS: [&str; 4] = ["html", "svg", "png", "csv"];
/// Neighbours listed for each word.
const N_NEIGHBOURS: usize = 10;
/// Unknown words named in a warning.
const N_EXAMPLES: usize = 3;

#[derive(Serialize, JsonSchema)]
pub(in crate::cli) struct Word {
    word: String,
    tokens: usize,
    neighbours: Vec<Neighbour>,
    /// The cosine with every requested word.
    similarity: Vec<f64>,
}

#[derive(Serialize, JsonSchema)]
pub(in crate::cli) struct Report {
    sentences: usize,
    /// Words of the input, and those that hold something the vocabulary lacks.
    words_read: usize,
    unknown_words: usize,
    vectors: Option<VectorKind>,
    explained_sentences: Option<[f64; 2]>,
    explained_tokens: Option<[f64; 2]>,
    grouping: Option<Grouping>,
    words: Vec<Word>,
}

#[derive(Args, Debug)]
#[command(after_help = "A line of the input is a sentence, or label TAB sentence; labels colour the points. Of a
language model a line is a text, and the state of a token is what the next one is predicted
from.

Examples:
  lookback inspect states --run runs/meaning-rnn --input datasets/meaning/en.tsv --out states.html
  lookback inspect states --run runs/meaning-rnn --input lines.txt --tokens --out tokens.svg
  lookback inspect states --run runs/meaning-rnn --word dog --word cat")]
pub(in crate::cli) struct InspectStatesArgs {
    /// The run folder.
    #[arg(short, long)]
    run: PathBuf,
    /// Sentences, or label TAB sentence, one a line; - is standard input.
    #[arg(short, long, value_name = "FILE", required_unless_present = "words")]
    input: Option<PathBuf>,
    /// Where the picture goes: a page (.html), a picture (.svg, .png) or numbers (.csv).
    #[arg(short, long, value_name = "FILE", requires = "input")]
    out: Option<PathBuf>,
    /// Draw tokens instead of sentences in --out; a page has both.
    #[arg(long, requires = "out")]
    tokens: bool,
    /// List the words most alike to this one by their vectors; may be repeated, and then they are compared.
    #[arg(long = "word", value_name = "WORD")]
    words: Vec<String>,
    #[command(flatten)]
    place: PlaceArgs,
    /// The checkpoint to take [default: the best].
    #[arg(short, long, value_name = "NAME")]
    checkpoint: Option<String>,
    /// One JSON object instead of text.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: InspectStatesArgs) -> Result<()> {
    if let Some(out) = &args.out {
        output::check_unread(out, "--out", args.input.as_deref())?;
    }
    output::check([args.out.as_ref()])?;
    let ending = args.out.as_deref().map(|out| extension(out, &ENDINGS)).transpose()?;
    let loaded = load_any(&args.run, &args.place, args.checkpoint.as_deref())?;
    let words = words(&loaded, &args.words)?;
    let mut report = Report {
        sentences: 0,
        words_read: 0,
        unknown_words: 0,
        vectors: None,
        explained_sentences: None,
        explained_tokens: None,
        grouping: None,
        words,
    };
    if let Some(input) = &args.input {
        let sentences = sentences(input, &loaded)?;
        let known = Known::new(loaded.tokenizers.source(), &sentences);
        let warning = known.warning(input, &args.run);
        if let Some(warning) = &warning {
            notice::warn(warning);
        }
        (report.words_read, report.unknown_words) = (known.n_words, known.n_unknown);
        let (states, kind) = match loaded.config.model.reads_source() {
            true => collect(&loaded.model, &loaded.tokenizers, &sentences),
            false => collect_texts(&loaded.model, loaded.tokenizers.target(), &sentences),
        };
        let (by_sentence, by_token) = (sentence_map(&states), token_map(&states));
        report.sentences = states.len();
        report.vectors = Some(kind);
        report.explained_sentences = Some(by_sentence.explained);
        report.explained_tokens = Some(by_token.explained);
        report.grouping = grouping(&states);
        let map = if args.tokens { &by_token } else { &by_sentence };
        if let (Some(out), Some(ending)) = (&args.out, ending) {
            let bytes = match ending {
                "html" => {
                    let name = args.run.file_name().unwrap_or(args.run.as_os_str()).to_string_lossy();
                    let mut about = format!("The model {name}. A sentence is {}; a token its state.", kind.describe());
                    if let Some(warning) = &warning {
                        about += &format!(" Warning: {warning}.");
                    }
                    html::page(&about, &states, [&by_sentence, &by_token], report.grouping, &tables(&report))
                        .render()
                        .into_bytes()
                }
                "csv" => csv(&states, &[&by_sentence, &by_token]).into_bytes(),
                _ => {
                    let svg = picture(&states, map, kind, args.tokens);
                    super::picture(svg, ending)?
                }
            };
            write(out, &bytes)?;
        }
    }
    print(&if args.json { serde_json::to_string(&report).expect("plain data") + "\n" } else { text(&report) })
}

/// How many of the words of some sentences the vocabulary knows.
#[derive(Default)]
struct Known {
    n_words: usize,
    n_unknown: usize,
    /// The first unknown words, each once.
    examples: Vec<String>,
}

impl Known {
    /// Counts what stands between spaces; a word of which a part is unknown is unknown.
    fn new(tokenizer: &Tokenizer, sentences: &[Labelled]) -> Self {
        let mut known = Self::default();
        for word in sentences.iter().flat_map(|sentence| sentence.text.split_whitespace()) {
            known.n_words += 1;
            if tokenizer.encode(word).contains(&crate::data::UNK) {
                known.n_unknown += 1;
                if known.examples.len() < N_EXAMPLES && !known.examples.iter().any(|example| example == word) {
                    known.examples.push(word.to_owned());
                }
            }
        }
        known
    }

    /// What to say where more than half of the words are unknown.
    fn warning(&self, input: &Path, run: &Path) -> Option<String> {
        let examples = self.examples.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(", ");
        (2 * self.n_unknown > self.n_words).then(|| {
            format!(
                "{} of the {} words in {} are not in the vocabulary of {} ({examples}, ..); the model reads <unk> for each, so \
                 the map shows little but lengths; use a model that was trained on such sentences",
                self.n_unknown,
                self.n_words,
                input.display(),
                run.display()
            )
        })
    }
}

/// The sentences of a file; blank lines are left out.
fn sentences(input: &Path, loaded: &LoadedModel) -> Result<Vec<Labelled>> {
    let lines = read_lines(input)?;
    let parsed = lines.iter().enumerate().map(|(i, line)| Labelled::parse(i + 1, line));
    let sentences: Vec<Labelled> = parsed.filter(|sentence| !sentence.text.is_empty()).collect();
    if sentences.len() < 2 {
        let message = format!("has {} sentences; a picture needs two at least", sentences.len());
        return Err(Error::file(input, message));
    }
    if !loaded.config.model.reads_source() {
        let tokenizer = loaded.tokenizers.target();
        let lengths = sentences.iter().map(|line| (line.number, line_ids(&line.text, tokenizer).len()));
        plain_text::check_lengths(loaded, input, lengths)?;
        return Ok(sentences);
    }
    let ids: Vec<Vec<u32>> = sentences.iter().map(|s| loaded.tokenizers.source().encode(&s.text)).collect();
    let limit = loaded.config.decoding.source_limit(loaded.model.limits().source);
    check_lengths(limit, &ids, |i, message| Error::line(input, sentences[i].number, message))?;
    Ok(sentences)
}

fn words(loaded: &LoadedModel, words: &[String]) -> Result<Vec<Word>> {
    if words.is_empty() {
        return Ok(Vec::new());
    }
    let tokenizer = loaded.tokenizers.source();
    let vectors = WordVectors::of_source(&loaded.model)
        .ok_or_else(|| Error::message("this model has no table of word vectors"))?;
    // A word alone is no sentence: what word pieces put before one is not a part of it.
    let own_ids = |word: &String| tokenizer.encode(word).into_iter().filter(|id| *id != BOS).collect();
    let ids: Vec<Vec<u32>> = words.iter().map(own_ids).collect();
    if let Some(i) = ids.iter().position(|ids| ids.is_empty() || ids.contains(&UNK)) {
        let side = if loaded.config.model.reads_source() { "source " } else { "" };
        let message = format!("--word {:?} is not in the model's {side}vocabulary; try another spelling", words[i]);
        return Err(Error::message(message));
    }
    let listed = words.iter().zip(&ids).map(|(word, own)| Word {
        word: word.clone(),
        tokens: own.len(),
        neighbours: vectors.neighbours(own, N_NEIGHBOURS, tokenizer),
        similarity: ids.iter().map(|other| cosine(&vectors.of(own), &vectors.of(other))).collect(),
    });
    Ok(listed.collect())
}

/// The points as dots, coloured by label or, without labels, by length in four steps.
fn picture(states: &[SentenceStates], map: &Map, kind: VectorKind, is_tokens: bool) -> String {
    let mut groups: Vec<String> = Vec::new();
    let longest = states.iter().map(|state| state.tokens.len()).max().unwrap_or(1);
    let step = longest.div_ceil(4).max(1);
    let has_labels = states.iter().any(|state| state.sentence.label.is_some());
    let mut of_sentence = Vec::new();
    for state in states {
        let name = match &state.sentence.label {
            Some(label) => label.clone(),
            None if has_labels => "no label".into(),
            None => {
                let bucket = (state.tokens.len() - 1) / step;
                format!("{} to {} tokens", bucket * step + 1, (bucket + 1) * step)
            }
        };
        let place = groups.iter().position(|group| *group == name).unwrap_or_else(|| {
            groups.push(name);
            groups.len() - 1
        });
        of_sentence.push(place);
    }
    let dots: Vec<Dot> = map
        .points
        .iter()
        .map(|point| Dot {
            at: point.at,
            group: of_sentence[point.sentence],
            name: point.token.clone().unwrap_or_else(|| states[point.sentence].sentence.text.clone()),
            title: states[point.sentence].sentence.text.clone(),
        })
        .collect();
    let title = match is_tokens {
        true if kind == VectorKind::MeanOfStates => "Tokens by the last layer's states".to_string(),
        true => "Tokens by the encoder's states".to_string(),
        false => format!("Sentences by {}", kind.describe()),
    };
    scatter(&title, &dots, &groups, map.explained)
}

fn csv(states: &[SentenceStates], maps: &[&Map]) -> String {
    let mut text = String::from("kind,sentence,label,length,x,y,token,text\n");
    for point in maps.iter().flat_map(|map| &map.points) {
        let state = &states[point.sentence];
        let kind = if point.token.is_some() { "token" } else { "sentence" };
        text += &format!(
            "{kind},{},{},{},{},{},{},{}\n",
            state.sentence.number,
            quoted(state.sentence.label.as_deref().unwrap_or_default()),
            state.tokens.len(),
            point.at[0],
            point.at[1],
            quoted(point.token.as_deref().unwrap_or_default()),
            quoted(&state.sentence.text)
        );
    }
    text
}

fn text(report: &Report) -> String {
    let mut text = String::new();
    if let (Some(kind), Some(sentences), Some(tokens)) =
        (report.vectors, report.explained_sentences, report.explained_tokens)
    {
        let shares = |[x, y]: [f64; 2]| format!("{:.1} % + {:.1} %", 100.0 * x, 100.0 * y);
        text += &format!("{} sentences, each as {}\n", report.sentences, kind.describe());
        text += &format!("variance in the plane: sentences {}, tokens {}\n", shares(sentences), shares(tokens));
    }
    if let Some(g) = report.grouping {
        text += &format!(
            "cosine within a label {:.3}, between labels {:.3}\nthe nearest sentence has the same label: {:.1} % (by chance {:.1} %)\n",
            g.within,
            g.between,
            100.0 * g.nearest_is_same,
            100.0 * g.by_chance
        );
    }
    for word in &report.words {
        let near: Vec<String> = word.neighbours.iter().map(|n| format!("{} {:.2}", n.token, n.cosine)).collect();
        text += &format!("{}: {}\n", word.word, near.join("  "));
    }
    if report.words.len() > 1 {
        for word in &report.words {
            let row: String = word.similarity.iter().map(|cosine| format!("{cosine:>7.3}")).collect();
            text += &format!("{:<16}{row}\n", word.word);
        }
    }
    text
}

fn tables(report: &Report) -> Markup {
    html! {
        @if let Some(g) = report.grouping {
            p.about.muted {
                "Cosine of two sentences with one label: " (format!("{:.3}", g.within)) "; with different labels: "
                (format!("{:.3}", g.between)) ". The nearest sentence has the same label in "
                (format!("{:.1}", 100.0 * g.nearest_is_same)) " % of cases (by chance " (format!("{:.1}", 100.0 * g.by_chance))
                " %). The mean vector is taken off first; all dimensions count."
            }
        }
        @if !report.words.is_empty() {
            h2 { "Words most alike" }
            div.panel {
                table { @for word in &report.words { tr { th { (word.word) } td { (near(&word.neighbours)) } } } }
            }
        }
    }
}

fn near(neighbours: &[Neighbour]) -> Markup {
    html! {
        @for (i, near) in neighbours.iter().enumerate() {
            @if i > 0 { ", " }
            (near.token) " " span.muted { (format!("{:.2}", near.cosine)) }
        }
    }
}
