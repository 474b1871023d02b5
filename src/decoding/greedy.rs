//! Greedy search: the likeliest word at every step.

use super::likeliest::likeliest;
use super::{DecodingConfig, Hypothesis, Open, Task};
use crate::data::tokenizer::EOS;
use crate::models::Seq2Seq;
use crate::ops::PreparedWeights;
use std::sync::Arc;

/// Decodes `tasks`; among equally likely words the one with the lowest id wins.
pub(super) fn greedy<M: Seq2Seq>(
    model: &M,
    memory: M::Memory,
    tasks: Vec<Task>,
    weights: &Arc<PreparedWeights>,
    config: &DecodingConfig,
) -> Vec<(usize, Vec<Hypothesis>)> {
    let (mut open, given) = Open::new(model, memory, tasks, weights, config);
    let mut results = Vec::new();
    for step in given.. {
        let likeliest = likeliest(open.step(model, step), 1);
        let mut finished = vec![false; open.tasks.len()];
        for (row, task) in open.tasks.iter().enumerate() {
            let (word, log_probability) = likeliest[row][0];
            let hypothesis = &mut open.hypotheses[row];
            hypothesis.append(word, log_probability, step, config);
            open.previous[row] = word;
            finished[row] = hypothesis.is_complete || step + 1 >= task.cap;
        }
        open.close(&finished, model, &mut results);
        if open.tasks.is_empty() {
            break;
        }
    }
    results.into_iter().map(|(index, hypothesis)| (index, vec![hypothesis])).collect()
}

impl Hypothesis {
    /// Adds the word of step `step`; the end symbol completes the hypothesis.
    pub(super) fn append(&mut self, word: u32, log_probability: f32, step: usize, config: &DecodingConfig) {
        self.log_probability += log_probability as f64;
        self.score = self.log_probability / config.penalty(step + 1);
        if word == EOS {
            self.is_complete = true;
        } else {
            self.tokens.push(word);
        }
    }
}
