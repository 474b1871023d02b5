//! sacreBLEU's language-independent tokenizers: `13a` (the default), `intl`, `char` and `none`.
//!
//! BLEU counts word n-grams, so its value depends on where words are split; scores are comparable only between equal
//! tokenizers. The input is meant to be plain, detokenized text.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;
use std::sync::LazyLock;

use regex::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// How BLEU splits a line into tokens.
///
/// # Reference
/// Post, "A Call for Clarity in Reporting BLEU Scores", 2018, <https://aclanthology.org/W18-6319>, and its program
/// sacreBLEU 2.6; as there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
pub enum BleuTokenizer {
    /// NIST's `mteval-v13a`: splits off ASCII punctuation, but not `.` and `,` inside numbers; resolves four XML
    /// entities.
    #[default]
    #[serde(rename = "13a")]
    V13a,
    /// NIST's `mteval-v14 --international`: splits off punctuation and symbols of every script.
    #[serde(rename = "intl")]
    Intl,
    /// Every character that is not white space is a token.
    #[serde(rename = "char")]
    Char,
    /// Tokens are what white space separates: for text that is tokenized already.
    #[serde(rename = "none")]
    None,
}

impl BleuTokenizer {
    /// Every tokenizer, in the order in which they are documented.
    pub const ALL: [Self; 4] = [Self::V13a, Self::Intl, Self::Char, Self::None];

    /// The name of the tokenizer in signatures, configurations and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::V13a => "13a",
            Self::Intl => "intl",
            Self::Char => "char",
            Self::None => "none",
        }
    }

    /// `line` with its tokens separated by single spaces.
    pub fn tokenize(self, line: &str) -> String {
        let line = line.trim_end_matches(is_space);
        match self {
            Self::V13a => join(words(&tokenize_13a(line))),
            Self::Intl => join(words(&tokenize_intl(line))),
            Self::Char => join(line.split_inclusive(|_| true).filter(|character| !character.starts_with(is_space))),
            Self::None => join(words(line)),
        }
    }
}

impl FromStr for BleuTokenizer {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|tokenizer| tokenizer.name() == name).ok_or_else(|| {
            Error::message(format!("no BLEU tokenizer is called `{name}`; there are 13a, intl, char and none"))
        })
    }
}

impl Display for BleuTokenizer {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

/// White space as Python sees it, which has four information separators more than Unicode's property.
pub(crate) fn is_space(character: char) -> bool {
    character.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&character)
}

/// The parts of `line` between white space.
pub(crate) fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(is_space).filter(|word| !word.is_empty())
}

/// `tokens` separated by single spaces.
fn join<'a>(tokens: impl Iterator<Item = &'a str>) -> String {
    let mut line = String::new();
    for token in tokens {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(token);
    }
    line
}

/// The rules of `mteval-v13a`, each applied to the whole line before the next.
fn tokenize_13a(line: &str) -> String {
    let mut text = line.replace("<skipped>", "").replace("-\n", "").replace('\n', " ");
    if text.contains('&') {
        // In this order, an escaped entity such as `&amp;lt;` is resolved twice, as in the original.
        text = text.replace("&quot;", "\"").replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">");
    }
    let mut spaced = String::with_capacity(text.len() * 2);
    spaced.push(' ');
    for character in text.chars() {
        if character.is_ascii_punctuation() && !matches!(character, '\'' | ',' | '-' | '.') {
            spaced.extend([' ', character, ' ']);
        } else {
            spaced.push(character);
        }
    }
    spaced.push(' ');
    let is_digit = |character: char| character.is_ascii_digit();
    let is_point = |character: char| matches!(character, '.' | ',');
    let text = rewrite_pairs(&spaced, |left, right| !is_digit(left) && is_point(right), ["", " ", " "]);
    let text = rewrite_pairs(&text, |left, right| is_point(left) && !is_digit(right), [" ", " ", ""]);
    rewrite_pairs(&text, |left, right| is_digit(left) && right == '-', ["", " ", " "])
}

/// Puts `around` before, between and after each pair of neighbours that is a `pair`. Pairs do not overlap: the search
/// goes on behind the one it has found, as a global regular-expression substitution does.
fn rewrite_pairs(text: &str, pair: impl Fn(char, char) -> bool, around: [&str; 3]) -> String {
    let mut rewritten = String::with_capacity(text.len() * 2);
    let mut characters = text.chars().peekable();
    while let Some(left) = characters.next() {
        match characters.next_if(|&right| pair(left, right)) {
            Some(right) => {
                rewritten.push_str(around[0]);
                rewritten.push(left);
                rewritten.push_str(around[1]);
                rewritten.push(right);
                rewritten.push_str(around[2]);
            }
            None => rewritten.push(left),
        }
    }
    rewritten
}

/// The rules of `mteval-v14 --international`. A point after a digit at the end of the line stays with its number, as in
/// the original.
fn tokenize_intl(line: &str) -> String {
    static RULES: LazyLock<[(Regex, &str); 3]> = LazyLock::new(|| {
        let rule = |pattern, replacement| (Regex::new(pattern).expect("a valid pattern"), replacement);
        [rule(r"(\P{N})(\p{P})", "$1 $2 "), rule(r"(\p{P})(\P{N})", " $1 $2"), rule(r"(\p{S})", " $1 ")]
    });
    let mut text = line.to_owned();
    for (pattern, replacement) in RULES.iter() {
        text = pattern.replace_all(&text, *replacement).into_owned();
    }
    text
}
