//! The report says what its data say, and asks the network for nothing.

use lookback::report::comparison::tables::tables;
use lookback::report::comparison::words::findings;
use lookback::report::comparison::{
    AlignedSentence, Comparison, Contestant, Cost, CostKind, Curve, CurvePoint, Difference, Group, GroupKind, Map,
    Quality, Score, Significance, Task, charts, files, html,
};
use lookback::scoring::Estimate;
use std::path::Path;
use tempfile::TempDir;

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
        significance: vec![Significance {
            baseline: names[0].into(),
            system: names[1].into(),
            group: "all".into(),
            metric: "sequence_accuracy".into(),
            difference: Estimate { score: -0.05, low: -0.1, high: 0.02 },
            p_value: 0.1,
            is_significant: false,
        }],
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
    .rounded()
}

#[test]
fn the_numbers_of_the_page_and_the_tables_are_those_of_the_data() {
    let comparison = example();
    let page = html::page(&comparison).render();
    for row in &comparison.quality {
        for value in [row.scores[0].score, row.scores[0].low, row.scores[0].high] {
            assert!(page.contains(&format!("data-value=\"{value}\"")), "{value} is missing");
        }
    }
    let tables = tables(&comparison);
    let quality = tables.iter().find(|table| table.id == "quality").unwrap();
    for (line, row) in quality.csv().lines().skip(1).zip(&comparison.quality) {
        let score = &row.scores[0];
        assert!(line.ends_with(&format!("{},{},{}", score.score, score.low, score.high)), "{line}");
    }
    assert!(quality.csv().contains("\"other & \"\"co\"\"\""), "quotes are doubled");
}

#[test]
fn the_contents_lead_to_sections_that_are_there() {
    let page = html::page(&example()).render();
    let (_, rest) = page.split_once("<nav class=\"contents").unwrap();
    let (contents, _) = rest.split_once("</nav>").unwrap();
    let ids: Vec<&str> = contents.split("href=\"#").skip(1).map(|link| link.split('"').next().unwrap()).collect();
    assert_eq!(ids, ["quality", "cost", "curves", "fairness"], "nothing of what was not measured");
    assert!(ids.iter().all(|id| page.contains(&format!("<h2 id=\"{id}\">"))), "{ids:?}");
}

#[test]
fn an_answer_is_right_by_its_text_whatever_its_tokens_are() {
    let map = |name: &str, text: &str| Map {
        contestant: name.into(),
        text: text.into(),
        columns: vec!["a".into(), "</s>".into()],
        rows: text.chars().map(String::from).chain(["</s>".into()]).collect(),
        weights: vec![0.5; 2 * (text.len() + 1)],
    };
    let sentence = AlignedSentence {
        what: "of middle length".into(),
        source: "a".into(),
        reference: "a b".into(),
        maps: vec![map("one", "a b"), map("other", "a c")],
    };
    let page = html::page(&Comparison { alignments: vec![sentence], ..example() }).render();
    for caption in ["one: 3 tokens written, right<", "other: 3 tokens written, not the reference<"] {
        assert!(page.contains(caption), "{caption}");
    }
}

#[test]
fn the_page_asks_for_nothing_and_escapes_names() {
    let page = html::page(&example()).render();
    let own = page.replace("http://www.w3.org/2000/svg", "");
    for request in ["http:", "https:", "src=", "@import", "url(", "fetch(", "<link rel=\"stylesheet\""] {
        assert!(!own.contains(request), "{request}");
    }
    assert!(page.contains("default-src 'none'"));
    assert!(!page.contains("one <b>") && page.contains("one &lt;b&gt;"));
    // Every element that is opened is closed.
    for tag in ["div", "figure", "table", "svg", "ul", "dl", "details", "h2", "h3", "p", "nav", "main"] {
        let opened = page.matches(&format!("<{tag}>")).count() + page.matches(&format!("<{tag} ")).count();
        assert_eq!(opened, page.matches(&format!("</{tag}>")).count(), "<{tag}>");
    }
}

#[test]
fn sentences_follow_the_numbers_whichever_way_they_point() {
    let comparison = example();
    let text = findings(&comparison).join("\n");
    for part in [
        "one <b> 80.0 %, other & \"co\" 75.0 %",
        "may be luck",
        "one <b> falls with length",
        "other & \"co\" holds with length",
        "20 words (2.0 times the longest): one <b> 10.0 %, other & \"co\" 70.0 %",
    ] {
        assert!(text.contains(part), "{part:?} is missing in:\n{text}");
    }
    let mut turned = comparison;
    turned.quality.iter_mut().for_each(|row| {
        let score = &mut row.scores[0];
        let value = 1.0 - score.score;
        (score.score, score.low, score.high) = (value, value * 0.9, value * 1.05);
    });
    turned.significance[0].is_significant = true;
    let text = findings(&turned).join("\n");
    for part in ["other & \"co\" 25.0 %, one <b> 20.0 %", "is significant", "one <b> rises with length"] {
        assert!(text.contains(part), "{part:?} is missing in:\n{text}");
    }
}

#[test]
fn every_chart_is_a_picture_with_labels_markers_and_the_shaded_region() {
    let comparison = example();
    let all = charts::charts(&comparison);
    let quality = all.iter().find(|chart| chart.id == "quality-sequence-accuracy").unwrap().svg();
    for part in ["source length (words)", "sentences right (%)", "never seen in training", "<title>", "fill-opacity"] {
        assert!(quality.contains(part), "{part}");
    }
    insta::with_settings!({ snapshot_path => "snapshots" }, { insta::assert_snapshot!("quality_by_length", quality) });
}

#[test]
fn results_are_read_back_as_written_and_every_file_is_there() {
    let dir = TempDir::new().unwrap();
    let comparison = example();
    let page = files::write(&comparison, dir.path()).unwrap();
    assert_eq!(page, dir.path().join("report/index.html"));
    let text = std::fs::read_to_string(dir.path().join("results.json")).unwrap();
    assert_eq!(serde_json::from_str::<Comparison>(&text).unwrap(), comparison);
    let is_there = |name: &str| dir.path().join("report").join(name).is_file();
    for chart in charts::charts(&comparison) {
        assert!(is_there(&format!("charts/{}.svg", chart.id)) && is_there(&format!("charts/{}.png", chart.id)));
    }
    assert!(is_there("overview.svg") && is_there("overview.png"));
    assert!(is_there("tables/quality.csv") && is_there("tables/costs.csv"));
}

#[test]
fn the_schema_in_the_manual_names_every_key() {
    let manual = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/compare.md");
    let manual = std::fs::read_to_string(manual).unwrap();
    let value = serde_json::to_value(example()).unwrap();
    for key in value.as_object().unwrap().keys() {
        assert!(manual.contains(&format!("`{key}`")), "docs/compare.md does not name `{key}`");
    }
}
