//! `lookback compare`: the arithmetic against NumPy, SciPy and sacreBLEU, the report against its data, and the command.
//!
//! `tests/golden/comparison.py` writes the golden values.

mod arithmetic;
mod claims;
mod command;
mod example;
mod going_on;
mod page;
mod parts;
mod progress;
mod redraw;
mod refusals;
mod report;
mod sentences;
mod suite;

use lookback::compare::measure::quality::Scored;
use lookback::compare::measure::translations::Translation;
use lookback::compare::test_set::TestSet;
use lookback::data::Pair;
use lookback::report::comparison::{Group, GroupKind};
use lookback::scoring::LengthUnit;
use std::path::Path;

/// A folder with a finished comparison, which tests must not write into, and the command that made it.
pub fn finished() -> (&'static Path, Vec<&'static str>) {
    (command::COMPARED.path(), command::arguments(&["--out", "out"]))
}

/// Test data in one group.
fn test_set(pairs: Vec<Pair>) -> TestSet {
    let indices: Vec<usize> = (0..pairs.len()).collect();
    let group = Group { id: "all".into(), kind: GroupKind::All, sentences: pairs.len(), ..Group::default() };
    TestSet {
        n_proper: pairs.len(),
        references: references(&pairs),
        unit: LengthUnit::Words,
        pairs,
        groups: vec![(group, indices)],
        trained_length: 10,
        train_pairs: 0,
        sha256: String::new(),
        notes: Vec::new(),
    }
}

/// What one seed wrote.
fn written(texts: &[String]) -> Vec<Translation> {
    texts.iter().map(|text| Translation { text: text.clone(), is_complete: true, forced: String::new() }).collect()
}

fn references(pairs: &[Pair]) -> Vec<Vec<String>> {
    pairs.iter().map(|pair| vec![pair.target.clone()]).collect()
}

fn scored(name: &str, texts: &[String], pairs: &[Pair]) -> Scored {
    Scored::new(name, &[written(texts)], &references(pairs), false).unwrap()
}
