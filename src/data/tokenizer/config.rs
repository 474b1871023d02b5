//! The settings of tokenizers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::SPECIALS;
use crate::error::{Error, Result};

/// `[tokenizer]`: one kind of tokenizer for source and target, or one for each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum TokenizersConfig {
    /// The same settings on both sides; each side has a vocabulary of its own unless `shared` says otherwise.
    Same(TokenizerConfig),
    /// Settings for each side, as for letters on one and phones on the other.
    Each(SidesConfig),
}

/// `[tokenizer.source]` and `[tokenizer.target]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SidesConfig {
    /// How source text becomes tokens.
    pub source: TokenizerConfig,
    /// How target text becomes tokens.
    pub target: TokenizerConfig,
}

impl Default for TokenizersConfig {
    fn default() -> Self {
        Self::Same(TokenizerConfig::default())
    }
}

impl From<&TokenizerConfig> for TokenizersConfig {
    fn from(config: &TokenizerConfig) -> Self {
        Self::Same(config.clone())
    }
}

impl From<&TokenizersConfig> for TokenizersConfig {
    fn from(config: &TokenizersConfig) -> Self {
        config.clone()
    }
}

impl<'de> Deserialize<'de> for TokenizersConfig {
    /// Which of the two forms is meant shows in the keys, so that an error is about that form and not about both.
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        use serde::de::Error as _;
        let fields = serde_json::Map::deserialize(deserializer)?;
        let is_each = fields.contains_key("source") || fields.contains_key("target");
        let fields = serde_json::Value::Object(fields);
        let read = if is_each {
            serde_json::from_value(fields).map(Self::Each)
        } else {
            serde_json::from_value(fields).map(Self::Same)
        };
        read.map_err(D::Error::custom)
    }
}

impl TokenizersConfig {
    /// The settings of the source side.
    pub fn source(&self) -> &TokenizerConfig {
        match self {
            Self::Same(config) => config,
            Self::Each(sides) => &sides.source,
        }
    }

    /// The settings of the target side.
    pub fn target(&self) -> &TokenizerConfig {
        match self {
            Self::Same(config) => config,
            Self::Each(sides) => &sides.target,
        }
    }

    /// Whether one vocabulary serves source and target.
    pub fn is_shared(&self) -> bool {
        matches!(self, Self::Same(config) if config.is_shared())
    }

    /// The config key of the settings of a side.
    pub(super) fn key(&self, side: &str) -> String {
        match self {
            Self::Same(_) => "tokenizer".into(),
            Self::Each(_) => format!("tokenizer.{side}"),
        }
    }

    /// Checks every field that can be checked without the data.
    ///
    /// # Errors
    ///
    /// Names the field, its value and the rule.
    pub fn validate(&self) -> Result<()> {
        for (side, config) in [("source", self.source()), ("target", self.target())] {
            let key = self.key(side);
            config.validate(&key)?;
            if matches!(self, Self::Each(_)) && config.is_shared() {
                let message = "cannot be true where each side has its own tokenizer; give one [tokenizer] for both";
                return Err(Error::config(format!("{key}.shared"), message));
            }
        }
        Ok(())
    }
}

/// A tokenizer and its settings, selected by `kind`.
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
    /// Byte-pair encoding of bytes, as in GPT-2 (Radford 2019): no text is unknown, and ends of lines are text.
    ByteBpe(SubwordConfig),
    /// Word pieces, as in BERT (Devlin 2019): the longest pieces of the vocabulary, `##` before all but a word's first; a text
    /// begins with `<s>`, and `lowercase` takes accents off too.
    WordPiece(SubwordConfig),
    /// The pieces of a SentencePiece model that was trained elsewhere, spaces included; made by `lookback import marian`.
    SentencePiece(SubwordConfig),
    /// No tokens: series of numbers, of which the mean and the standard deviation of each channel are kept.
    Numbers(NumbersConfig),
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
            Self::Bpe(c) | Self::Unigram(c) | Self::ByteBpe(c) | Self::WordPiece(c) | Self::SentencePiece(c) => {
                c.shared
            }
            Self::Numbers(_) => false,
        }
    }

    /// Whether text is turned to lower case first.
    pub fn is_lowercase(&self) -> bool {
        match self {
            Self::Char(c) => c.lowercase,
            Self::Word(c) => c.lowercase,
            Self::Bpe(c) | Self::Unigram(c) | Self::ByteBpe(c) | Self::WordPiece(c) | Self::SentencePiece(c) => {
                c.lowercase
            }
            Self::Numbers(_) => false,
        }
    }

    /// Whether the end of a line is text as any; otherwise texts are lines.
    pub fn has_lines(&self) -> bool {
        matches!(self, Self::ByteBpe(_))
    }

    /// Checks every field that can be checked without the data; `key` is the section for messages.
    ///
    /// # Errors
    ///
    /// Names the field, its value and the rule.
    pub fn validate(&self, key: &str) -> Result<()> {
        let least = SPECIALS.len() + 1;
        match self {
            Self::Word(WordConfig { max_size: Some(size), .. }) if *size < least => Err(Error::config(
                format!("{key}.max_size"),
                format!("must be at least {least} ({} special tokens and one word), got {size}", SPECIALS.len()),
            )),
            Self::Bpe(c) | Self::Unigram(c) | Self::ByteBpe(c) | Self::WordPiece(c) | Self::SentencePiece(c)
                if !(least..=MAX_VOCAB_SIZE).contains(&c.vocab_size) =>
            {
                Err(Error::config(
                    format!("{key}.vocab_size"),
                    format!("must lie in {least}..={MAX_VOCAB_SIZE}, got {}", c.vocab_size),
                ))
            }
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

/// Settings of series of numbers: there are none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NumbersConfig {}
