//! Word pieces, as BERT has them: a word is cut into the longest pieces that the vocabulary holds, from its beginning on, and all
//! but its first are written with `##` before them. A word that cannot be cut is unknown as a whole.
//!
//! The `tokenizers` crate does the work: text is cleaned as BERT does it, cut at spaces and punctuation, and cut into pieces; the
//! vocabulary is made by merging pairs, as in byte-pair encoding. Spaces around punctuation do not come back.

use std::collections::BTreeSet;

use tokenizers::decoders::wordpiece::WordPiece as Joiner;
use tokenizers::models::bpe::{BPE, BpeTrainer};
use tokenizers::models::wordpiece::WordPiece;
use tokenizers::normalizers::BertNormalizer;
use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
use tokenizers::{
    AddedToken, Decoder, Model as _, Normalizer, OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer,
};

use super::config::SubwordConfig;
use super::subword::{tokens_of, training_failed};
use super::{HIDDEN, Model, SPECIALS, by_count, side::Side};
use crate::error::{Error, Result};

/// Stands before a piece that does not begin its word.
const CONTINUED: &str = "##";
/// The unknown token inside the crate's models, id 0 there; no word is a line feed.
const UNKNOWN: &str = "\n";
/// Longer words, in characters, are unknown: BERT's limit.
const LONGEST_WORD: usize = 100;

/// The words of a text as they are looked up, and as they are written.
fn words(text: &str, lowercase: bool) -> Vec<(String, (usize, usize))> {
    let mut cut = PreTokenizedString::from(text);
    let normalizer = BertNormalizer::new(true, true, None, lowercase);
    if cut.normalize(|part| normalizer.normalize(part)).is_err() || BertPreTokenizer.pre_tokenize(&mut cut).is_err() {
        return vec![(text.to_owned(), (0, text.len()))];
    }
    let splits = cut.get_splits(OffsetReferential::Original, OffsetType::Byte);
    splits.into_iter().map(|(word, place, _)| (word.to_owned(), place)).collect()
}

/// Makes a vocabulary by merging pairs.
pub(super) fn train(texts: &[&str], config: &SubwordConfig, key: &str) -> Result<Side> {
    let all = texts.iter().flat_map(|text| words(text, config.lowercase)).map(|(word, _)| word);
    let words = by_count(all.filter(|word| word.chars().count() <= LONGEST_WORD));
    let characters =
        |skipped| -> BTreeSet<char> { words.iter().flat_map(|(word, _)| word.chars().skip(skipped)).collect() };
    // The crate numbers continued characters as it meets them, in the order of a hash map; given as special tokens, which come
    // first, they have an order, and so have merges that occur equally often.
    let continued: Vec<String> = characters(1).into_iter().map(|c| format!("{CONTINUED}{c}")).collect();
    let least = characters(0).len() + continued.len() + SPECIALS.len();
    if config.vocab_size < least {
        let message = format!(
            "must be at least {least} for this text (its characters, alone and within words, and {} special tokens), got {}; raise \
             it, or clean rare characters out of the text",
            SPECIALS.len(),
            config.vocab_size
        );
        return Err(Error::config(format!("{key}.vocab_size"), message));
    }
    let specials = std::iter::once(UNKNOWN.to_owned()).chain(continued);
    let trainer = BpeTrainer::builder()
        .show_progress(false)
        .vocab_size(config.vocab_size - SPECIALS.len() + 1)
        .continuing_subword_prefix(CONTINUED.to_owned())
        .special_tokens(specials.map(|token| AddedToken::from(token, true)).collect())
        .build();
    let counts = words.into_iter().map(|(word, n)| (word.into(), n)).collect();
    let mut model = BPE::default();
    trainer.do_train(&counts, &mut model).map_err(training_failed)?;
    Ok(Side::WordPiece { vocabulary: tokens_of(&model, 1) })
}

/// A vocabulary at work; id 0 inside it is [`UNKNOWN`].
#[derive(Debug)]
pub(super) struct WordPieces {
    model: WordPiece,
    lowercase: bool,
    mask: Option<u32>,
}

impl WordPieces {
    pub(super) fn new(vocabulary: &[String], lowercase: bool) -> Result<Self, String> {
        let tokens = std::iter::once(UNKNOWN).chain(vocabulary.iter().map(String::as_str));
        let vocabulary: tokenizers::models::bpe::Vocab = tokens.map(str::to_owned).zip(0..).collect();
        let model = WordPiece::builder()
            .vocab(vocabulary)
            .unk_token(UNKNOWN.to_owned())
            .continuing_subword_prefix(CONTINUED.to_owned())
            .max_input_chars_per_word(LONGEST_WORD)
            .build()
            .map_err(|e| e.to_string())?;
        Ok(Self { mask: model.token_to_id(HIDDEN.encode_utf8(&mut [0; 4])), model, lowercase })
    }

    /// The ids inside the model of the pieces of a word.
    fn pieces(&self, word: &str) -> Vec<u32> {
        self.model.tokenize(word).map_or(vec![0], |tokens| tokens.into_iter().map(|token| token.id).collect())
    }

    /// The parts of a text between hidden words, if there are any such.
    fn parts<'a>(&self, text: &'a str) -> Vec<&'a str> {
        if self.mask.is_some() { text.split(HIDDEN).collect() } else { vec![text] }
    }
}

impl Model for WordPieces {
    fn encode(&self, text: &str) -> Vec<Option<u32>> {
        let of_part = |part: &&str| -> Vec<u32> {
            words(part, self.lowercase).iter().flat_map(|(word, _)| self.pieces(word)).collect()
        };
        let parts: Vec<Vec<u32>> = self.parts(text).iter().map(of_part).collect();
        let between: Vec<u32> = self.mask.into_iter().collect();
        parts.join(between.as_slice()).into_iter().map(|id| id.checked_sub(1)).collect()
    }

    fn unknown(&self, text: &str) -> Vec<String> {
        let of_part = |part: &str| -> Vec<String> {
            let words = words(part, self.lowercase).into_iter();
            let unknown = words.filter(|(word, _)| self.pieces(word).contains(&0));
            unknown.map(|(word, (from, to))| part.get(from..to).unwrap_or(&word).to_owned()).collect()
        };
        self.parts(text).into_iter().flat_map(of_part).collect()
    }

    fn join(&self, tokens: &[&str]) -> String {
        let tokens = tokens.iter().map(|token| (*token).to_owned()).collect();
        Joiner::new(CONTINUED.to_owned(), true).decode_chain(tokens).unwrap_or_default().concat()
    }

    fn label(&self, token: &str) -> String {
        token.to_owned()
    }

    fn has_start(&self) -> bool {
        true
    }
}
