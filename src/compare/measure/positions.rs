//! Which source positions are forgotten: how often a token is right, by where in the source it stands that it needs.

use super::translations::Translation;
use crate::compare::test_set::TestSet;
use crate::data::{Pair, TaskConfig, tasks::BLANK};
use crate::report::comparison::{GroupKind, PositionAccuracy};

/// Shorter sentences have no tenths.
const SHORTEST: usize = 10;

/// The accuracies of a contestant by tenths of the sentence, for the whole test set and for every single length.
///
/// Only sentences of at least ten positions count. The words before the token are given, so that one mistake is not counted
/// again in all that follows it.
pub fn positions(
    contestant: &str,
    by_seed: &[Vec<Translation>],
    test: &TestSet,
    task: Option<&TaskConfig>,
) -> Vec<PositionAccuracy> {
    let of = if task.is_some_and(knows_source) { "source" } else { "target" };
    let mut rows = Vec::new();
    for (group, indices) in test.groups.iter().filter(|(group, _)| group.kind != GroupKind::Bucket) {
        let mut sums = [(0, 0); 10];
        for translations in by_seed {
            for i in indices {
                let own = tenths(&test.pairs[*i], &translations[*i], task);
                for (sum, (right, tokens)) in sums.iter_mut().zip(own) {
                    sum.0 += right;
                    sum.1 += tokens;
                }
            }
        }
        for (tenth, (right, tokens)) in sums.into_iter().enumerate().filter(|(_, (_, tokens))| *tokens > 0) {
            rows.push(PositionAccuracy {
                contestant: contestant.to_string(),
                group: group.id.clone(),
                of: of.to_string(),
                tenth: tenth + 1,
                tokens,
                accuracy: right as f64 / tokens as f64,
            });
        }
    }
    rows
}

/// Right tokens and tokens of each tenth of a sentence.
pub(super) fn tenths(pair: &Pair, translation: &Translation, task: Option<&TaskConfig>) -> [(usize, usize); 10] {
    let mut tenths = [(0, 0); 10];
    // Without the end symbol, which needs no position.
    let verdicts = &translation.forced.as_bytes()[..translation.forced.len().saturating_sub(1)];
    let source: Vec<&str> = pair.source.split_whitespace().collect();
    for (t, verdict) in verdicts.iter().enumerate() {
        let (position, len) = match task.filter(|task| knows_source(task)) {
            Some(task) => match needed(task, &source, verdicts.len(), t) {
                Some(position) => (position, source.len()),
                None => continue,
            },
            None => (t, verdicts.len()),
        };
        if len >= SHORTEST {
            let tenth = &mut tenths[position * 10 / len];
            tenth.0 += usize::from(*verdict == b'1');
            tenth.1 += 1;
        }
    }
    tenths
}

/// Whether a task says which source token a target token needs.
fn knows_source(task: &TaskConfig) -> bool {
    matches!(task, TaskConfig::Copy(_) | TaskConfig::Reverse(_) | TaskConfig::Recall(_))
}

/// The place in the source of what target token `t` of `n` needs, from 0; none where the tokens are not the words.
pub fn needed(task: &TaskConfig, source: &[&str], n: usize, t: usize) -> Option<usize> {
    match task {
        TaskConfig::Copy(_) => (n == source.len()).then_some(t),
        TaskConfig::Reverse(_) => (n == source.len()).then(|| n - 1 - t),
        TaskConfig::Recall(_) => {
            let question = source.iter().position(|word| *word == "?")?;
            // A question is answered where it stands, or in its turn.
            let key = if n == source.len() {
                source.get(t).filter(|_| t > question)?
            } else {
                let asked: Vec<&&str> = source[question + 1..].iter().filter(|word| **word != BLANK).collect();
                *asked.get(t).filter(|_| n == asked.len())?
            };
            let place = source[..question].iter().step_by(2).position(|word| word == key)?;
            Some(2 * place + 1)
        }
        _ => None,
    }
}
