//! One completion: tokens that come one by one, as text, until it ends.

use super::request::{Asked, Prompt};
use crate::data::{GrowingText, Tokenizer};
use crate::decoding::NextToken;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// One completion of one prompt.
pub(super) struct Choice {
    /// The prompt's tokens that are echoed, before they are.
    echoed: Vec<u32>,
    /// Whether those come with their probabilities.
    scores_prompt: bool,
    /// Tokens of the prompt that have no place in the answer.
    n_added: usize,
    stops: Vec<String>,
    max_tokens: usize,
    text: GrowingText,
    /// Tokens that came with probabilities: those of the prompt, if returned, and those that were written.
    n_seen: usize,
    n_written: usize,
    /// Text that may be the beginning of one that ends the completion.
    held: String,
    /// Tokens whose probabilities wait for their text.
    scored: Vec<Scored>,
    /// Characters of the text so far.
    n_characters: usize,
    is_stopped: Arc<AtomicBool>,
    finish: Option<&'static str>,
}

/// A token with its place in the text.
struct Scored {
    text: String,
    offset: usize,
    log_probability: Option<f64>,
    likeliest: Map<String, Value>,
}

/// What a token adds to the answer.
pub(super) struct Piece {
    pub(super) text: String,
    pub(super) logprobs: Value,
    pub(super) finish: Option<&'static str>,
}

impl Choice {
    pub(super) fn new(prompt: &Prompt, asked: &Asked, tokenizer: &Tokenizer, is_stopped: Arc<AtomicBool>) -> Self {
        let text = match asked.echo {
            true => GrowingText::default(),
            false => GrowingText::after(&prompt.ids, prompt.ends_with_space, tokenizer),
        };
        Self {
            echoed: if asked.echo { prompt.ids[prompt.n_added..].to_vec() } else { Vec::new() },
            scores_prompt: asked.scores_prompt(),
            n_added: prompt.n_added,
            stops: asked.stops.clone(),
            max_tokens: asked.max_tokens,
            text,
            n_seen: 0,
            n_written: 0,
            held: String::new(),
            scored: Vec::new(),
            n_characters: 0,
            is_stopped,
            finish: None,
        }
    }

    /// Whether nothing more is added.
    pub(super) fn is_over(&self) -> bool {
        self.finish.is_some()
    }

    /// Tokens that were written.
    pub(super) fn n_written(&self) -> usize {
        self.n_written
    }

    /// What comes before any token has been written: the prompt, where it is echoed without probabilities.
    pub(super) fn begin(&mut self, tokenizer: &Tokenizer) -> Option<Piece> {
        if self.scores_prompt && !self.echoed.is_empty() {
            // Its tokens come with their probabilities, but for a first one before which there is nothing.
            if self.n_added == 0 {
                let first = self.echoed[0];
                let text = self.text.push(first, tokenizer);
                self.n_seen += 1;
                self.show(text, None, Map::new());
                if self.echoed.len() == 1 && self.max_tokens == 0 {
                    self.finish = Some("length");
                    return Some(self.give(0, true));
                }
            }
            return None;
        }
        let text = self.text.extend(&self.echoed, tokenizer);
        self.n_characters += text.chars().count();
        if self.max_tokens == 0 {
            self.finish = Some("length");
        }
        (!text.is_empty() || self.is_over()).then(|| Piece { text, logprobs: Value::Null, finish: self.finish })
    }

    /// Adds the next token; `has_logprobs` says whether probabilities are returned.
    pub(super) fn push(&mut self, next: &NextToken, tokenizer: &Tokenizer, has_logprobs: bool) -> Piece {
        let mut likeliest = Map::new();
        for (id, log_probability) in &next.likeliest {
            // Two tokens of one text are returned once, with the higher probability.
            likeliest.entry(self.text.with(*id, tokenizer)).or_insert(json!(log_probability));
        }
        let text = self.text.push(next.id, tokenizer);
        self.n_seen += 1;
        let n_prompt = if self.scores_prompt { self.echoed.len() } else { 0 };
        let is_prompt = self.n_seen <= n_prompt;
        self.n_written += usize::from(!is_prompt);
        if has_logprobs {
            self.show(text, Some(next.log_probability), likeliest);
        } else {
            self.held += &text;
        }
        if !is_prompt {
            self.stop();
        }
        if self.finish.is_none() && self.n_written >= self.max_tokens && self.n_seen >= n_prompt {
            self.finish = Some("length");
        }
        let n_held = if self.is_over() || is_prompt { 0 } else { self.n_held() };
        self.give(n_held, has_logprobs)
    }

    fn show(&mut self, text: String, log_probability: Option<f64>, likeliest: Map<String, Value>) {
        let offset = self.n_characters + self.held.chars().count();
        self.held += &text;
        self.scored.push(Scored { text, offset, log_probability, likeliest });
    }

    /// Ends the completion before the first text that ends it.
    fn stop(&mut self) {
        let Some(end) = self.stops.iter().filter_map(|stop| self.held.find(stop)).min() else { return };
        self.held.truncate(end);
        let n_characters = self.n_characters + self.held.chars().count();
        self.scored.retain(|scored| scored.offset < n_characters);
        self.finish = Some("stop");
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    /// Bytes at the end of the held text that may be the beginning of one that ends the completion.
    fn n_held(&self) -> usize {
        let begins = |n: &usize| {
            let from = self.held.len() - n;
            self.held.is_char_boundary(from) && self.stops.iter().any(|stop| stop.starts_with(&self.held[from..]))
        };
        let longest = self.stops.iter().map(String::len).max().unwrap_or(1) - 1;
        (1..=longest.min(self.held.len())).rev().find(begins).unwrap_or(0)
    }

    /// Gives the held text but for its last `n_held` bytes, and the tokens that lie in it.
    fn give(&mut self, n_held: usize, has_logprobs: bool) -> Piece {
        let rest = self.held.split_off(self.held.len() - n_held);
        let text = std::mem::replace(&mut self.held, rest);
        self.n_characters += text.chars().count();
        let n_characters = self.n_characters;
        let given = self.scored.iter().take_while(|scored| n_held == 0 || scored.offset < n_characters).count();
        let scored: Vec<Scored> = self.scored.drain(..given).collect();
        let logprobs = if has_logprobs && !scored.is_empty() { logprobs(scored) } else { Value::Null };
        Piece { text, logprobs, finish: self.finish }
    }
}

/// Tokens as OpenAI has them.
fn logprobs(scored: Vec<Scored>) -> Value {
    let likeliest = |scored: &Scored| match scored.likeliest.is_empty() {
        true => Value::Null,
        false => Value::Object(scored.likeliest.clone()),
    };
    json!({
        "tokens": scored.iter().map(|scored| &scored.text).collect::<Vec<_>>(),
        "token_logprobs": scored.iter().map(|scored| scored.log_probability).collect::<Vec<_>>(),
        "top_logprobs": scored.iter().map(likeliest).collect::<Vec<_>>(),
        "text_offset": scored.iter().map(|scored| scored.offset).collect::<Vec<_>>(),
    })
}
