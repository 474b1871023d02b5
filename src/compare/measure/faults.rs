//! What goes wrong with length: too short, too long, repeated, stopped early, left out.

use super::alignments::Omitted;
use super::translations::Translation;
use crate::compare::test_set::{TestSet, words};
use crate::report::comparison::Faults;
use std::collections::HashSet;

/// Words in an n-gram that counts as repeated: in random sequences so many hardly ever come twice.
const ORDER: usize = 4;
/// A target with fewer than this part of the reference's words has stopped early.
const SHORT: f64 = 0.9;

/// The faults of a contestant in every group.
pub fn faults(contestant: &str, by_seed: &[Vec<Translation>], omitted: &[Omitted], test: &TestSet) -> Vec<Faults> {
    let mut rows = Vec::new();
    for (group, indices) in &test.groups {
        let mut sums = Sums::default();
        for translations in by_seed {
            for i in indices {
                sums.add(&translations[*i], &test.pairs[*i].target);
            }
        }
        let n = (indices.len() * by_seed.len()).max(1) as f64;
        let of_group: Vec<&Omitted> = omitted.iter().filter(|omitted| omitted.group == group.id).collect();
        let n_source: usize = of_group.iter().map(|omitted| omitted.words).sum();
        let n_omitted: usize = of_group.iter().map(|omitted| omitted.omitted).sum();
        rows.push(Faults {
            contestant: contestant.to_string(),
            group: group.id.clone(),
            length_ratio: part(sums.words, sums.reference_words),
            repetition: part(sums.repeated, sums.ngrams),
            reference_repetition: part(sums.reference_repeated, sums.reference_ngrams),
            early_stop: sums.early as f64 / n,
            cut: sums.cut as f64 / n,
            omission: (n_source > 0).then(|| part(n_omitted, n_source)),
        });
    }
    rows
}

#[derive(Default)]
struct Sums {
    words: usize,
    reference_words: usize,
    repeated: usize,
    ngrams: usize,
    reference_repeated: usize,
    reference_ngrams: usize,
    early: usize,
    cut: usize,
}

impl Sums {
    fn add(&mut self, translation: &Translation, reference: &str) {
        let (written, wanted) = (words(&translation.text), words(reference));
        self.words += written;
        self.reference_words += wanted;
        let (repeated, ngrams) = repetition(&translation.text);
        self.repeated += repeated;
        self.ngrams += ngrams;
        let (repeated, ngrams) = repetition(reference);
        self.reference_repeated += repeated;
        self.reference_ngrams += ngrams;
        self.early += usize::from(translation.is_complete && (written as f64) < SHORT * wanted as f64);
        self.cut += usize::from(!translation.is_complete);
    }
}

fn part(some: usize, all: usize) -> f64 {
    if all == 0 { 0.0 } else { some as f64 / all as f64 }
}

/// The 4-grams of a text that occurred before in it, and all of them.
pub fn repetition(text: &str) -> (usize, usize) {
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut seen = HashSet::new();
    let ngrams = words.windows(ORDER);
    let n = ngrams.len();
    (ngrams.filter(|ngram| !seen.insert(*ngram)).count(), n)
}
