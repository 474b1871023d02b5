//! Levenshtein distance and the error rates made from it: of words, characters, phonemes and sentences.
//!
//! Each function returns the statistics of one sentence; those of a corpus are their sum, so that long sentences weigh
//! more than short ones. Rates are fractions and exceed 1 where hypotheses are much too long.

use super::Ratio;

/// The least number of insertions, deletions and substitutions that turn `left` into `right`.
///
/// # Reference
/// Levenshtein, "Binary codes capable of correcting deletions, insertions, and reversals", 1966; computed as in Wagner
/// and Fischer, "The String-to-String Correction Problem", 1974, with one row of the table.
pub fn edit_distance<T: PartialEq>(left: &[T], right: &[T]) -> usize {
    // What both have at their ends costs nothing; good hypotheses are mostly that.
    let prefix = left.iter().zip(right).take_while(|(left, right)| left == right).count();
    let (left, right) = (&left[prefix..], &right[prefix..]);
    let suffix = left.iter().rev().zip(right.iter().rev()).take_while(|(left, right)| left == right).count();
    let (left, right) = (&left[..left.len() - suffix], &right[..right.len() - suffix]);

    // row[j] is the distance between the part of `left` read so far and the first j elements of `right`.
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (index, element) in left.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (j, other) in right.iter().enumerate() {
            let substituted = diagonal + usize::from(element != other);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j].min(diagonal) + 1);
        }
    }
    row[right.len()]
}

/// Word error rate: the edit distance over tokens separated by white space, of the length of the reference in tokens.
#[doc(alias = "WER")]
pub fn word_errors(hypothesis: &str, reference: &str) -> Ratio {
    let hypothesis: Vec<&str> = hypothesis.split_whitespace().collect();
    let reference: Vec<&str> = reference.split_whitespace().collect();
    Ratio::of(edit_distance(&hypothesis, &reference), reference.len())
}

/// Character error rate: the edit distance over Unicode scalar values, of the length of the reference in them. The
/// white space between words counts, that around a line does not.
#[doc(alias = "CER")]
pub fn character_errors(hypothesis: &str, reference: &str) -> Ratio {
    let hypothesis: Vec<char> = hypothesis.trim().chars().collect();
    let reference: Vec<char> = reference.trim().chars().collect();
    Ratio::of(edit_distance(&hypothesis, &reference), reference.len())
}

/// Phoneme error rate: the same as [`word_errors`] where each token is a phoneme, as in pronunciation dictionaries.
/// What that task calls its word error rate is [`sentence_errors`], for there a line is a word.
#[doc(alias = "PER")]
pub fn phoneme_errors(hypothesis: &str, reference: &str) -> Ratio {
    word_errors(hypothesis, reference)
}

/// Sentence error rate: whether any token differs, of 1 sentence. White space does not matter.
#[doc(alias = "SER")]
pub fn sentence_errors(hypothesis: &str, reference: &str) -> Ratio {
    Ratio::of(usize::from(!hypothesis.split_whitespace().eq(reference.split_whitespace())), 1)
}

/// The error rate of a sum of errors. References without any token, which have no rate, count as one token.
pub fn error_rate(errors: Ratio) -> f64 {
    errors.value_or(errors.numerator)
}
