//! Forced decoding: what a model thinks of given targets.

use super::Hypothesis;
use crate::data::batch::{Batch, Example, plan_by_length};
use crate::data::tokenizer::PAD;
use crate::layers::Pass;
use crate::models::Seq2Seq;
use crate::pool::in_pool;
use burn::tensor::activation;

/// The log-probability of every target word, its end symbol last, for each example, in nats.
///
/// The sum of a row is the [`Hypothesis::log_probability`] that decoding would give the same target.
pub fn score_targets<M: Seq2Seq>(model: &M, examples: &[Example], batch_tokens: usize) -> Vec<Vec<f64>> {
    let lengths: Vec<(usize, usize)> = examples.iter().map(|e| (e.source.len(), e.target.len())).collect();
    let mut scores = vec![Vec::new(); examples.len()];
    for indices in plan_by_length(&lengths, batch_tokens) {
        let chosen: Vec<&Example> = indices.iter().map(|i| &examples[*i]).collect();
        let batch = Batch::new(&chosen, &model.device());
        let picked = in_pool(&model.device(), || {
            let logits = model.forward(&batch.source, &batch.target_input, &mut Pass::inference().fused(true));
            let log_p = activation::log_softmax(logits, 2);
            crate::models::weights::to_vec(log_p.gather(2, batch.target_output.ids.clone().unsqueeze_dim(2)))
        });
        let len = batch.target_output.len();
        for (row, index) in indices.iter().enumerate() {
            let words = row * len..(row + 1) * len;
            scores[*index] = words.filter(|i| batch.target_ids[*i] != PAD).map(|i| picked[i] as f64).collect();
        }
    }
    scores
}

impl Hypothesis {
    /// Perplexity per token, end symbol included.
    pub fn perplexity(&self) -> f64 {
        (-self.log_probability / (self.tokens.len() + 1) as f64).exp()
    }
}
