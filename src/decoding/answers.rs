//! Answers whose words do not depend on each other: all of them at once, with their probabilities.

use super::{FIRST_WORD, LogProbabilities};
use crate::data::batch::{Padded, plan_by_length};
use crate::data::tokenizer::{BOS, EOS};
use crate::layers::Pass;
use crate::models::Seq2Seq;
use crate::pool::in_pool;

/// A word that an answer may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice {
    /// Which.
    pub id: u32,
    /// Its probability among the words that an answer may be.
    pub probability: f64,
}

/// For each source, for each word of its answer, the `n` likeliest choices, best first. `answer_len` is how many words the answer
/// to a source of so many tokens has; the end of an answer is none of them.
pub fn answers<M: Seq2Seq>(
    model: &M,
    sources: &[Vec<u32>],
    answer_len: impl Fn(usize) -> usize,
    n: usize,
    batch_tokens: usize,
) -> Vec<Vec<Vec<Choice>>> {
    let mut found = vec![Vec::new(); sources.len()];
    let real: Vec<usize> = (0..sources.len()).filter(|i| !sources[*i].is_empty()).collect();
    let lengths: Vec<(usize, usize)> = real.iter().map(|i| (sources[*i].len(), 0)).collect();
    let device = model.device();
    for batch in plan_by_length(&lengths, batch_tokens) {
        let chosen: Vec<usize> = batch.into_iter().map(|i| real[i]).collect();
        let source = Padded::sources(chosen.iter().map(|i| &sources[*i]), &device);
        let n_words: Vec<usize> = chosen.iter().map(|i| answer_len(sources[*i].len())).collect();
        // What a decoder is given does not matter.
        let given: Vec<Vec<u32>> = n_words.iter().map(|n| vec![BOS; *n]).collect();
        let probabilities = in_pool(&device, || {
            let target = Padded::new(&given, 0, &device);
            let logits = model.forward(&source, &target, &mut Pass::inference().fused(true));
            let [rows, len, vocab_size] = logits.dims();
            (LogProbabilities::new(logits.reshape([rows * len, vocab_size])), len)
        });
        let (probabilities, len) = probabilities;
        for (row, index) in chosen.iter().enumerate() {
            let words = (0..n_words[row]).map(|word| choices(&probabilities, row * len + word, n));
            found[*index] = words.collect();
        }
    }
    found
}

/// The likeliest answer to a source, of a model that does not learn where an answer ends
/// ([`Autoregressive::fixed_len`](crate::models::Autoregressive::fixed_len)).
pub fn fixed_answer<M: Seq2Seq>(model: &M, source: &[u32]) -> Option<Vec<u32>> {
    let n = model.fixed_len(source.len())?;
    let found = answers(model, &[source.to_vec()], |_| n, 1, 1);
    Some(found[0].iter().filter_map(|choices| choices.first()).map(|choice| choice.id).collect())
}

/// The likeliest words of a row, the end left out.
fn choices(probabilities: &LogProbabilities, row: usize, n: usize) -> Vec<Choice> {
    const { assert!(EOS as usize == FIRST_WORD) };
    let mut all: Vec<Choice> = probabilities
        .candidates(row)
        .filter(|(id, _)| *id != EOS)
        .map(|(id, log_p)| Choice { id, probability: f64::from(log_p).exp() })
        .collect();
    let total: f64 = all.iter().map(|choice| choice.probability).sum();
    all.iter_mut().for_each(|choice| choice.probability /= total);
    all.sort_by(|a, b| b.probability.total_cmp(&a.probability).then(a.id.cmp(&b.id)));
    all.truncate(n);
    all
}
