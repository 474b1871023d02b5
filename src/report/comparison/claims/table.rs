//! Every claim with all that it rests on.

use super::rows::ClaimKind;
use crate::report::comparison::data::Comparison;
use crate::report::comparison::score::{self, percent};
use crate::report::comparison::table::{Cell, Table};
use crate::scoring::Verdict;

pub(in crate::report::comparison) fn table(comparison: &Comparison) -> Table {
    let columns = [
        "on",
        "score",
        "first",
        "second",
        "second minus first",
        "low",
        "high",
        "sentences",
        "seeds",
        "p",
        "p corrected",
        "verdict",
        "family",
    ];
    let about = "Every statement about a difference, or about a score and a level. Its variance is that over test sentences (by resampling) and that over seeds; \
                 p is two-sided, by Student's t with Welch's degrees of freedom, and corrected by Holm for all tests of its \
                 family. Different: the corrected p is below 0.05. Equivalent: the 95 % interval lies within 1 point of BLEU \
                 or chrF, or 2 points of a percentage. Undecided: neither. With a single seed a statement is about these runs.";
    let mut table = Table::new("claims", "What is different, what is equal, and what cannot be said", about, &columns);
    for claim in &comparison.claims {
        let shown = |value: f64| Cell::number(format!("{:+.1}", percent(&claim.metric, value)), value);
        let [first, second] = &claim.operands;
        let first = match claim.kind {
            ClaimKind::Level => {
                Cell::text(first.parse::<f64>().map_or(first.clone(), |level| score::shown(&claim.metric, level)))
            }
            _ => Cell::group(comparison, first),
        };
        let [one, other] = claim.n_seeds;
        let verdict = match claim.verdict {
            Verdict::Different => "different",
            Verdict::Equivalent => "equivalent",
            Verdict::Undecided => "undecided",
        };
        table.rows.push(vec![
            Cell::group(comparison, &claim.group),
            // The CSV has fractions, and the name that JSON has.
            Cell { id: Some(claim.metric.clone()), ..Cell::text(score::metric_label(&claim.metric)) },
            first,
            Cell::group(comparison, second),
            shown(claim.estimate),
            shown(claim.low),
            shown(claim.high),
            Cell::count(claim.n_sentences),
            Cell::text(if one == other { one.to_string() } else { format!("{one} and {other}") }),
            Cell::maybe(claim.p_value, Cell::p),
            Cell::maybe(claim.p_corrected, Cell::p),
            Cell::text(verdict),
            Cell::text(&claim.family),
        ]);
    }
    table
}
