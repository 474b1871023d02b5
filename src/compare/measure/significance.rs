//! Paired bootstrap between every two contestants, in every group.

use super::quality::{Scored, value};
use crate::compare::test_set::TestSet;
use crate::error::Result;
use crate::report::comparison::Significance;
use crate::scoring::Bootstrap;

/// The one-sided p-value below which a difference is called significant: 5 % for both directions together, that is, the 95 %
/// interval of the difference leaves zero out.
pub const LEVEL: f64 = 0.025;

/// Every two of `contestants` in every group.
///
/// # Errors
/// If a group is empty.
pub fn significance(
    contestants: &[Scored],
    test: &TestSet,
    metrics: &[String],
    bootstrap: &Bootstrap,
) -> Result<Vec<Significance>> {
    let mut rows = Vec::new();
    for (group, indices) in &test.groups {
        let statistics: Vec<_> = contestants.iter().map(|contestant| contestant.at(indices)).collect();
        for (i, baseline) in contestants.iter().enumerate() {
            for (j, system) in contestants.iter().enumerate().skip(i + 1) {
                for metric in metrics {
                    let found = bootstrap.compare(&statistics[i], &statistics[j], |sum| value(metric, sum))?;
                    rows.push(Significance {
                        baseline: baseline.name.clone(),
                        system: system.name.clone(),
                        group: group.id.clone(),
                        metric: metric.clone(),
                        difference: found.difference,
                        p_value: found.p_value,
                        is_significant: found.p_value < LEVEL,
                    });
                }
            }
        }
    }
    Ok(rows)
}
