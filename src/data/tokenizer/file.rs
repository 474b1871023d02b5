//! The file of trained tokenizers: one JSON object with a format version, the settings and one vocabulary a side.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::sentence_piece::SentencePieces;
use super::side::Side;
use super::{
    HIDDEN, Model, Scaling, Tokenizer, Tokenizers, TokenizersConfig, byte_level, character, subword, word, word_piece,
};

/// The version written; it grows when older programs could misread a file.
const FORMAT: u32 = 1;

/// What is saved of [`Tokenizers`].
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Saved {
    format: u32,
    pub(super) config: TokenizersConfig,
    source: Side,
    /// `None`: the source's serves both.
    target: Option<Side>,
    /// Whether the source has a token for hidden words.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    has_mask: bool,
}

impl Saved {
    pub(super) fn new(config: TokenizersConfig, source: Side, target: Option<Side>) -> Self {
        Self { format: FORMAT, config, source, target, has_mask: false }
    }

    pub(super) fn with_mask(self, has_mask: bool) -> Self {
        Self { has_mask, ..self }
    }

    /// The vocabularies of the source, and of the target if it has one of its own.
    pub(super) fn sides(&self) -> (&Side, Option<&Side>) {
        (&self.source, self.target.as_ref())
    }

    pub(super) fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("strings and finite numbers are always valid JSON") + "\n"
    }

    /// Reads the text of a file; the message of an error names no file.
    pub(super) fn from_json(text: &[u8]) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Version {
            format: u32,
        }
        let not_one = |e: serde_json::Error| format!("not a tokenizer file: {e}");
        let version: Version = serde_json::from_slice(text).map_err(not_one)?;
        if version.format != FORMAT {
            let got = version.format;
            return Err(format!(
                "tokenizer format {got}, but this program reads format {FORMAT}; use a matching version"
            ));
        }
        serde_json::from_slice(text).map_err(not_one)
    }

    pub(super) fn build(self) -> Result<Tokenizers, String> {
        let source = self
            .source
            .build(self.config.source().is_lowercase(), self.has_mask)
            .map_err(|e| format!("source: {e}"))?;
        let lowercase = self.config.target().is_lowercase();
        let target = self.target.as_ref().map(|side| side.build(lowercase, false)).transpose();
        Ok(Tokenizers { source, target: target.map_err(|e| format!("target: {e}"))?, saved: self })
    }
}

/// Far below every piece of a text.
const SCORE_OF_MASK: f64 = -1000.0;

impl Side {
    /// Adds the token of hidden words, with the space before it where tokens have theirs.
    pub(super) fn add_mask(&mut self) {
        match self {
            Self::Char { vocabulary } => vocabulary.push(HIDDEN),
            Self::Word { vocabulary, .. } | Self::WordPiece { vocabulary } => vocabulary.push(HIDDEN.into()),
            // Trained elsewhere, where no words were hidden.
            Self::SentencePiece { .. } => {}
            Self::Bpe { vocabulary, .. } => vocabulary.push(subword::mask()),
            Self::Unigram { pieces } => pieces.push((subword::mask(), SCORE_OF_MASK)),
            Self::ByteBpe { vocabulary, .. } => vocabulary.push(byte_level::mask()),
            Self::Numbers { .. } => {}
        }
    }

    fn build(&self, lowercase: bool, has_mask: bool) -> Result<Tokenizer, String> {
        let tokens = self.tokens();
        // Numbers have no vocabulary.
        if tokens.is_empty() && !matches!(self, Self::Numbers { .. }) {
            return Err("the vocabulary is empty".to_owned());
        }
        let mut seen = HashSet::new();
        if let Some(twice) = tokens.iter().find(|token| !seen.insert(*token)) {
            return Err(format!("`{twice}` stands in the vocabulary twice"));
        }
        let model: Box<dyn Model> = match self {
            Self::Char { vocabulary } => Box::new(character::Characters::new(vocabulary)),
            Self::Word { split_punctuation, vocabulary } => Box::new(word::Words::new(vocabulary, *split_punctuation)),
            Self::Bpe { vocabulary, merges } => Box::new(subword::Pieces::bpe(vocabulary, merges)?),
            Self::ByteBpe { vocabulary, merges, added } => Box::new(byte_level::Bytes::new(vocabulary, merges, added)?),
            Self::Unigram { pieces } => Box::new(subword::Pieces::unigram(pieces)?),
            Self::WordPiece { vocabulary } => Box::new(word_piece::WordPieces::new(vocabulary, lowercase)?),
            Self::SentencePiece { vocabulary, cutter } => Box::new(SentencePieces::new(vocabulary, cutter)?),
            Self::Numbers { mean, deviation } => Box::new(Scaling::new(mean, deviation)?),
        };
        // Word pieces turn letters to lower case in a way of their own.
        let lowercase = lowercase && !matches!(self, Self::WordPiece { .. });
        Ok(Tokenizer::new(tokens, lowercase, has_mask, model))
    }
}
