//! Tokens that come one by one, as text that grows.

use super::{EOS, Tokenizer};

/// The text of tokens that come one by one: what all pushes gave, one after the other, is
/// [`text_of`](super::text::text_of) the tokens but for a character that is not yet whole.
#[derive(Clone, Debug, Default)]
pub struct GrowingText {
    /// The tokens of the line that is being written, and the bytes of its text that have been given.
    line: Vec<u32>,
    n_given: usize,
}

impl GrowingText {
    /// What the next token adds. A token may end inside a character, which is held back until it is whole.
    pub fn push(&mut self, id: u32, tokenizer: &Tokenizer) -> String {
        let is_end = id == EOS;
        if !is_end {
            self.line.push(id);
        }
        let text = tokenizer.decode(&self.line);
        let whole = if is_end { &text[..] } else { text.trim_end_matches(char::REPLACEMENT_CHARACTER) };
        let mut new = whole.get(self.n_given..).unwrap_or_default().to_string();
        self.n_given += new.len();
        if is_end {
            new.push('\n');
            self.line.clear();
            self.n_given = 0;
        }
        new
    }

    /// What `id` would add.
    pub fn with(&self, id: u32, tokenizer: &Tokenizer) -> String {
        self.clone().push(id, tokenizer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::text::text_of;
    use crate::data::{Tokenizers, TokenizersConfig};

    #[test]
    fn what_was_given_is_the_text() {
        let config: TokenizersConfig =
            serde_json::from_value(serde_json::json!({ "kind": "byte-bpe", "vocab_size": 260 })).unwrap();
        let tokenizers = Tokenizers::train_text(&["é → a", "bß c"], &config, false).unwrap();
        let tokenizer = tokenizers.target();
        let mut ids = tokenizer.encode("é → a");
        ids.push(EOS);
        ids.extend(tokenizer.encode("bß c"));
        let mut growing = GrowingText::default();
        let pieces: Vec<String> = ids.iter().map(|id| growing.push(*id, tokenizer)).collect();
        assert_eq!(pieces.concat(), text_of(&ids, tokenizer));
        // The first byte of a character of two gives nothing; no piece holds half of one.
        assert_eq!((pieces[0].as_str(), pieces[1].as_str()), ("", "é"));
        assert!(pieces.iter().all(|piece| !piece.contains(char::REPLACEMENT_CHARACTER)));
    }
}
