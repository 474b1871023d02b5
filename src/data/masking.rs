//! Texts some of whose tokens are hidden, for models that predict them.

use super::{BOS, EOS, PAD, Tokenizer, UNK};
use crate::random::Stream;

/// What becomes of a chosen token in training (Devlin 2019, 3.1): hidden, another word, or, with what is left of the
/// probability, itself; so that a state says something of every token, and not of hidden ones alone.
const HIDDEN: f64 = 0.8;
const ANOTHER: f64 = 0.1;

/// How tokens are hidden.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Masking {
    /// What a hidden token is read as.
    pub mask: u32,
    /// Tokens of the vocabulary, special ones included.
    pub vocab_size: usize,
    /// The part of the tokens that is chosen.
    pub rate: f64,
}

/// A text with chosen tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Masked {
    /// The tokens as they are read.
    pub read: Vec<u32>,
    /// The tokens that were chosen as they were, [`PAD`] elsewhere.
    pub asked: Vec<u32>,
}

impl Masking {
    /// That of a vocabulary with a token for hidden words; nothing for others.
    pub fn new(tokenizer: &Tokenizer, rate: f64) -> Option<Self> {
        Some(Self { mask: tokenizer.mask()?, vocab_size: tokenizer.vocab_size(), rate })
    }

    /// A text to learn from: of the tokens chosen by `stream`, most are hidden, some are replaced, some stay.
    pub fn learnt(&self, text: &[u32], stream: &Stream) -> Masked {
        let n = text.len() as u64;
        self.masked(text, stream, |place| match stream.unit(n + 2 * place) {
            draw if draw < HIDDEN => self.mask,
            draw if draw < HIDDEN + ANOTHER => {
                let first = UNK + 1;
                first + (stream.bits(n + 2 * place + 1) % (self.vocab_size as u64 - u64::from(first))) as u32
            }
            _ => text[place as usize],
        })
    }

    /// Whether a text has a token that can be hidden.
    pub fn has_something(&self, text: &[u32]) -> bool {
        text.iter().any(|token| self.can_hide(*token))
    }

    /// Ends and beginnings of texts, and what the vocabulary does not hold, are no answers.
    fn can_hide(&self, token: u32) -> bool {
        ![PAD, BOS, EOS, UNK, self.mask].contains(&token)
    }

    /// A text to measure on: all tokens chosen by `stream` are hidden.
    pub fn measured(&self, text: &[u32], stream: &Stream) -> Masked {
        self.masked(text, stream, |_| self.mask)
    }

    /// Chooses `rate` of the tokens, at least one if there is one to choose.
    fn masked(&self, text: &[u32], stream: &Stream, read: impl Fn(u64) -> u32) -> Masked {
        let mut free: Vec<usize> = (0..text.len()).filter(|place| self.can_hide(text[*place])).collect();
        let n = ((self.rate * free.len() as f64).round() as usize).max(1).min(free.len());
        let mut masked = Masked { read: text.to_vec(), asked: vec![PAD; text.len()] };
        for i in 0..n {
            // The beginning of a shuffle.
            let other = i + (stream.bits(i as u64) % (free.len() - i) as u64) as usize;
            free.swap(i, other);
            let place = free[i];
            masked.asked[place] = text[place];
            masked.read[place] = read(place as u64);
        }
        masked
    }
}

/// A piece of a stream of text as one text, whose end symbol is put behind it in any case.
pub fn without_end(piece: &[u32]) -> &[u32] {
    piece.strip_suffix(&[EOS]).unwrap_or(piece)
}
