//! `[decoding]`.

use crate::error::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How sentences are drawn at random.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SamplingConfig {
    /// Logits are divided by this: below 1 the likely words become likelier.
    pub temperature: f64,
    /// Only this many of the likeliest words are drawn from; 0 is no limit.
    pub top_k: usize,
    /// Only the likeliest words that together have this probability are drawn from.
    pub top_p: f64,
}

impl Default for SamplingConfig {
    fn default() -> Self {
        Self { temperature: 1.0, top_k: 0, top_p: 1.0 }
    }
}

/// `[decoding]`: how a model writes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DecodingConfig {
    /// Hypotheses kept at each step; 1 is greedy search.
    pub beam_size: usize,
    /// Hypotheses that are given back, at most `beam_size` of them unless they are sampled.
    pub n_best: usize,
    /// `alpha` of the length penalty `((5 + length) / 6)^alpha`, lengths in tokens with the end symbol; 0 is none.
    pub length_penalty: f64,
    /// Whether a beam search ends as soon as `beam_size` hypotheses have. Otherwise it goes on until no open one can get among
    /// the best any more, which takes up to twice as long and gave 0.6 and 0.7 BLEU more on Multi30k.
    pub early_stopping: bool,
    /// Longest target, in tokens: this many for each source token ...
    pub max_len_factor: f64,
    /// ... and this many more.
    pub max_len_extra: usize,
    /// Source tokens in a batch, padding included.
    pub batch_tokens: usize,
    /// Hypotheses in a batch.
    pub batch_sentences: usize,
    /// Draw at random instead of searching.
    pub sampling: Option<SamplingConfig>,
}

impl Default for DecodingConfig {
    fn default() -> Self {
        Self {
            beam_size: 1,
            n_best: 1,
            length_penalty: 1.0,
            early_stopping: false,
            max_len_factor: 2.0,
            max_len_extra: 20,
            batch_tokens: 4096,
            batch_sentences: 128,
            sampling: None,
        }
    }
}

impl DecodingConfig {
    /// Checks every value against its rule.
    pub fn validate(&self) -> Result<()> {
        for (key, value) in [
            ("beam_size", self.beam_size),
            ("n_best", self.n_best),
            ("batch_tokens", self.batch_tokens),
            ("batch_sentences", self.batch_sentences),
        ] {
            if value == 0 {
                return Err(Error::config(format!("decoding.{key}"), "must be at least 1, got 0"));
            }
        }
        if self.n_best > self.beam_size && self.sampling.is_none() {
            let message = format!("must be at most decoding.beam_size, got {} and {}", self.n_best, self.beam_size);
            return Err(Error::config("decoding.n_best", message));
        }
        if !self.length_penalty.is_finite() {
            return Err(Error::config(
                "decoding.length_penalty",
                format!("must be a number, got {}", self.length_penalty),
            ));
        }
        if !(self.max_len_factor >= 0.0 && self.max_len_factor.is_finite()) {
            let message = format!("must be at least 0, got {}", self.max_len_factor);
            return Err(Error::config("decoding.max_len_factor", message));
        }
        if let Some(sampling) = &self.sampling {
            if !(sampling.temperature > 0.0 && sampling.temperature.is_finite()) {
                let message = format!("must be above 0, got {}", sampling.temperature);
                return Err(Error::config("decoding.sampling.temperature", message));
            }
            if !(sampling.top_p > 0.0 && sampling.top_p <= 1.0) {
                let message = format!("must be above 0 and at most 1, got {}", sampling.top_p);
                return Err(Error::config("decoding.sampling.top_p", message));
            }
        }
        Ok(())
    }

    /// Most target tokens, the end symbol included, for a source of `source_len` tokens.
    pub fn cap(&self, source_len: usize, model_limit: Option<usize>) -> usize {
        let cap = (self.max_len_factor * source_len as f64).ceil() as usize + self.max_len_extra;
        cap.max(1).min(model_limit.unwrap_or(usize::MAX))
    }

    /// What the log-probability of a hypothesis of `len` tokens, end included, is divided by.
    ///
    /// # Reference
    /// Wu et al., Google's Neural Machine Translation System, 2016, equation 14; without its coverage term.
    pub fn penalty(&self, len: usize) -> f64 {
        ((5.0 + len as f64) / 6.0).powf(self.length_penalty)
    }
}
