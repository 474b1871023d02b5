//! The runs that are served, and the pair of languages that chooses one.

use super::fault::Fault;
use crate::data::Tokenizers;
use crate::decoding::{DecodingConfig, length_fault};
use crate::error::{Error, Result};
use crate::models::{LengthLimits, ModelConfig};
use crate::report::attention::ablation::Head;
use serde_json::{Value, json};

/// The source language that leaves the choice to the server.
const AUTO: &str = "auto";

/// The most weights of attention that are collected for an answer, which has 32 bytes for each until it is sent.
const MOST_WEIGHTS: u64 = 50_000_000;
/// The most probabilities of words that are made for one text: a gigabyte, twice.
const MOST_PROBABILITIES: usize = 1 << 28;
/// Probabilities that take as much memory as a weight: they are kept as numbers of 32 bits, and few of them are sent.
const PROBABILITIES_OF_A_WEIGHT: u64 = 8;
/// Maps are counted as at least so many, since recurrences and memories have maps without heads.
const FEWEST_MAPS: usize = 16;

/// A source and a target language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The code of the source language.
    pub source: String,
    /// The code of the target language.
    pub target: String,
}

impl Pair {
    /// Reads `SOURCE-TARGET`, or `SOURCE:TARGET` where a code has a hyphen.
    ///
    /// # Errors
    /// If it is not two codes.
    pub fn parse(text: &str) -> Result<Self> {
        let codes: Vec<&str> = text.split(if text.contains(':') { ':' } else { '-' }).collect();
        match codes[..] {
            [source, target] if !source.is_empty() && !target.is_empty() => {
                Ok(Self { source: source.to_string(), target: target.to_string() })
            }
            _ => Err(Error::message(format!(
                "--languages {text}: give two codes as de-en, or as zh-Hans:en where a code has a hyphen"
            ))),
        }
    }
}

/// What is known of a run without its model.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    /// Its languages; those of a language model are its name.
    pub(super) pair: Pair,
    /// Whether this is a language model.
    pub(super) is_text: bool,
    /// Tokens that a language model has in sight, if there is an end to them.
    pub(super) context: Option<usize>,
    /// The heads that can be switched off.
    pub(super) heads: Vec<Head>,
    /// Heads of each attention.
    pub(super) n_heads: usize,
    pub(super) tokenizers: Tokenizers,
    pub(super) config: ModelConfig,
    pub(super) limits: LengthLimits,
    pub(super) decoding: DecodingConfig,
    pub(super) seed: u64,
    /// What `/info` says of it.
    pub(super) info: Value,
}

impl Entry {
    /// Tokens that a language model can have read at once, if there is a limit.
    pub(super) fn in_sight(&self) -> Option<usize> {
        let limit = self.limits.target.map(|limit| limit.len);
        [self.context, limit].into_iter().flatten().min()
    }

    /// Refuses a source or a target of more tokens than the model takes; each with the field that it came in. Where the model has no
    /// limit for targets, that of sources holds for them too: a given target is read whole.
    pub(super) fn check_lengths(&self, source: (&str, usize), target: (&str, usize)) -> Result<(), Fault> {
        let limits = [self.limits.source, self.limits.target].map(|limit| self.decoding.source_limit(limit));
        let faults = [source, target].into_iter().zip(limits);
        match faults.into_iter().find_map(|((field, n), limit)| Some((field, length_fault(limit, n)?))) {
            Some((field, fault)) => Err(Fault::bad(format!("{field} {fault}"))),
            None => Ok(()),
        }
    }

    /// Refuses a text that would be read whole and has more tokens than a source may have; `what` it is. A model that has only so much
    /// in sight has a limit of its own.
    pub(super) fn check_text_length(&self, what: &str, n: usize) -> Result<(), Fault> {
        let limit = self.decoding.source_limit(None).filter(|_| self.in_sight().is_none());
        length_fault(limit, n).map_or(Ok(()), |fault| Err(Fault::bad(format!("{what} {fault}"))))
    }

    /// Refuses a target, or a text, whose probabilities of all words would take too much memory; `what` it is.
    pub(super) fn check_probabilities(&self, what: &str, n: usize) -> Result<(), Fault> {
        let most = MOST_PROBABILITIES / self.tokenizers.target().vocab_size().max(1);
        if n <= most {
            return Ok(());
        }
        Err(Fault::bad(format!(
            "{what} has {n} tokens, and with this vocabulary at most {most} are scored; give a shorter one"
        )))
    }

    /// Refuses texts of which there would be too much to see: a weight for every two tokens and each head, and a probability for every
    /// target token and word of the vocabulary.
    pub(super) fn check_maps(&self, n_source: usize, n_target: usize) -> Result<(), Fault> {
        let n = (n_source + n_target + 1) as u64;
        let n_maps = self.heads.len().max(FEWEST_MAPS) as u64;
        let probabilities = n_target as u64 * self.tokenizers.target().vocab_size() as u64 / PROBABILITIES_OF_A_WEIGHT;
        let weights = n_maps.saturating_mul(n.saturating_mul(n)).saturating_add(probabilities);
        if weights <= MOST_WEIGHTS {
            return Ok(());
        }
        let longest = (MOST_WEIGHTS / n_maps).isqrt();
        Err(Fault::bad(format!(
            "there would be {weights} weights of attention to see of {n} tokens, and an answer may have {MOST_WEIGHTS}: give at most \
             {longest} tokens, those of the target included"
        )))
    }

    /// How a translation that is looked at is searched for, also where a run samples, so that it is the same each time.
    pub(super) fn searching(&self) -> DecodingConfig {
        DecodingConfig { n_best: 1, sampling: None, ..self.decoding.clone() }
    }
}

/// What a request needs a run for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// To translate.
    Translation,
    /// To go on with a text.
    Text,
    /// For what both can do.
    Any,
}

impl Use {
    fn fits(self, entry: &Entry) -> bool {
        match self {
            Self::Translation => !entry.is_text,
            Self::Text => entry.is_text,
            Self::Any => true,
        }
    }
}

/// The run that a request selects: its name, or languages.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wish<'a> {
    pub(super) model: Option<&'a str>,
    pub(super) source: Option<&'a str>,
    pub(super) target: Option<&'a str>,
}

/// All runs.
#[derive(Debug)]
pub(super) struct Catalogue(pub(super) Vec<Entry>);

impl Catalogue {
    /// The run of a name, or for a pair of languages: what is missing, and the source `auto`, fits every run. Of several for one pair
    /// the first is taken.
    pub(super) fn choose(&self, wish: Wish, need: Use) -> Result<usize, Fault> {
        if let Some(name) = wish.model.filter(|name| !name.is_empty()) {
            return self.named(name, need);
        }
        let source = wish.source.filter(|source| !source.is_empty() && *source != AUTO);
        let target = wish.target.filter(|target| !target.is_empty());
        let fits = |entry: &Entry| {
            need.fits(entry)
                && source.is_none_or(|code| code == entry.pair.source)
                && target.is_none_or(|code| code == entry.pair.target)
        };
        let found: Vec<usize> = (0..self.0.len()).filter(|i| fits(&self.0[*i])).collect();
        let is_one_pair = found.iter().all(|i| self.0[*i].pair == self.0[found[0]].pair);
        match found[..] {
            [run, ..] if is_one_pair => Ok(run),
            [] if need == Use::Text => {
                Err(Fault::bad("no language model is served here; POST /translate is for those that translate"))
            }
            [] if !self.0.iter().any(|entry| need.fits(entry)) => {
                Err(Fault::bad("no model that translates is served here; POST /v1/completions is for language models"))
            }
            [] => {
                let any = |code: Option<&str>| code.unwrap_or("any language").to_string();
                let message = format!("no model from {} to {}; there is {}", any(source), any(target), self.pairs());
                Err(Fault::bad(message))
            }
            _ if need == Use::Translation => {
                let (pairs, names) = (self.pairs(), self.names(need));
                Err(Fault::bad(format!("several models fit; give source and target ({pairs}), or model ({names})")))
            }
            _ => Err(Fault::bad(format!("several models fit; give model: there is {}", self.names(need)))),
        }
    }

    fn named(&self, name: &str, need: Use) -> Result<usize, Fault> {
        let run = self.0.iter().position(|entry| entry.name == name);
        let run = run.ok_or_else(|| Fault::unknown_model(format!("no model {name}; there is {}", self.names(need))))?;
        match (need.fits(&self.0[run]), need) {
            (true, _) => Ok(run),
            (false, Use::Text) => Err(Fault::bad(format!("{name} is no language model; POST /translate is for it"))),
            (false, _) => Err(Fault::bad(format!("{name} does not translate; POST /v1/completions is for it"))),
        }
    }

    fn names(&self, need: Use) -> String {
        let names: Vec<&str> =
            self.0.iter().filter(|entry| need.fits(entry)).map(|entry| entry.name.as_str()).collect();
        names.join(", ")
    }

    /// Those that translate.
    fn translators(&self) -> impl Iterator<Item = &Entry> {
        self.0.iter().filter(|entry| !entry.is_text)
    }

    fn pairs(&self) -> String {
        let pairs = self.translators().map(|entry| format!("{} to {}", entry.pair.source, entry.pair.target));
        distinct(pairs).join(", ")
    }

    /// The answer to `/languages`: each source language with its targets.
    pub(super) fn languages(&self) -> Value {
        let language = |source: &str| {
            let pairs = self.translators().map(|entry| &entry.pair).filter(|pair| pair.source == source);
            json!({ "code": source, "name": source, "targets": distinct(pairs.map(|pair| &pair.target)) })
        };
        distinct(self.translators().map(|entry| entry.pair.source.as_str())).into_iter().map(language).collect()
    }
}

/// Each item once, in the order in which they come first.
fn distinct<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for item in items {
        if !found.contains(&item) {
            found.push(item);
        }
    }
    found
}
