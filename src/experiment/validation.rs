//! Measuring a model on held-out pairs: their loss, and the score of a translated sample.

use crate::data::batch::{Batch, Example, plan_by_length};
use crate::data::{Sentence, Tokenizers};
use crate::decoding::{DecodingConfig, Request, count_cut, decode_among};
use crate::layers::Pass;
use crate::models::{Model, Seq2Seq};
use crate::pool::in_pool;
use crate::ranks::{Ranks, share};
use crate::scoring::{Metric, Scorer, SentenceStatistics, Summable};
use crate::training::loss::{LossSums, smoothed_cross_entropy};

/// What the greedy translations of the validation sample came to.
pub struct Sample {
    /// The score, from 0 to 100; error rates may exceed that.
    pub score: f64,
    /// The translations.
    pub translations: Vec<String>,
    /// How many of them were cut at the length cap.
    pub cut: usize,
}

/// The sums of the loss over `examples`, without dropout or smoothing; batches are shared out among `ranks`.
pub fn validate<M: Seq2Seq>(model: &M, examples: &[Example], batch_tokens: usize, ranks: &dyn Ranks) -> LossSums {
    let lengths: Vec<(usize, usize)> = examples.iter().map(|e| (e.source.len(), e.target.len())).collect();
    let sums = share(ranks, &plan_by_length(&lengths, batch_tokens), |indices| {
        let chosen: Vec<&Example> = indices.iter().map(|i| &examples[*i]).collect();
        let batch = Batch::new(&chosen, &model.device());
        in_pool(&model.device(), || {
            let logits = model.forward(&batch.source, &batch.target_input, &mut Pass::inference().fused(true));
            smoothed_cross_entropy(logits, &batch.target_ids, 0.0, 1).sums()
        })
    });
    let mut total = LossSums::default();
    sums.into_iter().for_each(|sums| total += sums);
    total
}

/// Translates the sources greedily, in batches that are shared out among `ranks`, and scores them against their references.
///
/// # Panics
/// If there are no sentences.
pub fn sample_score(
    model: &Model,
    tokenizers: &Tokenizers,
    sample: &[Sentence],
    score: Metric,
    decoding: &DecodingConfig,
    ranks: &dyn Ranks,
) -> Sample {
    let greedy = DecodingConfig { beam_size: 1, n_best: 1, sampling: None, ..decoding.clone() };
    let requests: Vec<Request> =
        sample.iter().map(|sentence| Request::new(tokenizers.source().encode(&sentence.source))).collect();
    let found = decode_among(model, &requests, &greedy, 0, ranks, |_| ());
    let translations: Vec<String> =
        found.iter().map(|hypotheses| tokenizers.target().decode(&hypotheses[0].tokens)).collect();
    let cut = count_cut(&found);
    let references: Vec<Vec<String>> = sample.iter().map(|sentence| tokenizers.references(sentence)).collect();
    let statistics = Scorer::default().statistics_any(&translations, &references).expect("a sample has sentences");
    let score = score.of_statistics(&SentenceStatistics::total(&statistics));
    Sample { score, translations, cut }
}
