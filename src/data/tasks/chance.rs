//! What guessing comes to.

use super::{BLANK, TaskConfig};

impl TaskConfig {
    /// The probability that a guess is right. It knows how many words the answer has and where they stand, and takes each from all
    /// that the task answers with, equally likely. None for tasks whose answers are not words of one small set.
    pub fn chance(&self, answer: &str) -> Option<f64> {
        let n_words = match self {
            Self::Copy(config) | Self::Reverse(config) | Self::Sort(config) => config.n_symbols,
            Self::Recall(config) => config.n_values,
            Self::SelectiveCopy(config) => config.n_symbols,
            Self::Arithmetic(config) => config.modulus,
            Self::Parity(_) | Self::Rises(_) => 2,
            Self::Depth(config) => config.max_depth + 1,
            Self::NextValue(_) | Self::Dates(_) | Self::Numbers(_) => return None,
        };
        let n_asked = answer.split_whitespace().filter(|word| *word != BLANK).count();
        Some((n_words as f64).powi(-(n_asked.min(i32::MAX as usize) as i32)))
    }
}
