//! Tokens that were added to a vocabulary: texts have them whole.

use std::collections::HashMap;

use regex::Regex;

/// Added tokens. Each is found in a text before the rest is cut into words: the leftmost first, and of several there
/// the longest, as the library `tokenizers` does it.
#[derive(Debug)]
pub(super) struct Added {
    /// Any of them; nothing where there is none.
    pattern: Option<Regex>,
    ids: HashMap<String, u32>,
}

/// A part of a text.
pub(super) enum Part<'a> {
    /// An added token, by its id.
    Token(u32),
    /// What stands between them.
    Text(&'a str),
}

impl Added {
    /// `id_of` gives the ids of the vocabulary.
    ///
    /// # Errors
    /// If a token is not in the vocabulary, or reaches over the end of a line: long texts are cut there.
    pub(super) fn new(tokens: &[String], id_of: impl Fn(&str) -> Option<u32>) -> Result<Self, String> {
        let mut ids = HashMap::new();
        for token in tokens {
            if token.is_empty() || token.trim_end_matches('\n').contains('\n') {
                return Err(format!("{token:?} is an added token, but is empty or has the end of a line inside"));
            }
            let id = id_of(token).ok_or_else(|| format!("{token:?} is an added token, but not in the vocabulary"))?;
            ids.insert(token.clone(), id);
        }
        // Of alternatives that fit at one place the first is taken.
        let mut longest_first: Vec<&String> = ids.keys().collect();
        longest_first.sort_unstable_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        let any: Vec<String> = longest_first.into_iter().map(|token| regex::escape(token)).collect();
        let pattern = (!any.is_empty()).then(|| Regex::new(&any.join("|"))).transpose();
        Ok(Self { pattern: pattern.map_err(|fault| format!("the added tokens cannot be looked for: {fault}"))?, ids })
    }

    /// Whether a token is one of them.
    pub(super) fn has(&self, token: &str) -> bool {
        self.ids.contains_key(token)
    }

    /// A text in its parts, empty ones left out.
    pub(super) fn parts<'a>(&self, text: &'a str) -> Vec<Part<'a>> {
        let Some(pattern) = &self.pattern else { return vec![Part::Text(text)] };
        let (mut parts, mut end) = (Vec::new(), 0);
        for found in pattern.find_iter(text) {
            parts.extend((end < found.start()).then(|| Part::Text(&text[end..found.start()])));
            parts.push(Part::Token(self.ids[found.as_str()]));
            end = found.end();
        }
        parts.extend((end < text.len()).then(|| Part::Text(&text[end..])));
        parts
    }
}
