//! What the reader of an explanation should know before the numbers.

use super::{Explanation, Given, Question};
use crate::data::Tokenizers;
use crate::data::tokenizer::{EOS, SPECIALS, Tokenizer, UNK};
use crate::report::columns::without_controls;
use std::collections::HashSet;

/// The notes of the explanation of a sentence; `has_end` says whether the model learns where its answer ends.
pub fn notes(tokenizers: &Tokenizers, question: &Question, has_end: bool, explanation: &Explanation) -> Vec<String> {
    let mut notes = Vec::new();
    let target = match question.target {
        Some(Given::Text(text)) => Some(text),
        // An unknown word that a model wrote is no word that it could not read.
        Some(Given::Tokens(_)) | None => None,
    };
    let sides = [("source", Some(question.source_text), tokenizers.source()), ("target", target, tokenizers.target())];
    for (side, text, tokenizer) in sides {
        notes.extend(text.and_then(|text| note_of_unknown(&unknown_words(tokenizer, text), side)));
    }
    if has_end && explanation.target.last().is_none_or(|token| token != SPECIALS[EOS as usize]) {
        notes.push("the translation was cut at the length cap; the model has not ended it".into());
    }
    notes
}

/// That the model cannot read some words of a side.
pub fn note_of_unknown(unknown: &[String], side: &str) -> Option<String> {
    let quoted = |word: &String| format!("\"{}\"", without_controls(word));
    let words = unknown.iter().map(quoted).collect::<Vec<_>>().join(", ");
    (!unknown.is_empty()).then(|| format!("the vocabulary lacks {words} of the {side}: the model sees <unk> there"))
}

/// The words of `text` that hold something the vocabulary has no token for.
pub fn unknown_words(tokenizer: &Tokenizer, text: &str) -> Vec<String> {
    let mut seen = HashSet::new();
    let each_once = text.split_whitespace().filter(|word| seen.insert(*word));
    each_once.filter(|word| tokenizer.encode(word).contains(&UNK)).map(str::to_owned).collect()
}
