//! The likeliest words of every row.

use super::{FIRST_WORD, LogProbabilities};
use crate::backend::is_host;
use crate::models::weights::to_vec;
use burn::tensor::{IndexingUpdateOp, Tensor, activation};

/// Far below any log-probability; finite, since not every GPU computes with infinity.
const TAKEN: f32 = -1e30;

/// For every row the `n` likeliest words that may follow with their log-probabilities, best first; of equals those with the lowest ids.
///
/// On a device the words are chosen there: what is read are two numbers for each of them, and not the row.
///
/// # Shapes
/// - logits: `[rows, vocab_size]`
pub(super) fn likeliest(logits: Tensor<2>, n: usize) -> Vec<Vec<(u32, f32)>> {
    if is_host(&logits.device()) {
        return LogProbabilities::new(logits).likeliest(n);
    }
    let [rows, vocab_size] = logits.dims();
    let n = n.min(vocab_size - FIRST_WORD);
    let device = logits.device();
    let mut words = activation::log_softmax(logits, 1).narrow(1, FIRST_WORD, vocab_size - FIRST_WORD);
    let mut found = Vec::with_capacity(2 * n);
    for i in 0..n {
        let (best, places) = words.clone().max_dim_with_indices(1);
        if i + 1 < n {
            let taken = Tensor::full([rows, 1], TAKEN, &device);
            words = words.scatter(1, places.clone(), taken, IndexingUpdateOp::Add);
        }
        // Ids are whole numbers that a float holds.
        found.extend([best, places.float()]);
    }
    let numbers = to_vec(Tensor::cat(found, 1));
    let word = |pair: &[f32]| ((FIRST_WORD + pair[1] as usize) as u32, pair[0]);
    numbers.chunks_exact((2 * n).max(1)).map(|row| row.chunks_exact(2).map(word).collect()).collect()
}
