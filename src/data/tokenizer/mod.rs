//! Tokenizers: from text to token ids and back.
//!
//! Six kinds, all trained here from the training text: characters, words, byte-pair encoding of characters and of bytes, unigram
//! pieces, and word pieces. A seventh, SentencePiece, is read from models of other programs, and an eighth keeps the scale of series
//! of numbers, which have no tokens.
//! [`Tokenizers`] holds one for the source and one for the target, of one kind or two, or one for both, and is the
//! `tokenizer.json` of a run. Training is deterministic: the same pairs and settings give the same file, byte for byte, whatever the number
//! of threads.

mod added;
mod byte_level;
mod character;
mod chunks;
mod config;
mod elsewhere;
mod file;
mod hugging_face;
mod numbers;
mod sample;
mod sentence_piece;
mod side;
mod subword;
mod word;
mod word_piece;

use std::borrow::Cow;
use std::path::Path;

use rayon::prelude::*;

pub use chunks::Chunks;
pub(super) use chunks::chunks_of;
pub use config::{
    CharConfig, NumbersConfig, SidesConfig, SubwordConfig, TokenizerConfig, TokenizersConfig, WordConfig,
};
pub use numbers::Scaling;
pub use sample::{LARGEST_SAMPLE, Sample, sampled, sampled_to};
pub use sentence_piece::{Cutter, Normalizer};

use super::{Pair, Sentence};
use crate::error::{Error, Result};
use crate::files;

/// Fills up short rows of a batch; never part of a text.
pub const PAD: u32 = 0;
/// Stands before the first target token.
pub const BOS: u32 = 1;
/// Ends a text.
pub const EOS: u32 = 2;
/// Stands for everything that the vocabulary does not hold.
pub const UNK: u32 = 3;

/// The special tokens, in the order of their ids.
pub const SPECIALS: [&str; 4] = ["<pad>", "<s>", "</s>", "<unk>"];

/// What stands for a hidden word in texts for people.
pub const MASK: &str = "<mask>";
/// How BERT's vocabulary spells [`MASK`]; texts may too.
const BERT_MASK: &str = "[MASK]";
/// The same within tokenizers: one character (the object replacement character), which texts for such tokenizers lose.
const HIDDEN: char = '\u{fffc}';

/// What one kind of tokenizer does with text; ids here count from 0 and leave the special tokens out.
trait Model: std::fmt::Debug + Send + Sync {
    /// The ids of a text, `None` where the vocabulary has nothing.
    fn encode(&self, text: &str) -> Vec<Option<u32>>;
    /// The parts of a text that the vocabulary does not hold, in order.
    fn unknown(&self, text: &str) -> Vec<String>;
    /// The text of the given tokens, an inverse of `encode` as far as the kind allows.
    fn join(&self, tokens: &[&str]) -> String;
    /// How a token is shown to people.
    fn label(&self, token: &str) -> String;
    /// Whether the end of a line is text as any; otherwise texts are lines.
    fn has_lines(&self) -> bool {
        false
    }
    /// Whether a text begins with [`BOS`].
    fn has_start(&self) -> bool {
        false
    }
    /// How numbers are scaled, where texts are series of numbers.
    fn scaling(&self) -> Option<&Scaling> {
        None
    }
}

/// The tokenizer of one side.
#[derive(Debug)]
pub struct Tokenizer {
    /// All tokens by id, the special ones first.
    tokens: Vec<String>,
    lowercase: bool,
    /// What a hidden word is read as.
    mask: Option<u32>,
    model: Box<dyn Model>,
}

impl Tokenizer {
    fn new(tokens: impl IntoIterator<Item = String>, lowercase: bool, has_mask: bool, model: Box<dyn Model>) -> Self {
        let tokens = SPECIALS.map(str::to_owned).into_iter().chain(tokens);
        let mut tokens: Vec<String> = tokens.collect();
        let mask = tokens.iter().position(|token| has_mask && token.ends_with(HIDDEN));
        if let Some(mask) = mask {
            tokens[mask] = tokens[mask].replace(HIDDEN, MASK);
        }
        Self { tokens, lowercase, mask: mask.map(|id| id as u32), model }
    }

    /// The token ids of a text, without `</s>`, and without `<s>` but for kinds that have it before every text. What the
    /// vocabulary does not hold becomes [`UNK`]; [`MASK`] is a hidden word, if the vocabulary has one.
    pub fn encode(&self, text: &str) -> Vec<u32> {
        let ids = self.model.encode(&self.prepared(text));
        let ids = ids.into_iter().map(|id| id.map_or(UNK, |id| id + SPECIALS.len() as u32));
        match self.model.has_start() && !text.trim().is_empty() {
            true => std::iter::once(BOS).chain(ids).collect(),
            false => ids.collect(),
        }
    }

    /// The token that a hidden word is read as, if there is one.
    pub fn mask(&self) -> Option<u32> {
        self.mask
    }

    /// The parts of a text between hidden words.
    pub fn around_masks<'a>(&self, text: &'a str) -> Vec<&'a str> {
        let mut parts = Vec::new();
        for part in text.split(MASK) {
            parts.extend(part.split(BERT_MASK));
        }
        parts
    }

    /// The parts of a text that become [`UNK`], as they are written, in order.
    pub fn unknown(&self, text: &str) -> Vec<String> {
        let unknown = self.model.unknown(&self.prepared(text));
        if self.mask.is_none() { unknown } else { unknown.iter().map(|part| part.replace(HIDDEN, MASK)).collect() }
    }

    /// The text as the model reads it.
    fn prepared<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let text: Cow<'a, str> = match self.mask {
            Some(_) => {
                let parts: Vec<String> = self.around_masks(text).iter().map(|part| without_hidden(part)).collect();
                parts.join(HIDDEN.encode_utf8(&mut [0; 4])).into()
            }
            None => text.into(),
        };
        if self.lowercase { text.to_lowercase().into() } else { text }
    }

    /// [`Self::encode`] of every text, in order, on all processor cores.
    pub fn encode_batch<S: AsRef<str> + Sync>(&self, texts: &[S]) -> Vec<Vec<u32>> {
        texts.par_iter().map(|text| self.encode(text.as_ref())).collect()
    }

    /// The text of token ids, as a person would write it.
    ///
    /// `<pad>`, `<s>` and `</s>` are left out; an unknown token, or an id beyond the vocabulary, is written as `<unk>`, so
    /// that nothing is lost in silence.
    pub fn decode(&self, ids: &[u32]) -> String {
        let tokens: Vec<&str> =
            ids.iter().filter(|id| ![PAD, BOS, EOS].contains(id)).map(|&id| self.token(id)).collect();
        self.model.join(&tokens)
    }

    /// The token with an id, as it stands in the vocabulary: with `▁` for a space before it, or `￭` where it is joined
    /// to its neighbour. An id beyond the vocabulary gives `<unk>`.
    pub fn token(&self, id: u32) -> &str {
        self.tokens.get(id as usize).map_or(SPECIALS[UNK as usize], String::as_str)
    }

    /// The token with an id as a label for people: joiner marks left out, blank characters made visible.
    pub fn label(&self, id: u32) -> String {
        if (id as usize) < SPECIALS.len() { self.token(id).to_owned() } else { self.model.label(self.token(id)) }
    }

    /// Whether the end of a line is text as any; otherwise texts are lines.
    pub fn has_lines(&self) -> bool {
        self.model.has_lines()
    }

    /// How numbers are scaled, where texts are series of numbers.
    pub fn scaling(&self) -> Option<&Scaling> {
        self.model.scaling()
    }

    /// The first token of the vocabulary that is spelled like a special one. Training leaves such words out; files of
    /// other programs, which know tokens by their spelling, have no place for them.
    fn spelled_as_special(&self) -> Option<&str> {
        self.tokens[SPECIALS.len()..].iter().map(String::as_str).find(|token| SPECIALS.contains(token))
    }

    /// The id of a token as it stands in the vocabulary, if it is there.
    pub fn id(&self, token: &str) -> Option<u32> {
        self.tokens.iter().position(|t| t == token).map(|id| id as u32)
    }

    /// The number of token ids, special ones included.
    pub fn vocab_size(&self) -> usize {
        self.tokens.len()
    }
}

/// The tokenizers of both sides of a model.
#[derive(Debug)]
pub struct Tokenizers {
    saved: file::Saved,
    source: Tokenizer,
    /// `None`: the source's serves both.
    target: Option<Tokenizer>,
}

/// Parts of a text as messages list them.
pub fn quoted(parts: &[String]) -> String {
    parts.iter().map(|part| format!("\"{part}\"")).collect::<Vec<_>>().join(", ")
}

impl Tokenizers {
    /// Builds the vocabularies from training pairs.
    ///
    /// # Errors
    ///
    /// When a setting cannot be used with these pairs: a vocabulary of nothing but special tokens, or one too small for
    /// the characters of the text.
    pub fn train(pairs: &[Pair], config: impl Into<TokenizersConfig>) -> Result<Self> {
        let config = config.into();
        config.validate()?;
        let texts = |side: fn(&Pair) -> &str| pairs.iter().map(side).collect::<Vec<_>>();
        let sources = texts(|pair| &pair.source);
        let targets = texts(|pair| &pair.target);
        let saved = if config.is_shared() {
            let both: Vec<&str> = sources.into_iter().chain(targets).collect();
            let side = train_side(&both, config.source(), "source and target", &config.key("source"))?;
            file::Saved::new(config, side, None)
        } else {
            let target = train_side(&targets, config.target(), "target", &config.key("target"))?;
            let source = train_side(&sources, config.source(), "source", &config.key("source"))?;
            file::Saved::new(config, source, Some(target))
        };
        saved.build().map_err(Error::message)
    }

    /// Builds one vocabulary from the lines of plain text; `has_mask` says whether it has a token for hidden words.
    ///
    /// # Errors
    ///
    /// As [`Self::train`]; also when the settings name two sides.
    pub fn train_text<S: AsRef<str>>(lines: &[S], config: &TokenizersConfig, has_mask: bool) -> Result<Self> {
        config.validate()?;
        let TokenizersConfig::Same(own) = config else {
            let message = "has two sides, but plain text has one; give one [tokenizer]";
            return Err(Error::config("tokenizer.source", message));
        };
        let stripped: Vec<String>;
        let lines: Vec<&str> = if has_mask {
            stripped = lines.iter().map(|line| without_hidden(line.as_ref())).collect();
            stripped.iter().map(String::as_str).collect()
        } else {
            lines.iter().map(AsRef::as_ref).collect()
        };
        let mut side = if own.has_lines() {
            let chunks = chunks_of(&lines);
            train_side(&chunks.iter().map(String::as_str).collect::<Vec<_>>(), own, "text", "tokenizer")?
        } else {
            train_side(&lines, own, "text", "tokenizer")?
        };
        if has_mask {
            side.add_mask();
        }
        file::Saved::new(config.clone(), side, None).with_mask(has_mask).build().map_err(Error::message)
    }

    /// Whether one vocabulary serves both sides, or there is but one side. Texts of the two sides may be cut in different ways all
    /// the same.
    pub fn is_shared(&self) -> bool {
        self.target.is_none() || self.saved.config.is_shared()
    }

    /// The tokenizer of the source side.
    pub fn source(&self) -> &Tokenizer {
        &self.source
    }

    /// The tokenizer of the target side; the same as the source's when the vocabulary is shared.
    pub fn target(&self) -> &Tokenizer {
        self.target.as_ref().unwrap_or(&self.source)
    }

    /// The first token of a vocabulary, behind the special ones, that is spelled like one of them.
    pub(crate) fn spelled_as_special(&self) -> Option<&str> {
        self.source().spelled_as_special().or_else(|| self.target().spelled_as_special())
    }

    /// The settings that these were trained with.
    pub fn config(&self) -> &TokenizersConfig {
        &self.saved.config
    }

    /// The references of a sentence as a model can write them: in lower case, where that is all it knows.
    pub fn references(&self, sentence: &Sentence) -> Vec<String> {
        let is_lowercase = self.config().target().is_lowercase();
        let cased = |text: &String| if is_lowercase { text.to_lowercase() } else { text.clone() };
        sentence.references.iter().map(cased).collect()
    }

    /// Writes both sides into one JSON file.
    ///
    /// # Errors
    ///
    /// When the file cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        files::replace(path.as_ref(), self.to_json().as_bytes())
    }

    /// What [`Self::save`] writes.
    pub fn to_json(&self) -> String {
        self.saved.to_json()
    }

    /// Reads what [`Self::save`] wrote.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, is damaged, or has another format version.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let text = std::fs::read(&path).map_err(Error::io(&path))?;
        Self::from_json(&text).map_err(|message| Error::file(&path, message))
    }

    /// Reads what [`Self::to_json`] wrote.
    ///
    /// # Errors
    ///
    /// Says what is wrong with it.
    pub fn from_json(text: &[u8]) -> Result<Self, String> {
        file::Saved::from_json(text).and_then(file::Saved::build)
    }

    /// The sha256 of the saved file, in hexadecimal: equal exactly when two models' token ids mean the same.
    pub fn fingerprint(&self) -> String {
        super::corpus::sha256_hex(self.to_json().as_bytes())
    }
}

/// A text without the character that stands for hidden words.
fn without_hidden(text: &str) -> String {
    text.replace(HIDDEN, "")
}

/// Trains one side; `side` and `key`, the section of its settings, are for messages.
fn train_side(texts: &[&str], config: &TokenizerConfig, side: &str, key: &str) -> Result<side::Side> {
    let lowered: Vec<String>;
    let texts = if config.is_lowercase() {
        lowered = texts.iter().map(|text| text.to_lowercase()).collect();
        lowered.iter().map(String::as_str).collect()
    } else {
        texts.to_vec()
    };
    let trained = match config {
        TokenizerConfig::Char(_) => character::train(&texts),
        TokenizerConfig::Numbers(_) => numbers::train(&texts, key)?,
        TokenizerConfig::Word(c) => word::train(&texts, c),
        TokenizerConfig::Bpe(c) => subword::train_bpe(&texts, c, key)?,
        TokenizerConfig::Unigram(c) => subword::train_unigram(&texts, c, key)?,
        TokenizerConfig::ByteBpe(c) => byte_level::train(&texts, c, key)?,
        TokenizerConfig::WordPiece(c) => word_piece::train(&texts, c, key)?,
        TokenizerConfig::SentencePiece(_) => {
            let message = "is \"sentence-piece\", which is read from models of other programs and not trained: take \"unigram\", or \
                           keep the pieces of an imported model with --init-from";
            return Err(Error::config(format!("{key}.kind"), message));
        }
    };
    if trained.is_empty() {
        let cure = match config {
            TokenizerConfig::Word(c) if c.min_count > 1 => format!("lower {key}.min_count = {}", c.min_count),
            _ => "check the data".to_owned(),
        };
        let message = format!("the {side} vocabulary would hold nothing but special tokens; {cure}");
        return Err(Error::config(key, message));
    }
    Ok(trained)
}

/// Counts items and puts them into vocabulary order: count descending, then the item itself.
fn by_count<'a, T: Ord + std::hash::Hash + 'a>(items: impl Iterator<Item = T>) -> Vec<(T, u64)> {
    let mut counts = std::collections::HashMap::new();
    for item in items {
        *counts.entry(item).or_insert(0u64) += 1;
    }
    let mut counts: Vec<(T, u64)> = counts.into_iter().collect();
    counts.sort_unstable_by(|(a, n), (b, m)| m.cmp(n).then_with(|| a.cmp(b)));
    counts
}
