//! Which test sentences each seed of a family answered right: what claims about families need that were made at different times.

use crate::compare::measure::quality::{BySeed, Scored};
use crate::scoring::{Metric, Ratio, SentenceStatistics};

/// The sentences that a digit stands for.
const OF_DIGIT: usize = 4;

/// For each seed a hexadecimal digit for every four sentences, the first sentence its highest bit, where the score counts right answers
/// alone; nothing where it does not.
pub(super) fn digits(metric: Metric, scored: &Scored) -> Vec<String> {
    if metric != Metric::SequenceAccuracy {
        return Vec::new();
    }
    let n_seeds = scored.sentences.first().map_or(0, |sentence| sentence.0.len());
    let is_right = |seed: usize, sentence: &BySeed| sentence.0[seed].sequences.numerator > 0.0;
    let digit = |seed: usize, sentences: &[BySeed]| {
        let bits = sentences.iter().enumerate().map(|(i, own)| u32::from(is_right(seed, own)) << (OF_DIGIT - 1 - i));
        char::from_digit(bits.sum(), 16).expect("four bits")
    };
    (0..n_seeds).map(|seed| scored.sentences.chunks(OF_DIGIT).map(|own| digit(seed, own)).collect()).collect()
}

/// The answers that [`digits`] has written, of `n` sentences; nothing if they are not of so many.
pub(super) fn scored(name: &str, right: &[String], n: usize) -> Option<Scored> {
    let mut sentences = vec![BySeed::default(); n];
    for digits in right {
        let bits: Vec<u32> = digits.chars().map(|digit| digit.to_digit(16)).collect::<Option<_>>()?;
        if bits.len() != n.div_ceil(OF_DIGIT) {
            return None;
        }
        for (i, sentence) in sentences.iter_mut().enumerate() {
            let is_right = bits[i / OF_DIGIT] >> (OF_DIGIT - 1 - i % OF_DIGIT) & 1 == 1;
            let sequences = Ratio::of(usize::from(is_right), 1);
            sentence.0.push(SentenceStatistics { sequences, ..SentenceStatistics::default() });
        }
    }
    (!right.is_empty()).then(|| Scored { name: name.to_string(), sentences })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_what_was_written() {
        let right = [[true, false, false, true, true, false], [false, false, false, false, false, true]];
        let of = |i: usize| {
            let seeds = right.iter().map(|seed| SentenceStatistics {
                sequences: Ratio::of(usize::from(seed[i]), 1),
                ..SentenceStatistics::default()
            });
            BySeed(seeds.collect())
        };
        let written = Scored { name: "one".into(), sentences: (0..6).map(of).collect() };
        let found = digits(Metric::SequenceAccuracy, &written);
        assert_eq!(found, ["98", "04"]);
        assert_eq!(scored("one", &found, 6).unwrap().sentences, written.sentences);
        assert!(digits(Metric::Bleu, &written).is_empty(), "no sentence is right or wrong");
        for (digits, n) in [(vec!["98".to_string()], 9), (vec!["9x".into()], 6), (vec![], 6)] {
            assert!(scored("one", &digits, n).is_none(), "{digits:?} of {n}");
        }
    }
}
