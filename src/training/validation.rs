//! Validation: the loss on held-out pairs, and the score of a translated sample.

use super::checkpoint;
use super::config::Criterion;
use super::learner::Trainer;
use super::lessons::Measured;
use super::loss::{LossSums, smoothed_cross_entropy};
use super::metrics::Stats;
use super::record::Record;
use crate::data::batch::{Batch, Example, plan_by_length};
use crate::data::{Sentence, Tokenizers};
use crate::decoding::{DecodingConfig, Request, count_cut, decode};
use crate::error::Result;
use crate::layers::Pass;
use crate::models::{Model, Seq2Seq};
use crate::pool::in_pool;
use crate::scoring::{Metric, Scorer, SentenceStatistics, Summable};
use burn::module::Module;
use burn_train::{EventProcessorTraining, LearnerEvent, SupervisedTrainingEventProcessor, TrainingItem};
use std::time::Instant;

/// What the greedy translations of the validation sample came to.
pub struct Sample {
    /// The score, from 0 to 100; error rates may exceed that.
    pub score: f64,
    /// The translations.
    pub translations: Vec<String>,
    /// How many of them were cut at the length cap.
    pub cut: usize,
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

/// Translates the sources greedily and scores them against their references.
///
/// # Errors
/// If there are no sentences.
pub fn sample_score(
    model: &Model,
    tokenizers: &Tokenizers,
    sample: &[Sentence],
    score: Metric,
    decoding: &DecodingConfig,
) -> Result<Sample> {
    let requests = sample.iter().map(|s| Request::new(tokenizers.source().encode(&s.source))).collect::<Vec<_>>();
    let greedy = DecodingConfig { beam_size: 1, n_best: 1, sampling: None, ..decoding.clone() };
    let found = decode(model, &requests, &greedy, 0, |_| ());
    let translations: Vec<String> =
        found.iter().map(|hypotheses| tokenizers.target().decode(&hypotheses[0].tokens)).collect();
    // A model that writes lower case is measured on lower case.
    let lowercase = tokenizers.config().target().is_lowercase();
    let cased = |reference: &String| if lowercase { reference.to_lowercase() } else { reference.clone() };
    let references: Vec<Vec<String>> = sample.iter().map(|s| s.references.iter().map(cased).collect()).collect();
    let statistics = Scorer::default().statistics_any(&translations, &references)?;
    let score = score.of_statistics(&SentenceStatistics::total(&statistics));
    Ok(Sample { score, translations, cut: count_cut(&found) })
}

impl Trainer {
    /// Loss and score on held-out pairs; notes whether they are the best so far.
    pub(super) fn validate(
        &mut self,
        events: &mut SupervisedTrainingEventProcessor<Model>,
        number: usize,
        record: &mut Record,
    ) -> Result<()> {
        let _ = events.process_valid(LearnerEvent::StartSplit { epoch_number: number, total_items: 1 });
        let model = self.model().valid();
        let start = Instant::now();
        let Measured { stats, sample } = self.lessons.measure(&model)?;
        self.validation_seconds = start.elapsed().as_secs_f64();
        self.last_cut = stats.cut.unwrap_or(0);
        record.write("valid", &self.state, self.seconds(), &stats)?;
        record.write_sample(self.state.update, &sample)?;
        if self.is_better(&stats) {
            self.state.best = Some(self.criterion(&stats));
            self.state.best_loss = Some(nine_decimals(stats.loss));
            self.state.best_checkpoint = Some(checkpoint::name_of(self.state.update));
            self.state.stalled = 0;
        } else {
            self.state.stalled += 1;
        }
        let item = TrainingItem {
            item: stats,
            progress: burn::data::dataloader::Progress::new(1, 1, Some("validation".into())),
            iteration: Some(self.state.update as usize),
            lr: None,
        };
        let _ = events.process_valid(LearnerEvent::ProcessedItem(item));
        let _ = events.process_valid(LearnerEvent::EndSplit(number));
        Ok(())
    }

    fn criterion(&self, stats: &Stats) -> f64 {
        let value = match self.config.training.criterion {
            Criterion::Loss => stats.loss,
            Criterion::Score => stats.score.unwrap_or(0.0),
        };
        nine_decimals(value)
    }

    /// Of equal scores that with the lower loss is better: many are 100 % long before all has been learnt.
    pub(super) fn is_better(&self, stats: &Stats) -> bool {
        let value = self.criterion(stats);
        if self.config.training.criterion == Criterion::Score && self.state.best == Some(value) {
            return self.state.best_loss.is_some_and(|best| nine_decimals(stats.loss) < best);
        }
        match (self.state.best, self.config.training.criterion) {
            (None, _) => value.is_finite(),
            (Some(best), Criterion::Loss) => value < best,
            (Some(best), Criterion::Score) if self.config.training.score.lower_is_better() => value < best,
            (Some(best), Criterion::Score) => value > best,
        }
    }
}

/// With more digits serde_json does not read back what it wrote, and a resumed run would compare with another number.
fn nine_decimals(value: f64) -> f64 {
    (value * 1e9).round() / 1e9
}
