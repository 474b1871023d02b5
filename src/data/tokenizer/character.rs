//! The character tokenizer.

use std::collections::HashMap;

use super::{Model, by_count, side::Side};

/// Every character of the text, the most frequent first.
pub(super) fn train(texts: &[&str]) -> Side {
    let characters = by_count(texts.iter().flat_map(|text| text.chars()));
    Side::Char { vocabulary: characters.into_iter().map(|(c, _)| c).collect() }
}

#[derive(Debug)]
pub(super) struct Characters {
    ids: HashMap<char, u32>,
}

impl Characters {
    pub(super) fn new(vocabulary: &[char]) -> Self {
        Self { ids: vocabulary.iter().zip(0..).map(|(&c, id)| (c, id)).collect() }
    }
}

impl Model for Characters {
    fn encode(&self, text: &str) -> Vec<Option<u32>> {
        text.chars().map(|c| self.ids.get(&c).copied()).collect()
    }

    fn unknown(&self, text: &str) -> Vec<String> {
        text.chars().filter(|c| !self.ids.contains_key(c)).map(String::from).collect()
    }

    fn join(&self, tokens: &[&str]) -> String {
        tokens.concat()
    }

    fn label(&self, token: &str) -> String {
        token.chars().map(|c| if c.is_whitespace() { '␣' } else { c }).collect()
    }
}
