//! Beam search with a length penalty and a stop rule that loses nothing, or one that is quicker.

use super::likeliest::likeliest;
use super::{DecodingConfig, EarlyStopping, Hypothesis, StopRule, Task, at_length, indices, read_prefixes};
use crate::data::tokenizer::{BOS, EOS};
use crate::layers::Pass;
use crate::models::{Rows, Seq2Seq};
use crate::ops::{HIDDEN, PreparedWeights};
use std::sync::Arc;

/// The search for one sentence.
struct Search {
    task: Task,
    /// Open hypotheses, best first; row `b` of the sentence is beam `b`.
    open: Vec<Hypothesis>,
    /// Finished hypotheses, best first.
    finished: Vec<Hypothesis>,
}

impl Search {
    fn new(task: Task) -> Self {
        Self { task, open: vec![Hypothesis::default()], finished: Vec::new() }
    }

    /// Extends every open hypothesis by one word and keeps the best `beam_size`; gives back which beam each came from.
    /// `likeliest` has the best words of every row.
    fn extend(
        &mut self,
        likeliest: &[Vec<(u32, f32)>],
        first_row: usize,
        step: usize,
        config: &DecodingConfig,
    ) -> Vec<usize> {
        let mut candidates: Vec<(usize, u32, f32)> = Vec::new();
        for beam in 0..self.open.len() {
            let row = first_row + beam;
            // What is out of the running may be among the likeliest, where few words are not.
            let possible = likeliest[row].iter().filter(|(_, gained)| gained.is_nan() || *gained > HIDDEN / 2.0);
            candidates.extend(possible.map(|(word, gained)| (beam, *word, *gained)));
        }
        let total = |(beam, _, gained): &(usize, u32, f32)| self.open[*beam].log_probability + *gained as f64;
        // Equal scores: lower beam, then lower id, so that the search does not depend on the sorting algorithm.
        candidates.sort_by(|a, b| total(b).total_cmp(&total(a)).then(a.0.cmp(&b.0)).then(a.1.cmp(&b.1)));
        let is_last = step + 1 >= self.task.cap;
        let mut next = Vec::new();
        let mut parents = Vec::new();
        for (beam, word, gained) in candidates {
            if next.len() == config.beam_size {
                break;
            }
            let mut hypothesis = self.open[beam].clone();
            hypothesis.append(word, gained, step, config);
            if word == EOS || is_last {
                self.finished.push(hypothesis);
            } else {
                next.push(hypothesis);
                parents.push(beam);
            }
        }
        // At the cap a complete hypothesis comes before one that was cut.
        self.finished.sort_by(|a, b| b.is_complete.cmp(&a.is_complete).then(b.score.total_cmp(&a.score)));
        self.finished.truncate(config.beam_size);
        self.open = next;
        parents
    }

    /// Whether no open hypothesis can still get among the `n_best`.
    ///
    /// A log-probability can only fall, so the best that an open hypothesis can reach is its present one over the largest
    /// penalty that lies ahead: that of the cap, or with a negative exponent that of the next word. With early stopping a full
    /// list is enough, or, by [`StopRule::PresentLength`], one whose worst is better than the best open one is now.
    fn is_decided(&self, step: usize, config: &DecodingConfig) -> bool {
        let worst_of_all = self.finished.get(config.beam_size - 1);
        if config.early_stopping == EarlyStopping::Full(true) && worst_of_all.is_some() {
            return true;
        }
        let Some(best_open) = self.open.iter().map(|h| h.log_probability).reduce(f64::max) else { return true };
        if config.early_stopping == EarlyStopping::Rule(StopRule::PresentLength) {
            return worst_of_all.is_some_and(|worst| worst.score >= best_open / config.penalty(step + 1));
        }
        let Some(worst_kept) = self.finished.get(config.n_best - 1) else { return false };
        let reachable = config.penalty(self.task.cap).max(config.penalty(step + 2));
        worst_kept.is_complete && worst_kept.score >= best_open / reachable
    }
}

/// Decodes `tasks`.
///
/// Every open sentence has `beam_size` rows; a sentence with fewer open hypotheses fills up with copies that are ignored, so
/// that the beams of a sentence share its memory without a map.
pub(super) fn beam<M: Seq2Seq>(
    model: &M,
    memory: M::Memory,
    tasks: Vec<Task>,
    weights: &Arc<PreparedWeights>,
    config: &DecodingConfig,
) -> Vec<(usize, Vec<Hypothesis>)> {
    let width = config.beam_size;
    let device = model.device();
    let mut memory = memory;
    let mut searches: Vec<Search> = tasks.iter().cloned().map(Search::new).collect();
    let read = read_prefixes(model, &memory, &tasks, weights, |i, step, word, log_probability| {
        searches[i].open[0].append(word, log_probability, step, config);
    });
    let rows = (0..tasks.len() * width).map(|row| row / width);
    let mut state = Some(if width == 1 { read } else { read.select(&indices(rows, &device)) });
    let mut results = Vec::new();
    for step in tasks[0].prefix.len().. {
        let previous = searches.iter().flat_map(|search| {
            (0..width).map(move |beam| {
                let hypothesis = search.open.get(beam).unwrap_or(&search.open[0]);
                hypothesis.tokens.last().copied().unwrap_or(BOS) as usize
            })
        });
        let previous = indices(previous, &device);
        let mut pass = Pass::step_of(weights);
        let (logits, next) = model.step(previous, state.take().expect("a state is put back"), &memory, &mut pass);
        let of_rows = searches.iter().flat_map(|search| std::iter::repeat_n((search.task.len, step), width));
        let likeliest = likeliest(at_length(logits, of_rows), width + 1);
        let n_open = searches.len();
        let mut rows = Vec::new();
        let mut kept = Vec::new();
        let mut still_open = Vec::new();
        for (i, mut search) in searches.into_iter().enumerate() {
            let parents = search.extend(&likeliest, i * width, step, config);
            if search.is_decided(step, config) {
                search.finished.truncate(config.n_best);
                results.push((search.task.index, search.finished));
                continue;
            }
            rows.extend((0..width).map(|beam| i * width + parents.get(beam).copied().unwrap_or(parents[0])));
            kept.push(i);
            still_open.push(search);
        }
        if still_open.is_empty() {
            break;
        }
        if kept.len() < n_open {
            memory = memory.select(&indices(kept, &device));
        }
        state = Some(next.select(&indices(rows, &device)));
        searches = still_open;
    }
    results
}
