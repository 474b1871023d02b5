//! How long the parts of a comparison take, in seconds. The report depends on none of it: it is for the time that is left.

use super::measure::costs::FEWEST_VISITS;
use super::options::Options;
use super::plan::Entrant;
use super::test_set::TestSet;
use super::training::{finished, is_finished};
use super::tuning;
use crate::models::Vocabularies;

/// Operations of a forward pass for which learning and writing take a second: a guess. While trainings go on, their own pace takes its place.
const OPERATIONS_PER_SECOND: f64 = 1e11;

/// What a token takes beside its arithmetic, in operations of the forward pass: a guess, without which small models would count
/// for nothing.
const OPERATIONS_BESIDE: f64 = 3e6;

/// Kinds of cells that are measured at every length: an update, and writing.
const KINDS: usize = 2;
/// Seconds that a visit of a cell takes, with the start of its process.
const SECONDS_OF_VISIT: f64 = 1.0;

/// How long the parts of one contestant take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Work {
    /// One trial of the search before training.
    pub trial: f64,
    /// Training one run.
    pub training: f64,
    /// Testing one run.
    pub testing: f64,
    /// Measuring its time and memory.
    pub timing: f64,
}

impl Work {
    /// What can be said before anything is made.
    pub fn guess(entrant: &Entrant, options: &Options, test: &TestSet, beam_size: usize) -> Self {
        let training = &entrant.config.training;
        // The vocabulary is not known before the data are read; a middling one stands for it.
        let (len, vocabularies) = (32, Vocabularies { source: 1000, target: 1000, shared: true });
        let operations = entrant.config.model.family().forward_flops(vocabularies, len) / len as f64;
        let of_token = (operations + OPERATIONS_BESIDE) / OPERATIONS_PER_SECOND;
        let learning = (training.max_updates * training.batch_tokens as u64) as f64 * of_token;
        let training = training.max_minutes.map_or(learning, |minutes| learning.min(60.0 * minutes));
        Self {
            trial: training * tuning::trial_updates(&entrant.config) as f64
                / entrant.config.training.max_updates as f64,
            training,
            // Measured: writing a token of small models, with one beam, takes about as long as learning from one.
            testing: tokens(test, beam_size) as f64 * of_token,
            timing: (KINDS * options.cost_lengths.len() * FEWEST_VISITS) as f64 * SECONDS_OF_VISIT,
        }
    }

    /// What is known after the search: each contestant learns as fast as in its own trials.
    pub fn as_in_trials(self, entrant: &Entrant, options: &Options) -> Self {
        let of_trial = |n| finished(&tuning::folder(entrant, options, n), &entrant.config).ok();
        let seconds: Vec<f64> = (1..=options.trials).filter_map(of_trial).map(|trial| trial.seconds).collect();
        if seconds.is_empty() || self.trial <= 0.0 {
            return self;
        }
        let pace = seconds.iter().sum::<f64>() / seconds.len() as f64 / self.trial;
        Self { trial: pace * self.trial, training: pace * self.training, testing: pace * self.testing, ..self }
    }

    /// All that there is to do for an entrant, and what of that an earlier process has done.
    fn total(&self, entrant: &Entrant, options: &Options) -> [f64; 2] {
        let n_runs = entrant.runs.len() as f64;
        let measuring = n_runs * self.testing + self.timing;
        if entrant.is_given {
            return [measuring, 0.0];
        }
        let is_tried = |n: &usize| is_finished(&tuning::folder(entrant, options, *n));
        let tried = (1..=options.trials).filter(is_tried).count() as f64;
        let trained = entrant.runs.iter().filter(|run| is_finished(&run.folder)).count() as f64;
        let all = n_runs * self.training + options.trials as f64 * self.trial + measuring;
        [all, trained * self.training + tried * self.trial]
    }
}

/// All that there is to do for `entrants`, which take `work`, and what of that will be found done.
pub(super) fn totals(entrants: &[Entrant], work: &[Work], options: &Options) -> [f64; 2] {
    let all = entrants.iter().zip(work).map(|(entrant, work)| work.total(entrant, options));
    all.fold([0.0; 2], |[total, done], [more, more_done]| [total + more, done + more_done])
}

/// Tokens that a test reads and writes, as its lengths are counted.
fn tokens(test: &TestSet, beam_size: usize) -> usize {
    let of_pair = |pair: &crate::data::Pair| test.unit.count(&pair.source) + beam_size * test.unit.count(&pair.target);
    test.pairs.iter().map(of_pair).sum()
}
