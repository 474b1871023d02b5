//! Validation: the loss on held-out pairs, and the score of a translated sample.

use super::config::ValidationScore;
use super::loss::{LossSums, smoothed_cross_entropy};
use super::metrics::Stats;
use crate::data::batch::{Batch, Example, plan_by_length};
use crate::data::{Pair, Tokenizers};
use crate::decoding::{DecodingConfig, Request, decode};
use crate::error::Result;
use crate::layers::Pass;
use crate::models::{Model, Seq2Seq};
use crate::pool::in_pool;
use crate::scoring::{Bleu, sequence_matches};

/// What a validation found.
pub struct Validation {
    /// Loss, accuracy and score.
    pub stats: Stats,
    /// The translations of the sample.
    pub translations: Vec<String>,
}

/// The sums of the loss over `examples`, without dropout or smoothing.
pub fn validate<M: Seq2Seq>(model: &M, examples: &[Example], batch_tokens: usize) -> LossSums {
    let lengths: Vec<(usize, usize)> = examples.iter().map(|e| (e.source.len(), e.target.len())).collect();
    let mut sums = LossSums::default();
    for indices in plan_by_length(&lengths, batch_tokens) {
        let chosen: Vec<&Example> = indices.iter().map(|i| &examples[*i]).collect();
        let batch = Batch::new(&chosen, &model.device());
        sums += in_pool(&model.device(), || {
            let logits = model.forward(&batch.source, &batch.target_input, &mut Pass::inference().fused(true));
            smoothed_cross_entropy(logits, &batch.target_ids, 0.0, 1).sums
        });
    }
    sums
}

/// Translates the sources greedily and scores them against the targets, in percent.
pub fn sample_score(
    model: &Model,
    tokenizers: &Tokenizers,
    sample: &[Pair],
    score: ValidationScore,
    decoding: &DecodingConfig,
) -> Result<(f64, Vec<String>)> {
    let requests = sample.iter().map(|pair| Request::new(tokenizers.source().encode(&pair.source))).collect::<Vec<_>>();
    let greedy = DecodingConfig { beam_size: 1, n_best: 1, sampling: None, ..decoding.clone() };
    let found = decode(model, &requests, &greedy, 0, |_| ());
    let translations: Vec<String> =
        found.iter().map(|hypotheses| tokenizers.target().decode(&hypotheses[0].tokens)).collect();
    let references: Vec<&str> = sample.iter().map(|pair| pair.target.as_str()).collect();
    let value = match score {
        ValidationScore::Bleu => {
            // A model that writes lower case is measured on lower case.
            let bleu = Bleu { lowercase: tokenizers.config().is_lowercase(), ..Bleu::default() };
            bleu.corpus(&translations, &[&references])?.score
        }
        ValidationScore::SequenceAccuracy => {
            let right: f64 = translations.iter().zip(&references).map(|(h, r)| sequence_matches(h, r).numerator).sum();
            100.0 * right / sample.len().max(1) as f64
        }
    };
    Ok((value, translations))
}
