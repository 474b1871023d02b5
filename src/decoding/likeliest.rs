//! The likeliest words of every row.

use super::{FIRST_WORD, LogProbabilities};
use crate::backend::{gpu, is_host};
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
    let n = n.min(logits.dims()[1] - FIRST_WORD);
    let numbers = to_vec(gpu::likeliest(&logits, FIRST_WORD, n).unwrap_or_else(|| by_burn(logits, n)));
    let word = |pair: &[f32]| (pair[1] as u32, pair[0]);
    numbers.chunks_exact((2 * n).max(1)).map(|row| row.chunks_exact(2).map(word).collect()).collect()
}

/// The log-probability and the number of the `n` likeliest words of every row, in burn's operations: `[rows, 2 n]`.
fn by_burn(logits: Tensor<2>, n: usize) -> Tensor<2> {
    let [rows, vocab_size] = logits.dims();
    let device = logits.device();
    let mut words = activation::log_softmax(logits, 1).narrow(1, FIRST_WORD, vocab_size - FIRST_WORD);
    let mut found = Vec::with_capacity(2 * n);
    for i in 0..n {
        let (best, places) = words.clone().max_dim_with_indices(1);
        if i + 1 < n {
            let taken = Tensor::full([rows, 1], TAKEN, &device);
            words = words.scatter(1, places.clone(), taken, IndexingUpdateOp::Add);
        }
        // The number of a word is a whole one that a float holds.
        found.extend([best, places.float() + FIRST_WORD as f32]);
    }
    Tensor::cat(found, 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Backend;

    /// What a device without a kernel takes chooses as the host does. Of equals, burn's operations promise no order.
    #[test]
    fn words_are_the_same_in_burns_operations() {
        let device = Backend::Flex.open().unwrap().device;
        let logits: Vec<f32> = (0..60).map(|i| (i * 7919 % 101) as f32 / 10.0).collect();
        let logits = Tensor::<1>::from_data(logits.as_slice(), &device).reshape([3, 20]);
        let found = to_vec(by_burn(logits.clone(), 4));
        let expected = LogProbabilities::new(logits).likeliest(4);
        for (found, (word, log_probability)) in found.chunks_exact(2).zip(expected.into_iter().flatten()) {
            assert_eq!(found[1], word as f32);
            assert!((found[0] - log_probability).abs() < 1e-5, "{} and {log_probability}", found[0]);
        }
    }
}
