//! The settings of tokenizers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::SPECIALS;
use crate::error::{Error, Result};

/// A tokenizer and its settings, told apart by `kind`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum TokenizerConfig {
    /// Every character is a token, spaces included.
    Char(CharConfig),
    /// Every word is a token; punctuation may be split off and is joined again when decoding.
    Word(WordConfig),
    /// Byte-pair encoding: frequent pieces of words, built by merging pairs (Sennrich et al. 2016).
    Bpe(SubwordConfig),
    /// Unigram pieces: the vocabulary that makes the text most likely (Kudo 2018).
    Unigram(SubwordConfig),
}

impl Default for TokenizerConfig {
    fn default() -> Self {
        Self::Word(WordConfig::default())
    }
}

impl TokenizerConfig {
    /// Whether one vocabulary serves source and target.
    pub fn is_shared(&self) -> bool {
        match self {
            Self::Char(c) => c.shared,
            Self::Word(c) => c.shared,
            Self::Bpe(c) | Self::Unigram(c) => c.shared,
        }
    }

    /// Whether text is turned to lower case first.
    pub fn is_lowercase(&self) -> bool {
        match self {
            Self::Char(c) => c.lowercase,
            Self::Word(c) => c.lowercase,
            Self::Bpe(c) | Self::Unigram(c) => c.lowercase,
        }
    }

    /// Checks every field that can be checked without the data.
    ///
    /// # Errors
    ///
    /// Names the field, its value and the rule.
    pub fn validate(&self) -> Result<()> {
        let least = SPECIALS.len() + 1;
        match self {
            Self::Word(WordConfig { max_size: Some(size), .. }) if *size < least => Err(Error::config(
                "tokenizer.max_size",
                format!("must be at least {least} ({} special tokens and one word), got {size}", SPECIALS.len()),
            )),
            Self::Bpe(c) | Self::Unigram(c) if !(least..=MAX_VOCAB_SIZE).contains(&c.vocab_size) => Err(Error::config(
                "tokenizer.vocab_size",
                format!("must lie in {least}..={MAX_VOCAB_SIZE}, got {}", c.vocab_size),
            )),
            _ => Ok(()),
        }
    }
}

/// The largest subword vocabulary that may be asked for, in tokens.
const MAX_VOCAB_SIZE: usize = 1_000_000;

/// Settings of the character tokenizer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CharConfig {
    /// One vocabulary for source and target instead of one each.
    pub shared: bool,
    /// Turn all text to lower case first, also in what is translated later.
    pub lowercase: bool,
}

/// Settings of the word tokenizer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WordConfig {
    /// Fewest occurrences in the training text for a word to get into the vocabulary; rarer ones become `<unk>`.
    pub min_count: u64,
    /// Largest vocabulary in tokens, special ones included; the most frequent words stay. Without it, all stay.
    pub max_size: Option<usize>,
    /// Split punctuation off words (`dog.` is two tokens; letters, digits and `_` stay together). Decoding puts it back
    /// where it was. Off, a token is whatever stands between spaces.
    pub split_punctuation: bool,
    /// One vocabulary for source and target instead of one each.
    pub shared: bool,
    /// Turn all text to lower case first, also in what is translated later.
    pub lowercase: bool,
}

impl Default for WordConfig {
    fn default() -> Self {
        Self { min_count: 1, max_size: None, split_punctuation: true, shared: false, lowercase: false }
    }
}

/// Settings of the subword tokenizers, byte-pair encoding and unigram.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SubwordConfig {
    /// Vocabulary to aim for, in tokens, special ones included. Small corpora may give fewer.
    pub vocab_size: usize,
    /// One vocabulary for source and target instead of one each.
    pub shared: bool,
    /// Turn all text to lower case first, also in what is translated later.
    pub lowercase: bool,
}

impl Default for SubwordConfig {
    fn default() -> Self {
        Self { vocab_size: 8000, shared: false, lowercase: false }
    }
}
