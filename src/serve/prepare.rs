//! From texts to sentences, and from their translations back to texts.

use super::catalogue::Entry;
use super::fault::Fault;
use super::fields::Texts;
use crate::data::tokenizer::{UNK, quoted};
use crate::decoding::{Hypothesis, Request, length_fault};
use serde_json::{Map, Value};

/// The lines of some texts as sentences.
pub(super) struct Prepared {
    /// The sentences of all texts, one for each line.
    pub(super) requests: Vec<Request>,
    /// The number of lines of each text.
    n_lines: Vec<usize>,
    /// What the caller should know.
    notes: Vec<String>,
}

/// Reads each line of each text as a sentence, as `lookback translate` does.
///
/// # Errors
/// If there are more lines than `max_lines`, or one has more tokens than the model takes.
pub(super) fn prepare(entry: &Entry, texts: &Texts, max_lines: usize) -> Result<Prepared, Fault> {
    let n_lines: Vec<usize> = texts.texts.iter().map(|text| text.split('\n').count()).collect();
    let total: usize = n_lines.iter().sum();
    if total > max_lines {
        let message = format!("q has {total} lines, and a request may have {max_lines}; send several requests");
        return Err(Fault::bad(message));
    }
    let tokenizer = entry.tokenizers.source();
    let limit = entry.decoding.source_limit(entry.limits.source);
    let mut prepared = Prepared { requests: Vec::with_capacity(total), n_lines, notes: Vec::new() };
    for (i, text) in texts.texts.iter().enumerate() {
        for (j, line) in text.split('\n').enumerate() {
            let place = || place(texts, i, j, prepared.n_lines[i]);
            let source = tokenizer.encode(line.trim());
            if let Some(fault) = length_fault(limit, source.len()) {
                return Err(Fault::bad(format!("{} {fault}", place())));
            }
            if source.contains(&UNK) {
                let unknown = quoted(&tokenizer.unknown(line.trim()));
                let note = format!("{}: the vocabulary lacks {unknown}; the model sees <unk> there", place());
                prepared.notes.push(note);
            }
            // Every sentence is drawn as the first of a file is, so that its translation depends on nothing else.
            prepared.requests.push(Request { source, prefix: Vec::new(), number: Some(0) });
        }
    }
    Ok(prepared)
}

impl Prepared {
    /// The answer to `/translate`.
    pub(super) fn answer(
        mut self,
        entry: &Entry,
        texts: &Texts,
        found: &[Vec<Hypothesis>],
        n_alternatives: Option<usize>,
    ) -> Value {
        let mut translated = Vec::new();
        let mut alternatives = Vec::new();
        let mut rest = found;
        for (i, n_lines) in self.n_lines.iter().enumerate() {
            let (lines, others) = rest.split_at(*n_lines);
            rest = others;
            translated.push(Value::String(written(entry, lines, 0)));
            let n_written = lines.iter().map(Vec::len).max().unwrap_or(0);
            alternatives.push((1..n_written).map(|rank| written(entry, lines, rank)).collect::<Value>());
            for (j, hypotheses) in lines.iter().enumerate() {
                if !hypotheses[0].is_complete {
                    let place = place(texts, i, j, *n_lines);
                    self.notes.push(format!("{place}: the translation was cut at the length cap"));
                }
            }
        }
        let mut answer = Map::new();
        answer.insert("translatedText".into(), texts.shape(translated));
        if n_alternatives.is_some_and(|n| n > 0) {
            answer.insert("alternatives".into(), texts.shape(alternatives));
        }
        if !self.notes.is_empty() {
            answer.insert("notes".into(), self.notes.into());
        }
        Value::Object(answer)
    }
}

/// Where line `j` of text `i` stands in the request.
fn place(texts: &Texts, i: usize, j: usize, n_lines: usize) -> String {
    let text = texts.place("q", i);
    if n_lines == 1 { text } else { format!("{text}, line {}", j + 1) }
}

/// The lines of a text by their hypotheses of a rank, or the last of lines that have fewer.
fn written(entry: &Entry, lines: &[Vec<Hypothesis>], rank: usize) -> String {
    let tokenizer = entry.tokenizers.target();
    let line = |hypotheses: &Vec<Hypothesis>| tokenizer.decode(&hypotheses[rank.min(hypotheses.len() - 1)].tokens);
    lines.iter().map(line).collect::<Vec<_>>().join("\n")
}
