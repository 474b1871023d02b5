//! The subword tokenizers: byte-pair encoding and unigram pieces, trained and run by the `tokenizers` crate.
//!
//! Around that crate's models stands only what makes them lossless and repeatable. Text is cut at plain spaces, every
//! word starts with `▁` (U+2581), and punctuation is cut off words, so that no piece crosses from a word into
//! punctuation. Decoding joins the pieces and turns `▁` back into spaces; only a `▁` in the text itself comes back as a
//! space.

use std::sync::LazyLock;

use regex::Regex;
use tokenizers::AddedToken;
use tokenizers::models::bpe::{BPE, BpeTrainer, Vocab};
use tokenizers::models::unigram::{Unigram, UnigramTrainer};

use super::config::SubwordConfig;
use super::{HIDDEN, Model, SPECIALS, by_count, side::Side};
use crate::error::{Error, Result};
use crate::panics::caught;

/// Stands for a space before a word.
const SPACE: char = '▁';
/// The unknown token inside the crate's models, id 0 there. A line feed is in no text, so no text can be mistaken for
/// it.
const UNKNOWN: &str = "\n";
/// Words longer than this, in characters, are left out of training: they are noise, and too long for unigram's
/// likelihood.
const LONGEST_WORD: usize = 200;
/// Orders of the words that are tried.
const MAX_ORDERS: usize = 20;
/// Scores are kept to a millionth, so that they survive being written as decimal numbers.
const SCORE_SCALE: f64 = 1e6;

/// The token of hidden words.
pub(super) fn mask() -> String {
    format!("{SPACE}{HIDDEN}")
}

/// The words of a text with `▁` for the space before them, and each punctuation character for itself.
fn split(text: &str) -> Vec<String> {
    static PART: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"▁?\w+|▁?[^\w▁]|▁").expect("a valid pattern"));
    let mut marked = String::with_capacity(text.len() + SPACE.len_utf8());
    for chunk in text.split(' ') {
        marked.push(SPACE);
        marked.push_str(chunk);
    }
    PART.find_iter(&marked).map(|part| part.as_str().to_owned()).collect()
}

/// The distinct words to train with and their counts, in a fixed order.
fn training_words(texts: &[&str]) -> Vec<(String, u64)> {
    let mut words = by_count(texts.iter().filter(|text| !text.is_empty()).flat_map(|text| split(text)));
    words.retain(|(word, _)| word.chars().count() <= LONGEST_WORD);
    words
}

/// Refuses a vocabulary that cannot even hold the characters of the text.
fn check_alphabet(words: &[(String, u64)], config: &SubwordConfig, key: &str) -> Result<()> {
    let characters: std::collections::HashSet<char> = words.iter().flat_map(|(word, _)| word.chars()).collect();
    let least = characters.len() + SPECIALS.len();
    if config.vocab_size < least {
        let message = format!(
            "must be at least {least} for this text ({} different characters and {} special tokens), got {}; \
             raise it, or clean rare characters out of the text",
            characters.len(),
            SPECIALS.len(),
            config.vocab_size
        );
        return Err(Error::config(format!("{key}.vocab_size"), message));
    }
    Ok(())
}

/// Trains byte-pair merges, the most frequent pair first, ties to the older tokens.
pub(super) fn train_bpe(texts: &[&str], config: &SubwordConfig, key: &str) -> Result<Side> {
    let words = training_words(texts);
    check_alphabet(&words, config, key)?;
    let trainer = BpeTrainer::builder()
        .show_progress(false)
        .vocab_size(config.vocab_size - SPECIALS.len() + 1)
        .special_tokens(vec![AddedToken::from(UNKNOWN, true)])
        .build();
    let counts = words.into_iter().map(|(word, n)| (word.into(), n)).collect();
    let mut model = BPE::default();
    trainer.do_train(&counts, &mut model).map_err(training_failed)?;
    Ok(Side::Bpe { vocabulary: tokens_of(&model, 1), merges: merges_of(&model)? })
}

/// The tokens of a model from the id `first` on, in the order of their ids.
pub(super) fn tokens_of(model: &BPE, first: u32) -> Vec<String> {
    let mut tokens: Vec<(String, u32)> = model.get_vocab().into_iter().filter(|(_, id)| *id >= first).collect();
    tokens.sort_unstable_by_key(|(_, id)| *id);
    tokens.into_iter().map(|(token, _)| token).collect()
}

/// The merges of a model, in order of rank. The crate gives them away only through serde.
pub(super) fn merges_of(model: &BPE) -> Result<Vec<(String, String)>> {
    let mut fields = serde_json::to_value(model).map_err(training_failed)?;
    serde_json::from_value(fields["merges"].take()).map_err(training_failed)
}

/// Trains unigram pieces by expectation maximisation and pruning.
///
/// On one thread, because sums of floating-point numbers depend on how they are divided among threads.
pub(super) fn train_unigram(texts: &[&str], config: &SubwordConfig, key: &str) -> Result<Side> {
    let words = training_words(texts);
    check_alphabet(&words, config, key)?;
    if words.is_empty() {
        return Ok(Side::Unigram { pieces: Vec::new() });
    }
    let trainer = UnigramTrainer::builder()
        .show_progress(false)
        .vocab_size((config.vocab_size - SPECIALS.len() + 2) as u32)
        .special_tokens(vec![AddedToken::from(UNKNOWN, true)])
        .unk_token(Some(UNKNOWN.to_owned()))
        .build()
        .map_err(training_failed)?;
    let words: Vec<_> = words.into_iter().flat_map(|(word, n)| with_two_ends(word, n)).collect();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().map_err(training_failed)?;
    let model = pool.install(|| in_some_order(&trainer, words))?;
    let pieces = model.iter().filter(|(piece, _)| piece != UNKNOWN).cloned().collect();
    Ok(Side::Unigram { pieces: in_fixed_order(pieces) })
}

/// Trains with the words in their order, or in the next one that goes.
///
/// The suffix array that the crate begins with (esaxx-rs 0.1.10) panics on texts that end in certain ways, at the first level or at
/// one that it makes of it: a symbol, a lower one twice or more, and a higher one at the end. Which word stands last means nothing.
fn in_some_order(trainer: &UnigramTrainer, mut words: Vec<(String, u32)>) -> Result<Unigram> {
    for _ in 0..MAX_ORDERS.min(words.len()) {
        let mut model = Unigram::default();
        let own = words.clone();
        if let Some(result) = caught(|| trainer.do_train(own, &mut model)) {
            return result.map(|_| model).map_err(training_failed);
        }
        words.rotate_left(1);
    }
    Err(training_failed(format_args!("no order of {} words that were tried goes; take \"bpe\"", words.len())))
}

/// A word, once with [`UNKNOWN`] after it if it occurs more than once.
///
/// The crate starts from substrings that are followed by two different characters, so a piece that always ends its word
/// would never be found. Nothing else changes: the mark always stands alone, and its own piece is thrown away.
fn with_two_ends(word: String, n: u64) -> Vec<(String, u32)> {
    let n = u32::try_from(n).unwrap_or(u32::MAX);
    if n == 1 { vec![(word, 1)] } else { vec![(format!("{word}{UNKNOWN}"), 1), (word, n - 1)] }
}

/// Undoes what the crate leaves to its hash maps, then orders by score descending and by piece.
///
/// Characters that training dropped come back with the lowest score plus a small step each, in a random order; here
/// they, and whatever characters score as low, all get the lowest score.
fn in_fixed_order(mut pieces: Vec<(String, f64)>) -> Vec<(String, f64)> {
    const STEP: f64 = 1e-4;
    let is_character = |piece: &str| piece.chars().count() == 1;
    let lowest = pieces.iter().map(|&(_, score)| score).fold(f64::INFINITY, f64::min);
    let steps = pieces.iter().filter(|(piece, _)| is_character(piece)).count() as f64;
    for (piece, score) in &mut pieces {
        if is_character(piece) && *score <= lowest + steps * STEP {
            *score = lowest;
        }
        *score = (*score * SCORE_SCALE).round() / SCORE_SCALE;
    }
    pieces.sort_by(|(a, x), (b, y)| y.total_cmp(x).then_with(|| a.cmp(b)));
    pieces
}

pub(super) fn training_failed(source: impl std::fmt::Display) -> Error {
    Error::config("tokenizer", format!("the subword vocabulary could not be trained: {source}"))
}

/// A trained subword model; id 0 inside it is [`UNKNOWN`].
#[derive(Debug)]
pub(super) struct Pieces<M> {
    model: M,
    /// The id inside it of the token of hidden words.
    mask: Option<u32>,
}

impl<M: tokenizers::Model> Pieces<M> {
    fn new(model: M) -> Self {
        Self { mask: model.token_to_id(&mask()), model }
    }

    /// The ids inside the model of a word.
    fn tokens(&self, word: &str) -> Option<Vec<tokenizers::Token>> {
        match self.mask {
            Some(id) if word.trim_start_matches(SPACE).starts_with(HIDDEN) => {
                Some(vec![tokenizers::Token::new(id, mask(), (0, word.len()))])
            }
            _ => self.model.tokenize(word).ok(),
        }
    }
}

impl Pieces<BPE> {
    pub(super) fn bpe(vocabulary: &[String], merges: &[(String, String)]) -> Result<Self, String> {
        let tokens = std::iter::once(UNKNOWN).chain(vocabulary.iter().map(String::as_str));
        let vocabulary: Vocab = tokens.map(str::to_owned).zip(0..).collect();
        let builder = BPE::builder().vocab_and_merges(vocabulary, merges.to_vec());
        let model = builder.unk_token(UNKNOWN.to_owned()).fuse_unk(true).build();
        model.map(Self::new).map_err(|e| format!("the merges do not fit the vocabulary: {e}"))
    }
}

impl Pieces<Unigram> {
    pub(super) fn unigram(pieces: &[(String, f64)]) -> Result<Self, String> {
        let pieces = std::iter::once((UNKNOWN.to_owned(), 0.0)).chain(pieces.iter().cloned()).collect();
        Unigram::from(pieces, Some(0), false).map(Self::new).map_err(|e| e.to_string())
    }
}

impl<M: tokenizers::Model + std::fmt::Debug + Send + Sync> Model for Pieces<M> {
    fn encode(&self, text: &str) -> Vec<Option<u32>> {
        let tokens = |word: &String| match self.tokens(word) {
            Some(tokens) => tokens.into_iter().map(|token| token.id.checked_sub(1)).collect(),
            None => vec![None],
        };
        if text.is_empty() { Vec::new() } else { split(text).iter().flat_map(tokens).collect() }
    }

    fn unknown(&self, text: &str) -> Vec<String> {
        let parts = |word: String| -> Vec<String> {
            let Some(tokens) = self.tokens(&word) else { return vec![word] };
            let unknown = tokens.into_iter().filter(|token| token.id == 0);
            unknown.map(|token| word.get(token.offsets.0..token.offsets.1).unwrap_or(&word).to_owned()).collect()
        };
        if text.is_empty() { Vec::new() } else { split(text).into_iter().flat_map(parts).collect() }
    }

    fn join(&self, tokens: &[&str]) -> String {
        let text = tokens.concat().replace(SPACE, " ");
        text.strip_prefix(' ').map(str::to_owned).unwrap_or(text)
    }

    fn label(&self, token: &str) -> String {
        token.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokenizers::Model as _;

    #[test]
    fn words_on_which_the_crate_panics_are_trained_in_another_order() {
        let words = ["acac", "cbbcb", "b", "babbb"].map(|word| (word.to_owned(), 1)).to_vec();
        let trainer = UnigramTrainer::builder().show_progress(false).vocab_size(20).build().unwrap();
        let panics = caught(|| trainer.do_train(words.clone(), &mut Unigram::default())).is_none();
        assert!(panics, "the crate is mended: take the other orders out");
        assert!(in_some_order(&trainer, words).unwrap().get_vocab().contains_key("b"));
    }
}
