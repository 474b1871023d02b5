//! What a vocabulary does not hold: counted, with the first examples.

use crate::data::{Tokenizer, UNK};
use crate::notice;
use std::collections::BTreeMap;

/// Examples that a warning names.
const N_EXAMPLES: usize = 5;

/// Letters of an example.
const N_LETTERS: usize = 40;

/// An example as a message shows it: not longer than a line, and without what would steer a terminal.
fn shown(part: &str) -> String {
    let text: String = part
        .chars()
        .take(N_LETTERS)
        .flat_map(|c| match c.is_control() {
            true => c.escape_default().collect::<Vec<_>>(),
            false => vec![c],
        })
        .collect();
    if part.chars().nth(N_LETTERS).is_some() { format!("{text}...") } else { text }
}

/// Unknown parts of a text.
#[derive(Debug, Default)]
pub(super) struct Unknown {
    n_tokens: usize,
    n_unknown: usize,
    n_lines: usize,
    /// Distinct parts in the order in which they came, each with its first line.
    examples: Vec<(String, usize)>,
    counts: BTreeMap<String, usize>,
}

impl Unknown {
    /// Counts the unknown parts of line `line`, counted from 1, whose `text` became `ids`; the parts, in order.
    pub(super) fn note(&mut self, line: usize, tokenizer: &Tokenizer, text: &str, ids: &[u32]) -> Vec<String> {
        self.n_tokens += ids.len();
        if !ids.contains(&UNK) {
            return Vec::new();
        }
        let parts = tokenizer.unknown(text);
        self.n_unknown += parts.len();
        self.n_lines += usize::from(!parts.is_empty());
        for part in &parts {
            let count = self.counts.entry(part.clone()).or_insert(0);
            *count += 1;
            if *count == 1 && self.examples.len() < N_EXAMPLES {
                self.examples.push((part.clone(), line));
            }
        }
        parts
    }

    /// A sentence about those of sources; nothing if there are none.
    pub(super) fn warning(&self) -> Option<String> {
        self.warning_of("source")
    }

    /// A sentence about them; nothing if there are none. `side` is what the text is of a pair.
    pub(super) fn warning_of(&self, side: &str) -> Option<String> {
        if self.n_unknown == 0 {
            return None;
        }
        let examples: Vec<String> =
            self.examples.iter().map(|(part, line)| format!("\"{}\" in line {line}", shown(part))).collect();
        let more = if self.counts.len() > self.examples.len() { ", ..." } else { "" };
        Some(format!(
            "{} of {} {side} tokens, in {} line{}, are not in the vocabulary and were read as <unk>: {}{more}",
            self.n_unknown,
            self.n_tokens,
            self.n_lines,
            if self.n_lines == 1 { "" } else { "s" },
            examples.join(", ")
        ))
    }
}

/// The ids of lines; warns of what the vocabulary does not hold. `side` is what the lines are of pairs.
pub(super) fn encode(lines: &[String], tokenizer: &Tokenizer, side: &str) -> Vec<Vec<u32>> {
    let mut unknown = Unknown::default();
    let encoded: Vec<Vec<u32>> = lines.iter().map(|line| tokenizer.encode(line.trim())).collect();
    for (i, (line, ids)) in lines.iter().zip(&encoded).enumerate() {
        unknown.note(i + 1, tokenizer, line.trim(), ids);
    }
    unknown.warning_of(side).into_iter().for_each(notice::warn);
    encoded
}
