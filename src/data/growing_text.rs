//! Tokens that come one by one, as text that grows.

use super::{EOS, Tokenizer};

/// Tokens before the next that decide how it is written: as many are decoded again with it, and no more, however long the line is.
const CONTEXT: usize = 32;

/// The text of tokens that come one by one: what all pushes gave, one after the other, is
/// [`text_of`](super::text::text_of) the tokens but for a character that is not yet whole.
#[derive(Clone, Debug, Default)]
pub struct GrowingText {
    /// The last tokens of the line that is being written, and the bytes of their text that have been given.
    line: Vec<u32>,
    n_given: usize,
    /// Whether the text before ends with white space, which its tokens may not have.
    is_after_space: bool,
}

impl GrowingText {
    /// The text of tokens that come after those of `prompt`, which is given already and ends with white space or not: the first of them
    /// is written as it is there, with the space that is between words.
    pub fn after(prompt: &[u32], is_after_space: bool, tokenizer: &Tokenizer) -> Self {
        let line = prompt.rsplit(|id| *id == EOS).next().unwrap_or_default();
        let line = line[line.len().saturating_sub(CONTEXT)..].to_vec();
        let text = tokenizer.decode(&line);
        let n_given = text.trim_end_matches(char::REPLACEMENT_CHARACTER).len();
        Self { line, n_given, is_after_space: is_after_space && !text.ends_with(char::is_whitespace) }
    }

    /// What the next token adds. A token may end inside a character, which is held back until it is whole.
    pub fn push(&mut self, id: u32, tokenizer: &Tokenizer) -> String {
        self.extend(&[id], tokenizer)
    }

    /// What the next tokens add together.
    pub fn extend(&mut self, ids: &[u32], tokenizer: &Tokenizer) -> String {
        let mut all = String::new();
        for part in ids.split_inclusive(|id| *id == EOS) {
            let is_end = part.last() == Some(&EOS);
            self.line.extend(&part[..part.len() - usize::from(is_end)]);
            let text = tokenizer.decode(&self.line);
            let whole = if is_end { &text[..] } else { text.trim_end_matches(char::REPLACEMENT_CHARACTER) };
            all += whole.get(self.n_given..).unwrap_or_default();
            self.n_given = self.n_given.max(whole.len());
            if is_end {
                all.push('\n');
                self.line.clear();
                self.n_given = 0;
            } else if self.line.len() > 2 * CONTEXT && whole.len() == text.len() {
                self.line.drain(..self.line.len() - CONTEXT);
                self.n_given = tokenizer.decode(&self.line).len();
            }
        }
        if self.is_after_space && !all.is_empty() {
            self.is_after_space = false;
            all = all.strip_prefix(' ').map(String::from).unwrap_or(all);
        }
        all
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

    #[test]
    fn what_follows_a_prompt_is_written_as_it_is_after_it() {
        let text = "the cat sees the child . the dog sees the cat .";
        for kind in ["byte-bpe", "bpe", "unigram", "char", "word"] {
            let mut config = serde_json::json!({ "kind": kind });
            if !["char", "word"].contains(&kind) {
                config["vocab_size"] = 300.into();
            }
            let config: TokenizersConfig = serde_json::from_value(config).unwrap();
            let tokenizers = Tokenizers::train_text(&[text, text], &config, false).unwrap();
            let tokenizer = tokenizers.target();
            let (prompt, rest) = text.split_at("the cat sees the".len());
            let ids = crate::data::text::prompt_ids(prompt, tokenizer);
            let next = crate::data::text::continuation_ids(prompt, rest, tokenizer);
            let mut growing = GrowingText::after(&ids, false, tokenizer);
            let pieces: String = next.iter().map(|id| growing.push(*id, tokenizer)).collect();
            assert_eq!(pieces, rest, "{kind}");
            let spaced = GrowingText::after(&ids, true, tokenizer).extend(&next, tokenizer);
            assert_eq!(spaced, rest.trim_start(), "{kind}: the space is there already");
            // A line that begins has no space before it.
            let mut ended = ids.clone();
            ended.push(EOS);
            let own = ids.strip_prefix(&[EOS]).unwrap_or(&ids);
            let begun = GrowingText::after(&ended, true, tokenizer).extend(own, tokenizer);
            assert_eq!(begun, prompt, "{kind}");
        }
    }

    #[test]
    fn of_a_long_line_only_the_last_tokens_are_decoded_again() {
        let text: String = (0..200).map(|i| format!("é{i} naïve, don't → (w{}) ", i * i)).collect();
        for kind in ["byte-bpe", "bpe", "unigram", "word-piece", "char", "word"] {
            let mut config = serde_json::json!({ "kind": kind });
            if !["char", "word"].contains(&kind) {
                config["vocab_size"] = 400.into();
            }
            let config: TokenizersConfig = serde_json::from_value(config).unwrap();
            let tokenizers = Tokenizers::train_text(&[&text], &config, false).unwrap();
            let tokenizer = tokenizers.target();
            let mut ids = tokenizer.encode(&text);
            ids.extend([EOS, ids[0]]);
            assert!(ids.len() > 4 * CONTEXT, "{kind}");
            let mut growing = GrowingText::default();
            let pieces: String = ids.iter().map(|id| growing.push(*id, tokenizer)).collect();
            assert_eq!(pieces, text_of(&ids, tokenizer), "{kind}");
            assert!(growing.line.len() <= 2 * CONTEXT);
            assert_eq!(GrowingText::default().extend(&ids, tokenizer), pieces, "{kind}");
        }
    }
}
