//! Answers to `/attention`: what a model writes, where it looked, and what it would have written instead.

use super::catalogue::Entry;
use super::fault::Fault;
use super::fields::Fields;
use super::models::Models;
use crate::data::text::{continuation_ids, prompt_ids, text_of};
use crate::data::tokenizer::{BOS, EOS, PAD, Tokenizer, UNK};
use crate::decoding::{Continuation, Request, decode};
use crate::models::Model;
use crate::report::attention::AttentionMap;
use crate::report::attention::ablation::{Head, without};
use crate::report::attention::collect::{Written, read};
use crate::report::explanation::{note_of_unknown, unknown_words};
use serde_json::{Value, json};

/// Words that might have come at each step.
const N_CANDIDATES: usize = 5;

/// Tokens that a language model writes by default.
const MAX_TOKENS: usize = 50;

/// A sentence, or the beginning of a text, and what is to be different.
pub(super) struct Asked {
    /// The tokens that are read, without an end symbol; some may be blanked.
    source: Vec<u32>,
    /// Which are blanked, counted from 1.
    blank: Vec<usize>,
    /// The target, if all of it is given.
    target: Option<Vec<u32>>,
    /// Tokens that the target begins with.
    prefix: Vec<u32>,
    /// Heads that are switched off.
    heads: Vec<Head>,
    /// Tokens that a language model writes at most.
    max_tokens: usize,
    notes: Vec<String>,
}

impl Asked {
    /// Reads a request.
    ///
    /// # Errors
    /// If a field is missing or has no such value, or a text has more tokens than the model takes.
    pub(super) fn read(fields: &Fields, entry: &Entry, max_tokens: usize) -> Result<Self, Fault> {
        let text = fields.text("q")?.ok_or_else(|| Fault::bad("q is missing; give a sentence"))?;
        let translation = fields.text("translation")?;
        let asked = Self {
            source: source_ids(entry, text),
            blank: fields.counts("blank")?,
            target: translation.map(|translation| target_ids(entry, text, translation)),
            prefix: ids(fields, "prefix")?,
            heads: heads(fields, entry)?,
            max_tokens: fields.count("max_tokens")?.unwrap_or(MAX_TOKENS).min(max_tokens),
            notes: Vec::new(),
        };
        asked.check(entry)?;
        let sides =
            [("q", Some(text), source_tokenizer(entry)), ("translation", translation, entry.tokenizers.target())];
        let note = |(field, text, tokenizer): (&str, Option<&str>, &Tokenizer)| {
            note_of_unknown(&unknown_words(tokenizer, text?), field)
        };
        let notes = sides.into_iter().filter_map(note).collect();
        Ok(Self { notes, ..asked }.blanked())
    }

    fn check(&self, entry: &Entry) -> Result<(), Fault> {
        if self.source.is_empty() {
            return Err(Fault::bad("q is empty; give a sentence"));
        }
        let n_source = self.source.len();
        if let Some(place) = self.blank.iter().find(|place| !(1..=n_source).contains(*place)) {
            return Err(Fault::bad(format!("blank has {place}; q has the tokens 1 to {n_source}")));
        }
        if self.target.is_some() && !self.prefix.is_empty() {
            return Err(Fault::bad("translation and prefix are both given; a whole translation needs no beginning"));
        }
        check_ids(entry, "prefix", &self.prefix)?;
        let given = self.target.as_ref().unwrap_or(&self.prefix);
        let field = if self.target.is_some() { "translation" } else { "prefix" };
        if !entry.is_text {
            let n_words = given.len() - usize::from(given.last() == Some(&EOS));
            entry.check_lengths(("q", n_source), (field, n_words))?;
            // What is yet to be written is about as long as the source.
            return entry.check_maps(n_source, if self.target.is_some() { n_words } else { n_words.max(n_source) });
        }
        if self.target.as_ref().is_some_and(Vec::is_empty) {
            return Err(Fault::bad("translation is empty; for a language model it is how the text goes on"));
        }
        if given.is_empty() && self.max_tokens == 0 {
            return Err(Fault::bad("max_tokens is 0; give at least 1"));
        }
        let n_read = n_source + given.len();
        if let Some(most) = entry.in_sight().filter(|most| n_read > *most) {
            return Err(Fault::bad(format!(
                "q and what follows have {n_read} tokens, and this model has {most} in sight; give a shorter text"
            )));
        }
        entry.check_text_length("q and what follows", n_read)?;
        let n_more = if self.target.is_some() { 0 } else { self.max_tokens };
        entry.check_maps(0, n_read + n_more)
    }

    fn blanked(mut self) -> Self {
        for place in &self.blank {
            self.source[place - 1] = UNK;
        }
        self
    }

    /// The answer.
    pub(super) fn answer(mut self, entry: &Entry, models: &Models) -> String {
        let model = without(models.model.clone(), &self.heads, entry.n_heads);
        let (target, is_complete) = self.write(&model, entry);
        if !is_complete && !entry.is_text {
            self.notes.push("the translation was cut at the length cap".into());
        }
        let text = match entry.is_text {
            true => text_of(&target, entry.tokenizers.target()),
            false => entry.tokenizers.target().decode(&target),
        };
        let written = self.written(entry, &target);
        let mut reading = read(&model, &entry.tokenizers, &written);
        let label = |id: &u32| entry.tokenizers.target().label(*id);
        // For a text, the answer begins after the given tokens.
        let first = if entry.is_text { self.source.len() - 1 } else { 0 };
        let n_given = if self.target.is_some() { target.len() } else { self.prefix.len() };
        let steps = reading.maps.target.len() - first;
        let token = |i: usize| {
            let candidate =
                |(id, probability): (u32, f32)| json!({ "token": label(&id), "id": id, "probability": probability });
            json!({
                "token": label(&target[i]),
                "id": target[i],
                "probability": reading.maps.probabilities[first + i],
                "given": i < n_given,
                "candidates": reading.candidates(first + i, N_CANDIDATES).into_iter().map(candidate).collect::<Value>(),
            })
        };
        let tokens: Value = (0..steps).map(token).collect();
        let source = if entry.is_text {
            self.source.iter().map(label).collect()
        } else {
            std::mem::take(&mut reading.maps.source)
        };
        let answer = json!({
            "model": entry.name,
            "is_text": entry.is_text,
            "source": source,
            "blank": self.blank,
            "without": self.heads.iter().map(Head::to_string).collect::<Vec<_>>(),
            "target": tokens,
            "text": text,
            "is_complete": is_complete,
            "maps": reading.maps.maps.iter().map(map).collect::<Value>(),
            "notes": self.notes,
        });
        answer.to_string()
    }

    /// The tokens of the target, with the end symbol unless the model was cut short, and whether it has an end.
    fn write(&self, model: &Model, entry: &Entry) -> (Vec<u32>, bool) {
        let given = self.target.as_ref().unwrap_or(&self.prefix);
        if entry.is_text {
            let mut target = given.clone();
            if self.target.is_none() {
                let text = [&self.source[..], &self.prefix].concat();
                let words = Continuation::new(model, &text, entry.in_sight(), None, entry.seed);
                target.extend(words.line(entry.tokenizers.target(), self.max_tokens));
            }
            return (target, true);
        }
        if self.target.is_some() || given.last() == Some(&EOS) {
            return (given.clone(), true);
        }
        let request = Request { source: self.source.clone(), prefix: self.prefix.clone(), number: Some(0) };
        let best = decode(model, &[request], &entry.searching(), entry.seed, |_| ()).swap_remove(0).swap_remove(0);
        let mut target = best.tokens;
        // A target that was cut before its first word is shown its end all the same.
        if best.is_complete || target.is_empty() {
            target.push(EOS);
        }
        (target, best.is_complete)
    }

    fn written(&self, entry: &Entry, target: &[u32]) -> Written {
        if !entry.is_text {
            return Written { source: self.source.clone(), target: target.to_vec(), ..Written::default() };
        }
        let (first, rest) = self.source.split_first().expect("a beginning has a token");
        Written { first: Some(*first), target: [rest, target].concat(), ..Written::default() }
    }
}

/// The token ids in a field.
///
/// # Errors
/// If it has anything but whole numbers.
pub(super) fn ids(fields: &Fields, field: &str) -> Result<Vec<u32>, Fault> {
    Ok(fields.counts(field)?.into_iter().map(|id| u32::try_from(id).unwrap_or(u32::MAX)).collect())
}

/// Refuses ids that no target has where they stand; those of a translation end with its end symbol, if they have one.
pub(super) fn check_ids(entry: &Entry, field: &str, ids: &[u32]) -> Result<(), Fault> {
    let n_tokens = entry.tokenizers.target().vocab_size();
    let fits = |place: usize| {
        let id = ids[place];
        let is_end = id == EOS && !entry.is_text && place + 1 < ids.len();
        (id as usize) < n_tokens && id != PAD && id != BOS && !is_end
    };
    match (0..ids.len()).find(|place| !fits(*place)) {
        Some(place) => Err(Fault::bad(format!(
            "{field}[{place}] is {}, which cannot stand there; /tokenize with side = target gives the ids of words",
            ids[place]
        ))),
        None => Ok(()),
    }
}

/// The heads that a request switches off.
///
/// # Errors
/// If the model has no such head.
pub(super) fn heads(fields: &Fields, entry: &Entry) -> Result<Vec<Head>, Fault> {
    let read = |name: String| {
        let head: Head = name.parse().map_err(|fault| Fault::bad(format!("without: {fault}")))?;
        match entry.heads.contains(&head) {
            true => Ok(head),
            false if entry.heads.is_empty() => Err(Fault::bad(format!("without: {} has no heads", entry.name))),
            false => Err(Fault::bad(format!("without: {} has no head {head}; /info lists its heads", entry.name))),
        }
    };
    fields.strings("without")?.into_iter().map(read).collect()
}

fn source_tokenizer(entry: &Entry) -> &Tokenizer {
    if entry.is_text { entry.tokenizers.target() } else { entry.tokenizers.source() }
}

fn source_ids(entry: &Entry, text: &str) -> Vec<u32> {
    match entry.is_text {
        true => prompt_ids(text, entry.tokenizers.target()),
        false => entry.tokenizers.source().encode(text.trim()),
    }
}

/// The tokens of a given target, or of the continuation of a text.
fn target_ids(entry: &Entry, text: &str, target: &str) -> Vec<u32> {
    let tokenizer = entry.tokenizers.target();
    match entry.is_text {
        true => continuation_ids(text, target, tokenizer),
        false => tokenizer.encode(target.trim()).into_iter().chain([EOS]).collect(),
    }
}

fn map(map: &AttentionMap) -> Value {
    json!({
        "part": map.part,
        "layer": map.layer,
        "head": map.head,
        "n_rows": map.n_rows,
        "n_columns": map.n_columns,
        "weights": map.weights.iter().map(|weight| short(*weight)).collect::<Vec<_>>(),
    })
}

/// Five decimals: a page shows two, and a map of long sentences has many numbers.
fn short(value: f32) -> f64 {
    (f64::from(value) * 1e5).round() / 1e5
}
