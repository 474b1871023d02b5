//! Who did not end its answers.

use crate::report::comparison::data::{Comparison, Contestant};

/// Who did not end all of its answers.
pub(in crate::report::comparison) fn cut(comparison: &Comparison) -> Option<String> {
    let n = comparison.n_sentences();
    let of_contestant = |contestant: &Contestant| {
        let cut: usize = contestant.cut_answers.iter().sum();
        (cut > 0).then(|| format!("{} {cut} of {}", contestant.name, n * contestant.cut_answers.len()))
    };
    let texts: Vec<String> = comparison.contestants.iter().filter_map(of_contestant).collect();
    (!texts.is_empty()).then(|| format!("Answers that were cut at the length cap: {}.", texts.join(", ")))
}
