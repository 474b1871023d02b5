//! A made-up comparison for tests of the report.

use lookback::report::comparison::{
    Claim, ClaimKind, Comparison, Contestant, Cost, CostKind, Curve, CurvePoint, Difference, Group, GroupKind, Quality,
    Score, Task,
};
use lookback::scoring::Verdict;

/// A comparison of two models with awkward names.
pub(super) fn example() -> Comparison {
    let names = ["one <b>", "other & \"co\""];
    let group = |id: &str, kind, from, to, is_seen| Group {
        id: id.into(),
        kind,
        from,
        to,
        mean_length: (from + to) as f64 / 2.0,
        sentences: 10,
        is_seen,
        chance: None,
    };
    let groups = vec![
        group("all", GroupKind::All, 1, 10, true),
        group("1-5", GroupKind::Bucket, 1, 5, true),
        group("6-10", GroupKind::Bucket, 6, 10, true),
        group("length-20", GroupKind::Length, 20, 20, false),
    ];
    let score = |score: f64| Score {
        metric: "sequence_accuracy".into(),
        score,
        low: score * 0.9,
        high: score * 1.05,
        by_seed: vec![score],
        seed_deviation: None,
    };
    let quality = |name: &str, values: [f64; 4]| {
        let row = |(group, value): (&Group, f64)| Quality {
            contestant: name.into(),
            group: group.id.clone(),
            scores: vec![score(value)],
        };
        groups.iter().zip(values).map(row).collect::<Vec<_>>()
    };
    let claim = |estimate: f64, verdict: Verdict| Claim {
        metric: "sequence_accuracy".into(),
        estimate,
        low: estimate - 0.07,
        high: estimate + 0.05,
        n_sentences: 10,
        n_seeds: [1, 1],
        margin: 0.02,
        verdict,
        ..Claim::default()
    };
    let cost = |name: &str, length: usize, seconds: Option<f64>| Cost {
        contestant: name.into(),
        kind: CostKind::Update,
        length,
        seconds,
        peak_bytes: Some(50 << 20),
        base_bytes: Some(40 << 20),
        ..Cost::default()
    };
    Comparison {
        task: Task { name: "copy".into(), is_generated: true, trained_length: 10, ..Task::default() },
        metrics: vec!["sequence_accuracy".into()],
        contestants: names
            .map(|name| Contestant { name: name.into(), seeds: vec![1], ..Contestant::default() })
            .to_vec(),
        differences: vec![Difference { what: "parameters".into(), values: vec!["100".into(), "120".into()] }],
        quality: [quality(names[0], [0.8, 0.9, 0.4, 0.1]), quality(names[1], [0.75, 0.75, 0.75, 0.7])].concat(),
        claims: vec![
            Claim {
                operands: names.map(String::from),
                group: "all".into(),
                p_value: Some(0.05),
                p_corrected: Some(0.1),
                ..claim(-0.05, Verdict::Undecided)
            },
            Claim {
                kind: ClaimKind::Length,
                group: names[0].into(),
                operands: ["1-5", "6-10"].map(String::from),
                ..claim(-0.5, Verdict::Different)
            },
            Claim {
                kind: ClaimKind::Length,
                group: names[1].into(),
                operands: ["1-5", "6-10"].map(String::from),
                ..claim(0.0, Verdict::Equivalent)
            },
        ],
        costs: vec![cost(names[0], 16, Some(0.01)), cost(names[0], 32, None), cost(names[1], 16, Some(0.02))],
        curves: vec![Curve {
            contestant: names[0].into(),
            seed: 1,
            train: vec![CurvePoint { update: 1, seconds: 0.1, loss: 3.0, score: None }; 2],
            valid: Vec::new(),
        }],
        groups,
        ..Comparison::default()
    }
}
