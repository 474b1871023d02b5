//! What was found, in sentences, the most important first. Each is made from the numbers of the comparison, whichever way they point.

use super::claims::rows::Claim;
use super::data::Comparison;
use super::measures::costs::words::{crossing, growth, price};
use super::measures::faults::words::cut;
use super::measures::positions::words::between_ends;
use super::measures::quality::lengths::{levels, reach};
use super::measures::quality::words::{OF_RUNS, beyond, overall, ranked, steps, with_length};

/// The findings, most important first.
pub fn findings(comparison: &Comparison) -> Vec<String> {
    let mut found = Vec::new();
    found.extend(overall(comparison));
    found.extend(comparison.contestants.iter().filter_map(|contestant| with_length(comparison, &contestant.name)));
    found.extend(beyond(comparison));
    found.extend(levels(comparison));
    found.extend(cut(comparison));
    found.extend(comparison.contestants.iter().filter_map(|contestant| between_ends(comparison, &contestant.name)));
    found.extend(growth(comparison));
    let of_seconds = comparison.crossings.iter().filter(|crossing| crossing.of == "seconds");
    found.extend(of_seconds.map(|row| crossing(comparison, row)));
    // Beside claims of two models it is said already.
    let is_of_runs = comparison.claims.iter().any(Claim::is_of_runs);
    found.extend((is_of_runs && comparison.contestants.len() == 1).then(|| OF_RUNS.to_string()));
    found
}

/// The three sentences that a reader should know first: who is best, up to which length, and at what price.
pub fn headlines(comparison: &Comparison) -> Vec<String> {
    [overall(comparison), reach(comparison), price(comparison)].into_iter().flatten().collect()
}

/// What is claimed of each step of the order on the whole test set, in at most three sentences: the first screen of the page, whose table
/// has the numbers.
pub(super) fn first_sentences(comparison: &Comparison) -> Vec<String> {
    let steps = steps(comparison, &ranked(comparison));
    if steps.is_empty() {
        return headlines(comparison);
    }
    let is_of_runs = steps.iter().any(|step| step.is_of_runs);
    let room = if is_of_runs { 2 } else { 3 };
    let mut sentences: Vec<String> = steps.into_iter().take(room).map(|step| step.sentence).collect();
    sentences.extend(is_of_runs.then(|| OF_RUNS.to_string()));
    sentences
}

/// The comparison as a short text for a terminal.
pub fn summary(comparison: &Comparison) -> String {
    let mut text = String::new();
    for finding in findings(comparison) {
        text += &format!("- {finding}\n");
    }
    for note in &comparison.notes {
        text += &format!("- {note}\n");
    }
    if !comparison.differences.is_empty() {
        let what: Vec<&str> = comparison.differences.iter().map(|difference| difference.what.as_str()).collect();
        text += &format!("- Not equal between the models: {}.\n", what.join(", "));
    }
    text
}
