//! The word tokenizer.
//!
//! Punctuation that touches a word carries a joiner mark on that side (`dog.` is `dog` `￭.`, `l'eau` is `l` `￭'￭`
//! `eau`), as in OpenNMT's tokenizer, so decoding needs no rules about languages: it removes the marks and the spaces
//! beside them. Words themselves carry no mark and are therefore the same token wherever they stand. Runs of spaces,
//! and space characters other than the plain one, come back as one plain space; a `￭` in the text itself is dropped.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use regex::Regex;

use super::config::WordConfig;
use super::{HIDDEN, Model, SPECIALS, by_count, side::Side};

/// U+FFED, the mark of a token that is written without a space on that side.
const JOINER: char = '￭';

/// The words that are frequent enough, the most frequent first. Those that are spelled like special tokens are left
/// out, so that they become `<unk>`: other programs know tokens by their spelling.
pub(super) fn train(texts: &[&str], config: &WordConfig) -> Side {
    let words = by_count(texts.iter().flat_map(|text| split(text, config.split_punctuation)));
    let room = config.max_size.map_or(usize::MAX, |size| size - SPECIALS.len());
    let frequent = words.into_iter().take_while(|&(_, n)| n >= config.min_count);
    let frequent = frequent.map(|(word, _)| word.into_owned()).filter(|word| !SPECIALS.contains(&word.as_str()));
    let vocabulary = frequent.take(room).collect();
    Side::Word { split_punctuation: config.split_punctuation, vocabulary }
}

/// The tokens of a text.
fn split(text: &str, split_punctuation: bool) -> Vec<Cow<'_, str>> {
    let mut tokens = Vec::new();
    for chunk in text.split_whitespace() {
        match split_punctuation {
            // Most chunks are a word and nothing else, for which no pattern has to be asked.
            true if chunk.bytes().all(is_of_word) => tokens.push(Cow::Borrowed(chunk)),
            true => tokens.extend(split_chunk(chunk).into_iter().map(Cow::Owned)),
            false => tokens.extend(around_hidden(chunk).into_iter().map(Cow::Borrowed)),
        }
    }
    tokens
}

/// Whether a byte is a character of the pattern `\w` by itself. Those of several bytes are left to the pattern.
fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// A chunk cut before and after hidden words, which are tokens of their own whatever they touch; where words are split at
/// punctuation it stays whole, for the sake of the joiner marks.
fn around_hidden(chunk: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = chunk;
    while let Some(place) = rest.find(HIDDEN) {
        parts.push(&rest[..place]);
        parts.push(&rest[place..place + HIDDEN.len_utf8()]);
        rest = &rest[place + HIDDEN.len_utf8()..];
    }
    parts.push(rest);
    parts.retain(|part| !part.is_empty());
    parts
}

/// The tokens of a text without spaces: words, and every other character for itself with its joiner marks.
fn split_chunk(chunk: &str) -> Vec<String> {
    static TOKEN: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\w+|\W").expect("a valid pattern"));
    let chunk = chunk.replace(JOINER, "");
    let parts: Vec<&str> = TOKEN.find_iter(&chunk).map(|part| part.as_str()).collect();
    let mark = |there: bool| if there { "￭" } else { "" };
    let spell = |(i, part): (usize, &&str)| {
        if is_word(part) {
            return (*part).to_owned();
        }
        let word_follows = parts.get(i + 1).is_some_and(|next| is_word(next));
        format!("{}{part}{}", mark(i > 0), mark(word_follows))
    };
    parts.iter().enumerate().map(spell).collect()
}

/// Whether a part of a chunk is a word and not punctuation.
fn is_word(part: &str) -> bool {
    static WORD: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"^\w").expect("a valid pattern"));
    WORD.is_match(part) || part.starts_with(HIDDEN)
}

#[derive(Debug)]
pub(super) struct Words {
    ids: HashMap<String, u32>,
    split_punctuation: bool,
}

impl Words {
    pub(super) fn new(vocabulary: &[String], split_punctuation: bool) -> Self {
        Self { ids: vocabulary.iter().cloned().zip(0..).collect(), split_punctuation }
    }
}

impl Model for Words {
    fn encode(&self, text: &str) -> Vec<Option<u32>> {
        split(text, self.split_punctuation).iter().map(|word| self.ids.get(word.as_ref()).copied()).collect()
    }

    fn unknown(&self, text: &str) -> Vec<String> {
        let words = split(text, self.split_punctuation).into_iter();
        words.filter(|word| !self.ids.contains_key(word.as_ref())).map(|word| self.label(&word)).collect()
    }

    fn join(&self, tokens: &[&str]) -> String {
        if !self.split_punctuation {
            return tokens.join(" ");
        }
        let mut text = String::new();
        let mut joined = true;
        for token in tokens {
            if !joined && !token.starts_with(JOINER) {
                text.push(' ');
            }
            text.push_str(token.trim_matches(JOINER));
            joined = token.ends_with(JOINER);
        }
        text
    }

    fn label(&self, token: &str) -> String {
        if self.split_punctuation { token.trim_matches(JOINER).to_owned() } else { token.to_owned() }
    }
}
