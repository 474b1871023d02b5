//! Exact agreement: of whole lines and of tokens at the same position. For tasks with one right answer.

use super::Ratio;

/// Whether `hypothesis` is its reference, byte for byte: the numerator is 1 or 0, the denominator 1 sentence.
pub fn sequence_matches(hypothesis: &str, reference: &str) -> Ratio {
    Ratio::of(usize::from(hypothesis == reference), 1)
}

/// The tokens of `hypothesis` that equal the reference's token at the same position, of as many positions as the longer
/// of the two has. Tokens are what white space separates. A missing token, or one too many, is thus an error, and a
/// token lost at the start of a line makes errors of all that follow it; [`word_errors`](super::word_errors) does not.
pub fn token_matches(hypothesis: &str, reference: &str) -> Ratio {
    let matches = hypothesis.split_whitespace().zip(reference.split_whitespace()).filter(|(left, right)| left == right);
    let positions = hypothesis.split_whitespace().count().max(reference.split_whitespace().count());
    Ratio::of(matches.count(), positions)
}
