//! Widths that give every contestant as many parameters as the first.

use super::plan::Entrant;
use crate::backend::Adapter;
use crate::data::Tokenizers;
use crate::data::tokenizer::sampled;
use crate::error::{Error, Result};
use crate::experiment::{Config, dataset, run};
use crate::models::{ModelConfig, Vocabularies};
use burn::module::Module;
use std::borrow::Cow;

/// How far the numbers of parameters may be apart, as a part.
pub const TOLERANCE: f64 = 0.05;

/// The sizes of the vocabularies that training will find.
///
/// # Errors
/// If the data cannot be read.
pub fn vocabularies(config: &Config) -> Result<Vocabularies> {
    let corpus = dataset::load(&config.data, config.seed)?;
    let numbers = config.model.answers_with_numbers();
    let train = if numbers { Cow::Borrowed(&corpus.train[..]) } else { sampled(&corpus.train, config.seed) };
    Ok(run::vocabularies(&Tokenizers::train(&train, &config.tokenizer)?))
}

/// The number of parameters.
///
/// # Errors
/// If the model cannot be made.
pub fn parameters(model: &ModelConfig, vocabularies: Vocabularies, adapter: &Adapter) -> Result<usize> {
    Ok(model.blank(vocabularies, &adapter.device)?.num_params())
}

/// Changes the widths of all but the first until each has as many parameters, within [`TOLERANCE`].
///
/// Recurrent models change `d_hidden`, Transformers `d_model` and with it `d_feed_forward` in proportion.
///
/// # Errors
/// If a run that is finished has another number of parameters, or no width fits.
pub fn match_parameters(entrants: &mut [Entrant], adapter: &Adapter) -> Result<()> {
    let first = &entrants[0];
    let target = parameters(&first.config.model, vocabularies(&first.config)?, adapter)?;
    for entrant in &mut entrants[1..] {
        let vocabularies = vocabularies(&entrant.config)?;
        let own = parameters(&entrant.config.model, vocabularies, adapter)?;
        if is_close(own, target) {
            continue;
        }
        if entrant.is_given {
            return Err(Error::message(format!(
                "{} is finished and has {own} parameters, not {target}; --match-parameters can only change what is not yet trained",
                entrant.name
            )));
        }
        entrant.config.model = matched(&entrant.config.model, vocabularies, target, adapter)?.ok_or_else(|| {
            Error::message(format!(
                "no width gives {} within 5 % of {target} parameters; change the embeddings or the number of layers in its config",
                entrant.name
            ))
        })?;
    }
    Ok(())
}

/// Whether two numbers of parameters are equal within [`TOLERANCE`].
pub fn is_close(left: usize, right: usize) -> bool {
    let (less, more) = (left.min(right) as f64, left.max(right) as f64);
    more <= less * (1.0 + TOLERANCE)
}

/// The model with the width nearest to `target` parameters, if that is near enough. Parameters rise with the width.
fn matched(
    model: &ModelConfig,
    vocabularies: Vocabularies,
    target: usize,
    adapter: &Adapter,
) -> Result<Option<ModelConfig>> {
    let count = |steps: usize| parameters(&widened(model, steps), vocabularies, adapter);
    let mut high = 1;
    while count(high)? < target && high < 1 << 14 {
        high *= 2;
    }
    let mut low = high / 2;
    while low + 1 < high {
        let middle = (low + high) / 2;
        if count(middle)? < target { low = middle } else { high = middle }
    }
    for steps in [high, low.max(1)] {
        for model in adjusted(&widened(model, steps)) {
            if is_close(parameters(&model, vocabularies, adapter)?, target) {
                return Ok(Some(model));
            }
        }
    }
    Ok(None)
}

/// The model `steps` of its smallest steps wide.
fn widened(model: &ModelConfig, steps: usize) -> ModelConfig {
    let mut model = model.clone();
    model.family_mut().set_width(steps);
    model
}

/// The model itself, and one with feed-forward networks with their inner width moved too, for widths whose steps are large.
fn adjusted(model: &ModelConfig) -> Vec<ModelConfig> {
    let moved = |part: f64| {
        let mut model = model.clone();
        let d_feed_forward = model.family_mut().d_feed_forward_mut()?;
        *d_feed_forward = ((*d_feed_forward as f64 * part).round() as usize).max(1);
        Some(model)
    };
    let parts = [0.9, 1.1, 0.8, 1.2, 0.7, 1.3, 0.5, 1.5];
    [model.clone()].into_iter().chain(parts.into_iter().filter_map(moved)).collect()
}
