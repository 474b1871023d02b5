//! Pieces of SentencePiece: whole texts, spaces included, cut into the likeliest pieces.
//!
//! The kind is for models that were trained elsewhere, whose tokens have to be the same to the last one. `tokenizers` has the
//! search too; it adds in 64 bits, and where two ways to cut are equally likely (`......`) it is rounding that decides.

mod normalizer;

pub use normalizer::Normalizer;

use super::Model;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Stands for a space.
const SPACE: char = '▁';
/// How much less likely a character without a piece is than the least likely piece.
const UNKNOWN_PENALTY: f32 = 10.0;

/// What cuts texts: pieces with the logarithms of their probabilities, and what is done to the text before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cutter {
    /// Pieces and their log-probabilities.
    pub pieces: Vec<(String, f32)>,
    /// What is done to the text before.
    pub normalizer: Normalizer,
}

/// A vocabulary, and what cuts texts into its tokens.
#[derive(Debug)]
pub(super) struct SentencePieces {
    ids: HashMap<String, u32>,
    scores: HashMap<String, f32>,
    normalizer: Normalizer,
    /// The longest piece, in bytes.
    longest: usize,
    unknown_score: f32,
}

/// The best way to a place in the text.
#[derive(Clone, Copy, Default)]
struct Way {
    score: f32,
    /// Where its last piece begins.
    start: Option<usize>,
    is_known: bool,
}

impl SentencePieces {
    /// `vocabulary` has the tokens by id; a piece that is not among them is unknown.
    pub(super) fn new(vocabulary: &[String], cutter: &Cutter) -> Result<Self, String> {
        if let Some((piece, _)) = cutter.pieces.iter().find(|(piece, score)| piece.is_empty() || !score.is_finite()) {
            return Err(format!("the piece `{piece}` is empty or has no score"));
        }
        let lowest = cutter.pieces.iter().map(|(_, score)| *score).reduce(f32::min).ok_or("there are no pieces")?;
        Ok(Self {
            ids: vocabulary.iter().cloned().zip(0..).collect(),
            scores: cutter.pieces.iter().cloned().collect(),
            normalizer: cutter.normalizer.clone(),
            longest: cutter.pieces.iter().map(|(piece, _)| piece.len()).max().unwrap_or(0),
            unknown_score: lowest - UNKNOWN_PENALTY,
        })
    }

    /// A code such as `>>fra<<` that the text begins with, which names the language of the target, and the rest.
    fn language(text: &str) -> (Option<&str>, &str) {
        let end = text.starts_with(">>").then(|| text.find("<<")).flatten();
        end.map_or((None, text), |end| (Some(&text[..end + 2]), &text[end + 2..]))
    }

    /// The pieces of a text; several characters without a piece, one after the other, are one.
    ///
    /// Of two ways to a place that are equally likely the one is taken whose last piece is longer.
    fn pieces<'a>(&self, text: &'a str) -> Vec<&'a str> {
        let mut ways = vec![Way::default(); text.len() + 1];
        let mut reach = |start: usize, end: usize, score: f32, is_known: bool| {
            let score = ways[start].score + score;
            if ways[end].start.is_none() || score > ways[end].score {
                ways[end] = Way { score, start: Some(start), is_known };
            }
        };
        for (start, first) in text.char_indices() {
            let mut has_first = false;
            let most = text.len().min(start + self.longest);
            for end in (start + 1..=most).filter(|end| text.is_char_boundary(*end)) {
                if let Some(score) = self.scores.get(&text[start..end]) {
                    reach(start, end, *score, true);
                    has_first |= end == start + first.len_utf8();
                }
            }
            if !has_first {
                reach(start, start + first.len_utf8(), self.unknown_score, false);
            }
        }
        let mut pieces: Vec<&str> = Vec::new();
        let (mut end, mut after_known) = (text.len(), true);
        let mut last = end;
        while let Way { start: Some(start), is_known, .. } = ways[end] {
            if is_known || after_known {
                last = end;
            } else {
                pieces.pop();
            }
            pieces.push(&text[start..last]);
            (end, after_known) = (start, is_known);
        }
        pieces.reverse();
        pieces
    }

    /// The pieces of a text as it is written, with a language code before them.
    fn cut<T>(&self, text: &str, mut each: impl FnMut(&str, Option<u32>) -> T) -> Vec<T> {
        let (code, rest) = Self::language(text);
        let normalized = self.normalizer.normalized(rest);
        let pieces = code.into_iter().chain(self.pieces(&normalized));
        pieces.map(|piece| each(piece, self.ids.get(piece).copied())).collect()
    }
}

impl Model for SentencePieces {
    fn encode(&self, text: &str) -> Vec<Option<u32>> {
        self.cut(text, |_, id| id)
    }

    fn unknown(&self, text: &str) -> Vec<String> {
        let unknown = self.cut(text, |piece, id| id.is_none().then(|| piece.trim_matches(SPACE).to_owned()));
        unknown.into_iter().flatten().collect()
    }

    fn join(&self, tokens: &[&str]) -> String {
        tokens.concat().replace(SPACE, " ").trim().to_owned()
    }

    fn label(&self, token: &str) -> String {
        token.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(pieces: &[(&str, f32)]) -> SentencePieces {
        let vocabulary: Vec<String> = pieces.iter().map(|(piece, _)| (*piece).to_owned()).collect();
        let pieces = pieces.iter().map(|(piece, score)| ((*piece).to_owned(), *score)).collect();
        let normalizer = Normalizer::new(&[], true, true).unwrap();
        SentencePieces::new(&vocabulary, &Cutter { pieces, normalizer }).unwrap()
    }

    #[test]
    fn the_likeliest_pieces_are_taken() {
        let model = made(&[("▁a", -1.0), ("b", -1.0), ("▁ab", -1.5), ("c", -1.0), ("bc", -3.0)]);
        assert_eq!(model.encode("  abc   ab "), [Some(2), Some(3), Some(2)]);
        assert_eq!(model.encode("   "), []);
        // Characters without a piece are one piece while they follow each other.
        assert_eq!(model.encode("axyb"), [Some(0), None, Some(1)]);
        assert_eq!(model.unknown("axyb z"), ["xy", "z"]);
        assert_eq!(model.join(&["▁ab", "c", "▁a"]), "abc a");
    }

    #[test]
    fn a_code_of_a_language_is_one_token() {
        let model = made(&[(">>fra<<", -1.0), ("▁a", -1.0)]);
        assert_eq!(model.encode(">>fra<< a"), [Some(0), Some(1)]);
        assert_eq!(model.encode(">>deu<< a"), [None, Some(1)]);
        assert_eq!(model.unknown(">>deu<< a"), [">>deu<<"]);
    }

    #[test]
    fn damaged_tables_are_refused() {
        assert!(Normalizer::new(&[9, 0], true, true).is_err());
        assert!(Normalizer::new(&[200, 0, 0, 0, 1, 2], true, true).is_err());
        assert!(Normalizer::new(&[3, 0, 0, 0, 1, 2, 3, 4], true, true).is_err());
    }
}
