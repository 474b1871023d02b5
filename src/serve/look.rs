//! Answers to `/tokenize`, `/score` and `/explain`.

use super::catalogue::Entry;
use super::fault::Fault;
use super::fields::Texts;
use super::worker::Models;
use crate::data::batch::Example;
use crate::data::tokenizer::{EOS, Tokenizer};
use crate::decoding::{DecodingConfig, length_fault, score_targets};
use crate::report::explanation::{Detail, Question, Selection, explain, notes};
use serde_json::{Value, json};

/// The pieces and ids of each text.
pub(super) fn tokenize(tokenizer: &Tokenizer, texts: &Texts) -> Vec<Value> {
    let one = |text: &String| {
        let ids = tokenizer.encode(text.trim());
        json!({ "tokens": ids.iter().map(|id| tokenizer.label(*id)).collect::<Vec<_>>(), "ids": ids })
    };
    texts.texts.iter().map(one).collect()
}

/// The token ids of sources and given targets.
///
/// # Errors
/// If there are not as many of both, more than `max_lines`, or one has more tokens than the model takes.
pub(super) fn examples(
    entry: &Entry,
    sources: &Texts,
    targets: &Texts,
    max_lines: usize,
) -> Result<Vec<Example>, Fault> {
    let (n_sources, n_targets) = (sources.texts.len(), targets.texts.len());
    if n_sources != n_targets || sources.is_list != targets.is_list {
        let message =
            format!("q has {n_sources} texts and translation {n_targets}; give one translation for each text");
        return Err(Fault::bad(message));
    }
    if n_sources > max_lines {
        let message = format!("q has {n_sources} texts, and a request may have {max_lines}; send several requests");
        return Err(Fault::bad(message));
    }
    let limits = [entry.decoding.source_limit(entry.limits.source), entry.limits.target];
    let mut examples = Vec::with_capacity(n_sources);
    for (i, (source, target)) in sources.texts.iter().zip(&targets.texts).enumerate() {
        let source = entry.tokenizers.source().encode(source.trim());
        let target = entry.tokenizers.target().encode(target.trim());
        let sides = [(sources.place("q", i), &source), (targets.place("translation", i), &target)];
        for ((place, ids), limit) in sides.into_iter().zip(limits) {
            if let Some(fault) = length_fault(limit, ids.len()) {
                return Err(Fault::bad(format!("{place} {fault}")));
            }
        }
        examples.push(Example { source, target });
    }
    Ok(examples)
}

/// The log-probabilities of given targets.
pub(super) fn score(entry: &Entry, models: &Models, examples: &[Example]) -> Vec<Value> {
    let tokenizer = entry.tokenizers.target();
    let scores = score_targets(&models.model, examples, entry.decoding.batch_tokens);
    let one = |(example, scores): (&Example, Vec<f64>)| {
        let sum: f64 = scores.iter().sum();
        let tokens: Vec<String> = example.target.iter().chain([&EOS]).map(|id| tokenizer.label(*id)).collect();
        json!({
            "log_probability": sum,
            "perplexity": (-sum / scores.len().max(1) as f64).exp(),
            "tokens": tokens,
            "token_log_probabilities": scores,
        })
    };
    examples.iter().zip(scores).map(one).collect()
}

/// What is to be explained.
pub(super) struct Asked {
    pub(super) source: String,
    pub(super) target: Option<String>,
    pub(super) selection: Selection,
}

impl Asked {
    /// Checks the texts.
    ///
    /// # Errors
    /// If the source is empty, or a text has more tokens than the model takes.
    pub(super) fn check(&self, entry: &Entry) -> Result<(), Fault> {
        let source = entry.tokenizers.source().encode(self.source.trim());
        if source.is_empty() {
            return Err(Fault::bad("q is empty; give a sentence"));
        }
        let target = self.target.as_ref().map(|target| entry.tokenizers.target().encode(target.trim()));
        let limit = entry.decoding.source_limit(entry.limits.source);
        let faults = [
            ("q", length_fault(limit, source.len())),
            ("translation", target.and_then(|target| length_fault(entry.limits.target, target.len()))),
        ];
        match faults.into_iter().find_map(|(place, fault)| Some((place, fault?))) {
            Some((place, fault)) => Err(Fault::bad(format!("{place} {fault}"))),
            None => Ok(()),
        }
    }

    /// The JSON of `lookback explain --json`.
    ///
    /// # Errors
    /// If there is no such step, layer or head.
    pub(super) fn explain(&self, entry: &Entry, models: &Models) -> Result<String, Fault> {
        let config = &entry.config;
        // The translation that is looked at is searched for, also where a run samples, so that it is the same each time.
        let decoding = DecodingConfig { n_best: 1, sampling: None, ..entry.decoding.clone() };
        let question = Question {
            source_text: self.source.trim(),
            target_text: self.target.as_deref().map(str::trim),
            decoding: &decoding,
            seed: entry.seed,
            detail: self.selection.step.map_or(Detail::Everything, Detail::Step),
        };
        let mut explanation = explain(&models.model, config, &entry.tokenizers, &question, |_, _, _| ());
        explanation.model = format!("{}; {}", explanation.model, entry.name);
        explanation.notes = notes(&entry.tokenizers, &question, !config.has_masks(), &explanation);
        self.selection.check(&explanation).map_err(|error| Fault::bad(error.to_string().replace("--", "")))?;
        Ok(serde_json::to_string(&explanation.select(&self.selection)).expect("an explanation is plain data"))
    }
}
