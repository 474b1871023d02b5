//! Sampling: words drawn from the model's distribution.

use super::{DecodingConfig, Hypothesis, LogProbabilities, Open, SamplingConfig, Task, indices};
use crate::models::{Rows, Seq2Seq};
use crate::ops::PreparedWeights;
use crate::random::{Purpose, Stream};
use std::sync::Arc;

/// Draws `config.n_best` targets for each task, likeliest first.
///
/// The numbers depend on (seed, sentence, draw, step), so that a sentence gets the same samples in any batch.
pub(super) fn sample<M: Seq2Seq>(
    model: &M,
    memory: M::Memory,
    tasks: Vec<Task>,
    weights: &Arc<PreparedWeights>,
    config: &DecodingConfig,
    sampling: &SamplingConfig,
    seed: u64,
) -> Vec<(usize, Vec<Hypothesis>)> {
    let mut found: Vec<(usize, Vec<Hypothesis>)> = tasks.iter().map(|task| (task.index, Vec::new())).collect();
    let all = indices(0..tasks.len(), &model.device());
    for draw in 0..config.n_best {
        let (mut open, given) = Open::new(model, memory.select(&all), tasks.clone(), weights, config);
        let mut results = Vec::new();
        for step in given.. {
            let probabilities = LogProbabilities::new(open.step(model, step));
            let mut finished = vec![false; open.tasks.len()];
            for (row, task) in open.tasks.iter().enumerate() {
                let stream = Stream::new(seed, Purpose::Sampling, &[task.number, draw as u64]);
                let word = pick(&probabilities, row, sampling, stream.unit(step as u64));
                let hypothesis = &mut open.hypotheses[row];
                hypothesis.append(word, probabilities.of(row, word), step, config);
                open.previous[row] = word;
                finished[row] = hypothesis.is_complete || step + 1 >= task.cap;
            }
            open.close(&finished, model, &mut results);
            if open.tasks.is_empty() {
                break;
            }
        }
        for (index, hypothesis) in results {
            let (_, hypotheses) = found.iter_mut().find(|(i, _)| *i == index).expect("every result has a task");
            hypotheses.push(hypothesis);
        }
    }
    for (_, hypotheses) in &mut found {
        hypotheses.sort_by(|a, b| b.score.total_cmp(&a.score));
    }
    found
}

/// The word at `unit`, a number in `[0, 1)`, of the distribution that temperature, top-k and top-p leave.
pub(super) fn pick(probabilities: &LogProbabilities, row: usize, sampling: &SamplingConfig, unit: f64) -> u32 {
    let mut words: Vec<(u32, f64)> =
        probabilities.candidates(row).map(|(word, log_probability)| (word, log_probability as f64)).collect();
    let likelier = |a: &(u32, f64), b: &(u32, f64)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
    // Only those that may be drawn are sorted.
    if sampling.top_k > 0 && sampling.top_k < words.len() {
        words.select_nth_unstable_by(sampling.top_k - 1, likelier);
        words.truncate(sampling.top_k);
    }
    words.sort_unstable_by(likelier);
    let max = words[0].1;
    // Differences first: at a temperature near zero the quotients themselves are infinite.
    words.iter_mut().for_each(|(_, value)| *value = ((*value - max) / sampling.temperature).exp());
    let total: f64 = words.iter().map(|(_, value)| value).sum();
    if !total.is_finite() {
        // A model whose numbers are none has no distribution; greedy search takes the first word, too.
        return words[0].0;
    }
    let mut mass = 0.0;
    let kept = words.iter().take_while(|(_, value)| {
        let is_inside = mass < sampling.top_p * total;
        mass += value;
        is_inside
    });
    let kept: Vec<(u32, f64)> = kept.copied().collect();
    let mut left = unit * kept.iter().map(|(_, value)| value).sum::<f64>();
    for (word, value) in &kept {
        left -= value;
        if left < 0.0 {
            return *word;
        }
    }
    kept.last().expect("at least one word is kept").0
}
