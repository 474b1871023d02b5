//! Byte-level BPE: pairs of bytes merged into tokens, as GPT-2 has it. No text is unknown to it, and none is changed by it: spaces
//! and ends of lines are bytes as any.
//!
//! The `tokenizers` crate cuts the text into words, by GPT-2's own pattern, and merges; a byte is written as one character of
//! its alphabet.

use tokenizers::decoders::DecoderWrapper;
use tokenizers::models::bpe::{BPE, BpeTrainer, Vocab};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::{Decoder, Model as _, OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer};

use super::added::{Added, Part};
use super::config::SubwordConfig;
use super::subword::{merges_of, tokens_of, training_failed};
use super::{HIDDEN, Model, SPECIALS, by_count, side::Side};
use crate::error::{Error, Result};

/// The bytes.
const N_BYTES: usize = 256;

/// A space, in the alphabet of bytes.
const SPACE: char = 'Ġ';

/// The token of hidden words.
pub(super) fn mask() -> String {
    format!("{SPACE}{HIDDEN}")
}

/// GPT-2's way: no space is put before a text, and its pattern cuts words.
fn cutter() -> ByteLevel {
    ByteLevel::new(false, false, true)
}

/// The words of a text, each byte as a character of the alphabet.
fn words(text: &str) -> Vec<String> {
    let mut cut = PreTokenizedString::from(text);
    if cutter().pre_tokenize(&mut cut).is_err() {
        return vec![text.to_owned()];
    }
    let splits = cut.get_splits(OffsetReferential::Original, OffsetType::Byte);
    splits.into_iter().map(|(word, _, _)| word.to_owned()).collect()
}

/// Trains merges; the bytes come first.
pub(super) fn train(texts: &[&str], config: &SubwordConfig, key: &str) -> Result<Side> {
    let least = N_BYTES + SPECIALS.len();
    if config.vocab_size < least {
        let message =
            format!("must be at least {least}, for {N_BYTES} bytes and the special tokens, got {}", config.vocab_size);
        return Err(Error::config(format!("{key}.vocab_size"), message));
    }
    let counts = by_count(texts.iter().flat_map(|text| words(text)));
    let trainer = BpeTrainer::builder()
        .show_progress(false)
        .vocab_size(config.vocab_size - SPECIALS.len())
        .initial_alphabet(ByteLevel::alphabet().into_iter().collect())
        .build();
    let counts = counts.into_iter().map(|(word, n)| (word.into(), n)).collect();
    let mut model = BPE::default();
    trainer.do_train(&counts, &mut model).map_err(training_failed)?;
    Ok(Side::ByteBpe { vocabulary: tokens_of(&model, 0), merges: merges_of(&model)?, added: Vec::new() })
}

/// A trained model.
#[derive(Debug)]
pub(super) struct Bytes {
    model: BPE,
    decoder: DecoderWrapper,
    mask: Option<u32>,
    added: Added,
}

impl Bytes {
    pub(super) fn new(vocabulary: &[String], merges: &[(String, String)], added: &[String]) -> Result<Self, String> {
        let vocabulary: Vocab = vocabulary.iter().cloned().zip(0..).collect();
        let model = BPE::builder().vocab_and_merges(vocabulary, merges.to_vec()).build();
        let model = model.map_err(|e| format!("the merges do not fit the vocabulary: {e}"))?;
        let mask = model.token_to_id(&mask());
        let added = Added::new(added, |token| model.token_to_id(token))?;
        Ok(Self { model, decoder: DecoderWrapper::ByteLevel(cutter()), mask, added })
    }

    /// The ids of a text without hidden words.
    fn ids(&self, text: &str) -> Vec<Option<u32>> {
        let of_word = |word: &String| match self.model.tokenize(word) {
            // A byte that the vocabulary does not have is left out in silence by the crate.
            Ok(tokens) if tokens.iter().map(|token| token.value.len()).sum::<usize>() == word.len() => {
                tokens.into_iter().map(|token| Some(token.id)).collect()
            }
            _ => vec![None],
        };
        let of_part = |part| match part {
            Part::Token(id) => vec![Some(id)],
            Part::Text(text) => words(text).iter().flat_map(of_word).collect(),
        };
        self.added.parts(text).into_iter().flat_map(of_part).collect()
    }
}

impl Model for Bytes {
    fn encode(&self, text: &str) -> Vec<Option<u32>> {
        let Some(mask) = self.mask else { return self.ids(text) };
        let mut ids: Vec<Option<u32>> = Vec::new();
        let mut parts = text.split(HIDDEN).peekable();
        while let Some(part) = parts.next() {
            // The space before a hidden word is a part of it.
            let part = if parts.peek().is_some() { part.strip_suffix(' ').unwrap_or(part) } else { part };
            ids.extend(self.ids(part));
            ids.extend(parts.peek().map(|_| Some(mask)));
        }
        ids
    }

    fn unknown(&self, text: &str) -> Vec<String> {
        let encoded = self.encode(text);
        if encoded.contains(&None) { vec![text.to_owned()] } else { Vec::new() }
    }

    fn join(&self, tokens: &[&str]) -> String {
        // An added token is text, not bytes in the alphabet.
        let spelled = |token: &&str| if self.added.has(token) { words(token).concat() } else { (*token).to_owned() };
        let tokens = tokens.iter().map(spelled).collect();
        self.decoder.decode_chain(tokens).unwrap_or_default().concat()
    }

    fn label(&self, token: &str) -> String {
        let shown = |c: char| match c {
            '\n' => '⏎',
            c if c.is_whitespace() => '␣',
            c => c,
        };
        self.join(&[token]).chars().map(shown).collect()
    }

    fn has_lines(&self) -> bool {
        true
    }
}
