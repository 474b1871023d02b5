//! Forced decoding: what a model thinks of given targets.

use super::{Hypothesis, LogProbabilities, NextToken};
use crate::backend::is_host;
use crate::data::TokenStream;
use crate::data::batch::{Batch, Example, plan_by_length};
use crate::data::text::scored_windows;
use crate::data::tokenizer::PAD;
use crate::kernels::cross_entropy::Weighting;
use crate::layers::Pass;
use crate::models::Seq2Seq;
use crate::models::weights::to_vec;
use crate::ops::{self, Body, Rows, Targets};
use crate::pool::in_pool;
use crate::ranks::{Ranks, share};
use crate::scoring::{TextScores, TextStatistics};
use burn::tensor::{Tensor, activation};

/// Batches whose losses are kept until all of them are there.
pub(super) const BATCHES_AT_ONCE: usize = 64;

/// The log-probability of every target word, its end symbol last, for each example, in nats.
///
/// The sum of a row is the [`Hypothesis::log_probability`] that decoding would give the same target, unless the source decides how long
/// an answer is: then decoding leaves the end out of the running, and here it is a word as any.
pub fn score_targets<M: Seq2Seq>(model: &M, examples: &[Example], batch_tokens: usize) -> Vec<Vec<f64>> {
    let lengths: Vec<(usize, usize)> = examples.iter().map(|e| (e.source.len(), e.target.len())).collect();
    let mut scores = vec![Vec::new(); examples.len()];
    for indices in plan_by_length(&lengths, batch_tokens) {
        let chosen: Vec<&Example> = indices.iter().map(|i| &examples[*i]).collect();
        let batch = Batch::new(&chosen, &model.device());
        let picked = in_pool(&model.device(), || {
            let logits = model.forward(&batch.source, &batch.target_input, &mut Pass::inference().fused(true));
            let log_p = activation::log_softmax(logits, 2);
            to_vec(log_p.gather(2, batch.target_output.ids.clone().unsqueeze_dim(2)))
        });
        let len = batch.target_output.len();
        for (row, index) in indices.iter().enumerate() {
            let words = row * len..(row + 1) * len;
            scores[*index] = words.filter(|i| batch.target_ids[*i] != PAD).map(|i| picked[i] as f64).collect();
        }
    }
    scores
}

/// Every token of a text but the first, as a model without a source predicts it after those before it, with the `n_likeliest`
/// likeliest in its place.
///
/// Callers have checked that the model can have all of the text in sight.
pub fn score_tokens<M: Seq2Seq>(model: &M, ids: &[u32], n_likeliest: usize) -> Vec<NextToken> {
    if ids.len() < 2 {
        return Vec::new();
    }
    let batch = Batch::of_text(&[ids], &model.device());
    let probabilities = in_pool(&model.device(), || {
        let logits = model.forward(&batch.source, &batch.target_input, &mut Pass::inference().fused(true));
        let [_, len, vocab_size] = logits.dims();
        LogProbabilities::new(logits.reshape([len, vocab_size]))
    });
    let likeliest = if n_likeliest > 0 { probabilities.likeliest(n_likeliest) } else { Vec::new() };
    let token = |(row, id): (usize, &u32)| NextToken {
        id: *id,
        log_probability: probabilities.of(row, *id) as f64,
        likeliest: likeliest.get(row).into_iter().flatten().map(|(id, log_p)| (*id, *log_p as f64)).collect(),
    };
    ids[1..].iter().enumerate().map(token).collect()
}

/// How well a model without a source predicts a text of which it has at most `context` tokens in sight.
///
/// The text is read in windows half a context apart: every token counts once, and but for the beginning of the text it has at
/// least half a context before it. Windows are shared out among `ranks`. `progress` is called with the number of tokens that have been read.
pub fn score_text<M: Seq2Seq>(
    model: &M,
    text: &TokenStream,
    context: usize,
    batch_tokens: usize,
    ranks: &dyn Ranks,
    mut progress: impl FnMut(usize),
) -> TextScores {
    let device = model.device();
    let windows = scored_windows(text.ids.len(), context);
    let batches: Vec<_> = windows.chunks((batch_tokens / context).max(1)).collect();
    let mut statistics = TextStatistics::default();
    for batches in batches.chunks(BATCHES_AT_ONCE) {
        let found = share(ranks, batches, |windows| {
            let pieces: Vec<&[u32]> = windows.iter().map(|window| &text.ids[window.range.clone()]).collect();
            let batch = Batch::of_text(&pieces, &device);
            let losses = in_pool(&device, || {
                let logits = model.forward(&batch.source, &batch.target_input, &mut Pass::inference().fused(true));
                losses(logits, &batch)
            });
            progress(windows.last().map_or(0, |window| window.range.end - 1));
            (batch.target_output.len(), losses)
        });
        for (windows, (len, losses)) in batches.iter().zip(found) {
            for (row, window) in windows.iter().enumerate() {
                for place in 0..window.range.len() - 1 {
                    let (loss, is_correct) = losses[row * len + place];
                    statistics.add(place + 1, place >= window.counted, loss, is_correct);
                }
            }
        }
    }
    statistics.scores(text.n_characters, text.n_bytes, text.n_unknown(), context)
}

/// For each target, row by row, its `-log p` in nats and whether it was the likeliest; of padding anything.
pub(super) fn losses(logits: Tensor<3>, batch: &Batch) -> Vec<(f64, bool)> {
    if is_host(&logits.device()) {
        let targets = batch.target_ids.iter().map(|id| (*id != PAD).then_some(*id)).collect();
        let targets = Targets { words: targets, weighting: Weighting { smoothing: 0.0, scale: 1.0 } };
        let Rows::Known(rows) = ops::cross_entropy(logits, targets, Body::Fused).rows else {
            unreachable!("on the host every row is known")
        };
        return rows
            .into_iter()
            .map(|row| row.map_or((0.0, false), |row| (row.cross_entropy, row.is_correct)))
            .collect();
    }
    let ids = batch.target_output.ids.clone().unsqueeze_dim::<3>(2);
    let is_correct = to_vec(logits.clone().argmax(2).equal(ids.clone()).float());
    let log_p = to_vec(activation::log_softmax(logits, 2).gather(2, ids));
    log_p.into_iter().zip(is_correct).map(|(log_p, is_correct)| (-log_p as f64, is_correct > 0.5)).collect()
}

impl Hypothesis {
    /// Perplexity per token, end symbol included where it was written.
    pub fn perplexity(&self) -> f64 {
        (-self.log_probability / (self.tokens.len() + usize::from(self.is_complete)).max(1) as f64).exp()
    }
}
