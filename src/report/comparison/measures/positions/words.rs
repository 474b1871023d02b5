//! What is said of the two ends of a sentence.

use crate::report::comparison::claims::rows::ClaimKind;
use crate::report::comparison::claims::words::signed;
use crate::report::comparison::data::Comparison;
use crate::scoring::Verdict;

/// What is claimed of the first and the last tenth of sentences.
pub(in crate::report::comparison) fn between_ends(comparison: &Comparison, name: &str) -> Option<String> {
    let mut of_position = comparison.claims.iter().filter(|claim| claim.kind == ClaimKind::Position);
    let claim = of_position.find(|claim| claim.group == name)?;
    let of = &comparison.positions.iter().find(|row| row.contestant == name)?.of;
    let verb = match claim.verdict {
        Verdict::Different if claim.is_small => "right nearly as often in the first tenth of the OF as in the last",
        Verdict::Different if claim.estimate > 0.0 => "right less often in the first tenth of the OF than in the last",
        Verdict::Different => "right more often in the first tenth of the OF than in the last",
        Verdict::Equivalent => "right as often in the first tenth of the OF as in the last",
        Verdict::Undecided => "not significantly different between the first tenth of the OF and the last",
    };
    let verb = verb.replace("OF", of);
    let [change, low, high] = [claim.estimate, claim.low, claim.high].map(|value| signed(100.0 * value));
    Some(format!("Tokens of {name} are {verb}: {change} points from first to last ({low} to {high})."))
}
