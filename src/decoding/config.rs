//! `[decoding]`.

use crate::error::{Error, Result};
use crate::models::LengthLimit;
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

impl SamplingConfig {
    /// Checks every value against its rule.
    ///
    /// # Errors
    /// Names the key, the value and the rule.
    pub fn validate(&self) -> Result<()> {
        if !(self.temperature > 0.0 && self.temperature.is_finite()) {
            let message = format!("must be above 0 and finite, got {}", self.temperature);
            return Err(Error::config("decoding.sampling.temperature", message));
        }
        if !(self.top_p > 0.0 && self.top_p <= 1.0) {
            let message = format!("must be above 0 and at most 1, got {}", self.top_p);
            return Err(Error::config("decoding.sampling.top_p", message));
        }
        Ok(())
    }
}

impl Default for SamplingConfig {
    fn default() -> Self {
        Self { temperature: 1.0, top_k: 0, top_p: 1.0 }
    }
}

/// When a beam search ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "must be true, false or \"present-length\"")]
pub enum EarlyStopping {
    /// `true`: as soon as `beam_size` hypotheses have ended. `false`: when no open one can get among the best any more.
    Full(bool),
    /// By a rule of thumb.
    Rule(StopRule),
}

/// A rule of thumb by which a beam search ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StopRule {
    /// As soon as `beam_size` hypotheses have ended and the best open one, were its score to stay as it is at its present length,
    /// would not be better than the worst of them; what `early_stopping = False` means in Hugging Face's transformers.
    PresentLength,
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
    /// What stands for 5 in the length penalty `((5 + length) / (5 + 1))^alpha` (Wu 2016, equation 14). With 0 it is
    /// `length^alpha`, as in Marian and Hugging Face's transformers.
    #[serde(skip_serializing_if = "is_usual_start")]
    pub length_penalty_start: f64,
    /// Whether a beam search ends as soon as `beam_size` hypotheses have. Otherwise it goes on until no open one can get among
    /// the best any more, which takes up to twice as long and gave 0.6 and 0.7 BLEU more on Multi30k. Between the two,
    /// "present-length" asks whether an open one would be among the best if its score stayed as it is, as transformers do.
    pub early_stopping: EarlyStopping,
    /// Longest target, in tokens: this many for each source token ... Without it, `train` derives it from the training data
    /// and writes it into the run's config.
    pub max_len_factor: Option<f64>,
    /// ... and this many more; derived likewise.
    pub max_len_extra: Option<usize>,
    /// Longest source, in tokens with the end symbol. A longer one is refused: time grows with the square of the length, so that
    /// one hostile line would stop all others.
    pub max_source_len: usize,
    /// Source tokens in a batch, padding included.
    pub batch_tokens: usize,
    /// Hypotheses in a batch.
    pub batch_sentences: usize,
    /// Draw at random instead of searching.
    pub sampling: Option<SamplingConfig>,
}

/// The widest beam, and the most translations of a sentence: each has a state of its own.
const MOST_BEAMS: usize = 1000;
const MOST_SAMPLES: usize = 100_000;
/// Wu 2016, equation 14.
const LENGTH_PENALTY_START: f64 = 5.0;

// serde gives a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_usual_start(start: &f64) -> bool {
    *start == LENGTH_PENALTY_START
}

/// The key of [`DecodingConfig::max_source_len`].
pub const MAX_SOURCE_LEN: &str = "decoding.max_source_len";

/// Target tokens for each source token where no training data say otherwise.
const CAP_FACTOR: f64 = 2.0;
/// Target tokens besides, where no training data ask for more.
const CAP_EXTRA: usize = 20;

/// What is wrong with a sentence of `n_tokens`, the end symbol not counted, that is longer than a model takes.
pub fn length_fault(limit: Option<LengthLimit>, n_tokens: usize) -> Option<String> {
    let LengthLimit { len: most, key } = limit?;
    let len = n_tokens + 1;
    let rest = match key {
        _ if len <= most => return None,
        MAX_SOURCE_LEN => format!("more than {key} = {most}; split the line, or raise it with --max-source-len"),
        _ => format!(
            "but the model was trained with {key} = {most}; split the line, or train a model without that limit"
        ),
    };
    Some(format!("has {len} tokens with the end symbol, {rest}"))
}

impl Default for DecodingConfig {
    fn default() -> Self {
        Self {
            beam_size: 1,
            n_best: 1,
            length_penalty: 1.0,
            length_penalty_start: LENGTH_PENALTY_START,
            early_stopping: EarlyStopping::Full(false),
            max_len_factor: None,
            max_len_extra: None,
            max_source_len: 10_000,
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
            ("max_source_len", self.max_source_len),
            ("batch_tokens", self.batch_tokens),
            ("batch_sentences", self.batch_sentences),
        ] {
            if value == 0 {
                return Err(Error::config(format!("decoding.{key}"), "must be at least 1, got 0"));
            }
        }
        for (key, value, most) in [("beam_size", self.beam_size, MOST_BEAMS), ("n_best", self.n_best, MOST_SAMPLES)] {
            if value > most {
                return Err(Error::config(format!("decoding.{key}"), format!("must be at most {most}, got {value}")));
            }
        }
        if self.n_best > self.beam_size && self.sampling.is_none() {
            let message = format!("must be at most decoding.beam_size, got {} and {}", self.n_best, self.beam_size);
            return Err(Error::config("decoding.n_best", message));
        }
        if !self.length_penalty.is_finite() {
            return Err(Error::config(
                "decoding.length_penalty",
                format!("must be finite, got {}", self.length_penalty),
            ));
        }
        if !(self.length_penalty_start >= 0.0 && self.length_penalty_start.is_finite()) {
            return Err(Error::config(
                "decoding.length_penalty_start",
                format!("must be a finite number of at least 0, got {}", self.length_penalty_start),
            ));
        }
        if let Some(factor) = self.max_len_factor.filter(|factor| !(*factor >= 0.0 && factor.is_finite())) {
            let message = format!("must be a finite number of at least 0, got {factor}");
            return Err(Error::config("decoding.max_len_factor", message));
        }
        if let Some(sampling) = &self.sampling {
            sampling.validate()?;
        }
        Ok(())
    }

    /// The longest source that is taken: the model's own limit, or [`DecodingConfig::max_source_len`] where that is less.
    pub fn source_limit(&self, of_model: Option<LengthLimit>) -> Option<LengthLimit> {
        let own = LengthLimit { len: self.max_source_len, key: MAX_SOURCE_LEN };
        Some(of_model.filter(|limit| limit.len <= own.len).unwrap_or(own))
    }

    /// Most target tokens, the end symbol included, for a source of `source_len` tokens.
    pub fn cap(&self, source_len: usize, model_limit: Option<usize>) -> usize {
        let (factor, extra) = self.length_cap();
        let cap = ((factor * source_len as f64).ceil() as usize).saturating_add(extra);
        cap.max(1).min(model_limit.unwrap_or(usize::MAX))
    }

    /// The numbers of the length cap: tokens for each source token, and tokens besides.
    pub fn length_cap(&self) -> (f64, usize) {
        (self.max_len_factor.unwrap_or(CAP_FACTOR), self.max_len_extra.unwrap_or(CAP_EXTRA))
    }

    /// These settings, with the length cap of `other` where they have none of their own.
    pub fn with_cap_of(mut self, other: &Self) -> Self {
        self.max_len_factor = self.max_len_factor.or(other.max_len_factor);
        self.max_len_extra = self.max_len_extra.or(other.max_len_extra);
        self
    }

    /// Derives what is not set of the length cap from the lengths, in tokens, of training sources and targets: twice a line that
    /// no target is above, with the slope of the mean ratio of target to source.
    ///
    /// Twice, because test sentences may be longer than any of training; and at least 20 tokens besides, because a
    /// cap costs nothing where models end their sentences themselves.
    pub fn fit_cap(&mut self, lengths: impl Iterator<Item = (usize, usize)> + Clone) {
        // One more for the end symbol.
        let lengths = lengths.filter(|(source, _)| *source > 0).map(|(source, target)| (source, target + 1));
        let (sources, targets) = lengths.clone().fold((0, 0), |sums, pair| (sums.0 + pair.0, sums.1 + pair.1));
        if sources == 0 {
            return;
        }
        // To a hundredth, as it stands in the config.
        let slope = (100.0 * targets as f64 / sources as f64).ceil() / 100.0;
        let above = |(source, target)| target as f64 - slope * source as f64;
        let offset = lengths.map(above).fold(0.0, f64::max);
        self.max_len_factor.get_or_insert(2.0 * slope);
        self.max_len_extra.get_or_insert(CAP_EXTRA.max((2.0 * offset).ceil() as usize));
    }

    /// What the log-probability of a hypothesis of `len` tokens, end included, is divided by.
    ///
    /// # Reference
    /// Wu et al., Google's Neural Machine Translation System, 2016, equation 14; without its coverage term, and with any start.
    pub fn penalty(&self, len: usize) -> f64 {
        let start = self.length_penalty_start;
        ((start + len as f64) / (start + 1.0)).powf(self.length_penalty)
    }
}
