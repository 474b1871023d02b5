//! The options of commands that translate, and the search of those that look at one translation.

use crate::backend::is_host;
use crate::decoding::{DecodingConfig, EarlyStopping, SamplingConfig};
use crate::error::{Error, Result};
use crate::experiment::{LoadedModel, Run};
use crate::models::{Autoregressive, Ensemble, PreparedModel};
use crate::notice;
use clap::Args;
use std::fmt::Display;
use std::path::Path;

/// Decoding options; the defaults come from the run's config.
#[derive(Args, Debug)]
pub(super) struct DecodingArgs {
    /// Beam size; 1 is greedy search.
    #[arg(long, conflicts_with = "sample")]
    beam: Option<usize>,
    /// Hypotheses to print for each sentence, as "LINE ||| TEXT ||| SCORE".
    #[arg(long)]
    n_best: Option<usize>,
    /// Exponent of the length penalty.
    #[arg(long)]
    length_penalty: Option<f64>,
    /// Stop a beam search as soon as it has as many translations as the beam size: up to twice
    /// as fast, at the cost of some half a point of BLEU.
    #[arg(long, overrides_with = "no_early_stopping", conflicts_with = "sample")]
    early_stopping: bool,
    /// Search until no better hypothesis is possible, even if the run's config stops early.
    #[arg(long, overrides_with = "early_stopping", conflicts_with = "sample")]
    no_early_stopping: bool,
    /// Longest target, in tokens for each source token; `decoding.max_len_extra` is added.
    #[arg(long)]
    max_len_factor: Option<f64>,
    /// Longest accepted source, in tokens.
    #[arg(long, value_name = "N")]
    max_source_len: Option<usize>,
    /// Source tokens in a batch, padding included.
    #[arg(long)]
    batch_tokens: Option<usize>,
    /// Multiply in 8 bits, weights and what they are multiplied with: two to four times as fast, and
    /// nearly as good; on the CPU only.
    #[arg(long)]
    int8: bool,
    #[command(flatten, next_help_heading = "Decoding")]
    pub(super) sampling: SamplingArgs,
}

/// The key that says where answers are cut.
pub(super) const CAP: &str = "decoding.max_len_factor";

/// Says how many answers were cut at the length cap, if any: `what` they are, and what is `too_low` if the model does end them.
pub(super) fn warn_of_cut(cut: usize, n: impl Display, what: &str, too_low: &str, decoding: &DecodingConfig) {
    if cut > 0 {
        let (factor, extra) = decoding.length_cap();
        notice::warn(format_args!(
            "{cut} of {n} {what} were cut at the length cap of {factor} tokens for each source token and {extra} more: \
             the model does not end them, or {too_low} is too low"
        ));
    }
}

/// Keys of the run's config that a command sets for itself.
#[derive(Args, Debug)]
pub(super) struct SetArgs {
    /// Override a key of the run's config under decoding: --set decoding.max_len_extra=50
    #[arg(short, long = "set", value_name = "KEY.PATH=VALUE")]
    set: Vec<String>,
}

impl SetArgs {
    /// The decoding settings of a run with what was set here.
    ///
    /// # Errors
    /// If a key is not one of decoding, or its value breaks a rule.
    pub(super) fn decoding_of(&self, run: &Path) -> Result<DecodingConfig> {
        let message = "has no effect here: the model is trained, and its data are not read; only decoding can be set";
        decoding_with(run, &self.set, "decoding.", message)
    }
}

/// The decoding settings of a run with what is `set` of keys that begin with `allowed`; of others `message` is said.
///
/// # Errors
/// If a key is another, or its value breaks a rule.
pub(super) fn decoding_with(run: &Path, set: &[String], allowed: &str, message: &str) -> Result<DecodingConfig> {
    check_keys(set, &[allowed], message)?;
    let run = Run::open(run)?;
    Ok(if set.is_empty() { run.config()? } else { run.config_with(set)? }.decoding)
}

/// Refuses settings of keys that begin with none of `allowed`, with `message`.
pub(super) fn check_keys(set: &[String], allowed: &[&str], message: &str) -> Result<()> {
    let key = |setting: &String| setting.split('=').next().unwrap_or_default().trim().to_string();
    match set.iter().map(key).find(|key| !allowed.iter().any(|start| key.starts_with(start))) {
        Some(other) => Err(Error::config(other, message)),
        None => Ok(()),
    }
}

/// Sampling options; the defaults come from the run's config.
#[derive(Args, Debug)]
pub(super) struct SamplingArgs {
    /// Sample words instead of taking the most likely.
    #[arg(long)]
    sample: bool,
    /// Temperature of sampling.
    #[arg(long, requires = "sample")]
    temperature: Option<f64>,
    /// Sample from this many of the most likely words.
    #[arg(long, requires = "sample")]
    top_k: Option<usize>,
    /// Sample from the most likely words that together have this probability.
    #[arg(long, requires = "sample")]
    top_p: Option<f64>,
    /// Seed of sampling [default: the run's].
    #[arg(long, requires = "sample")]
    pub(super) seed: Option<u64>,
}

impl SamplingArgs {
    /// The settings with the given options, if sampling was requested.
    pub(super) fn drawn(&self, own: Option<&SamplingConfig>) -> Option<SamplingConfig> {
        let own = own.cloned().unwrap_or_default();
        self.sample.then(|| SamplingConfig {
            temperature: self.temperature.unwrap_or(own.temperature),
            top_k: self.top_k.unwrap_or(own.top_k),
            top_p: self.top_p.unwrap_or(own.top_p),
        })
    }
}

impl DecodingArgs {
    /// The first option that was given, for commands that decode nothing.
    pub(super) fn first_given(&self) -> Option<&'static str> {
        let given = [
            (self.beam.is_some(), "--beam"),
            (self.n_best.is_some(), "--n-best"),
            (self.length_penalty.is_some(), "--length-penalty"),
            (self.early_stopping, "--early-stopping"),
            (self.no_early_stopping, "--no-early-stopping"),
            (self.max_len_factor.is_some(), "--max-len-factor"),
            (self.max_source_len.is_some(), "--max-source-len"),
            (self.batch_tokens.is_some(), "--batch-tokens"),
            (self.int8, "--int8"),
            (self.sampling.sample, "--sample"),
        ];
        given.into_iter().find(|(is_given, _)| *is_given).map(|(_, name)| name)
    }

    /// Whether a list of hypotheses was requested.
    pub(super) fn has_n_best(&self) -> bool {
        self.n_best.is_some()
    }

    /// The run's decoding settings with what was given here, checked.
    pub(super) fn apply(&self, config: &DecodingConfig) -> Result<DecodingConfig> {
        let mut config = config.clone();
        config.beam_size = self.beam.unwrap_or(config.beam_size);
        // A beam smaller than the configured n-best list gives a shorter list.
        config.n_best = self.n_best.unwrap_or(config.n_best.min(config.beam_size));
        if self.beam.is_none() && !self.sampling.sample {
            config.beam_size = config.beam_size.max(config.n_best);
        }
        config.length_penalty = self.length_penalty.unwrap_or(config.length_penalty);
        if self.early_stopping {
            config.early_stopping = EarlyStopping::Full(true);
        }
        if self.no_early_stopping {
            config.early_stopping = EarlyStopping::Full(false);
        }
        config.max_len_factor = self.max_len_factor.or(config.max_len_factor);
        config.max_source_len = self.max_source_len.unwrap_or(config.max_source_len);
        config.batch_tokens = self.batch_tokens.unwrap_or(config.batch_tokens);
        if let Some(drawn) = self.sampling.drawn(config.sampling.as_ref()) {
            config.sampling = Some(drawn);
            config.beam_size = 1;
        } else if self.beam.is_some() {
            config.sampling = None;
        }
        config.validate()?;
        Ok(config)
    }

    /// The models prepared for decoding: in 8 bits if they are to be, or have 8 bits already and lie on the CPU. What is loaded is rounded
    /// with them.
    pub(super) fn prepare(&self, loaded: &mut [LoadedModel]) -> Result<Ensemble<PreparedModel>> {
        let has_int8 = loaded.iter().all(|loaded| loaded.is_int8 && is_host(&loaded.model.device()));
        let mut models = Vec::new();
        for loaded in loaded {
            let model = loaded.model.clone();
            let model = if self.int8 || has_int8 { PreparedModel::int8(model)? } else { PreparedModel::new(model) };
            loaded.model = model.floats().clone();
            models.push(model);
        }
        Ok(Ensemble::new(models))
    }
}

/// How a model finds the translation that is looked at: it searches, even where a run samples, so that it is the same each
/// time.
pub(super) fn search(config: &DecodingConfig, beam: Option<usize>) -> Result<DecodingConfig> {
    let beam_size = beam.unwrap_or(config.beam_size);
    let config = DecodingConfig { beam_size, n_best: 1, sampling: None, ..config.clone() };
    config.validate()?;
    Ok(config)
}
