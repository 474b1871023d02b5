//! What is kept of one trained vocabulary.

use super::sentence_piece::Cutter;
use serde::{Deserialize, Serialize};

/// The trained vocabulary of one side, in the order of ids, without the special tokens.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(super) enum Side {
    Char {
        vocabulary: Vec<char>,
    },
    Word {
        split_punctuation: bool,
        vocabulary: Vec<String>,
    },
    Bpe {
        vocabulary: Vec<String>,
        merges: Vec<(String, String)>,
    },
    Unigram {
        pieces: Vec<(String, f64)>,
    },
    /// `added` are tokens of the vocabulary that texts have whole.
    ByteBpe {
        vocabulary: Vec<String>,
        merges: Vec<(String, String)>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        added: Vec<String>,
    },
    WordPiece {
        vocabulary: Vec<String>,
    },
    SentencePiece {
        vocabulary: Vec<String>,
        cutter: Cutter,
    },
    Numbers {
        mean: Vec<f64>,
        deviation: Vec<f64>,
    },
}

impl Side {
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Char { vocabulary } => vocabulary.is_empty(),
            Self::Word { vocabulary, .. }
            | Self::Bpe { vocabulary, .. }
            | Self::ByteBpe { vocabulary, .. }
            | Self::WordPiece { vocabulary }
            | Self::SentencePiece { vocabulary, .. } => vocabulary.is_empty(),
            Self::Unigram { pieces } => pieces.is_empty(),
            Self::Numbers { mean, .. } => mean.is_empty(),
        }
    }

    pub(super) fn tokens(&self) -> Vec<String> {
        match self {
            Self::Char { vocabulary } => vocabulary.iter().map(char::to_string).collect(),
            Self::Word { vocabulary, .. }
            | Self::Bpe { vocabulary, .. }
            | Self::ByteBpe { vocabulary, .. }
            | Self::WordPiece { vocabulary }
            | Self::SentencePiece { vocabulary, .. } => vocabulary.clone(),
            Self::Unigram { pieces } => pieces.iter().map(|(piece, _)| piece.clone()).collect(),
            Self::Numbers { .. } => Vec::new(),
        }
    }
}
