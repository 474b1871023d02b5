//! The report says what its data say, and asks the network for nothing.

use super::example::example;
use lookback::report::comparison::measures::tables;
use lookback::report::comparison::{
    AlignedSentence, Comparison, Cost, Curve, CurvePoint, Difference, Fact, Map, Trial, files, html, measures,
};
use std::path::Path;
use tempfile::TempDir;

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
    // A reader sees percentages; the file has fractions, and says so.
    assert!(quality.columns.iter().any(|column| column == "sequence accuracy (%)"), "{:?}", quality.columns);
    let csv = quality.csv();
    assert!(csv.lines().next().unwrap().contains("sequence accuracy (fraction)"), "{csv}");
    for table in &tables {
        assert!(!table.csv().lines().next().unwrap().contains('%'), "{}", table.csv());
    }
}

#[test]
fn no_probability_is_said_to_be_none() {
    let mut comparison = example();
    (comparison.claims[0].p_value, comparison.claims[0].p_corrected) = (Some(0.00002), Some(0.00114));
    let tables = tables(&comparison);
    let claims = tables.iter().find(|table| table.id == "claims").unwrap();
    let shown = |name: &str| {
        let column = claims.columns.iter().position(|column| column == name).unwrap();
        claims.rows[0][column].text.as_str()
    };
    assert_eq!([shown("p"), shown("p corrected")], ["<0.001", "0.001"]);
    assert!(claims.csv().contains(",0.00002,0.00114,"), "the file has them in full: {}", claims.csv());
    assert!(html::page(&comparison).render().contains("&lt;0.001"));
}

#[test]
fn the_page_says_with_how_many_seeds_each_model_was_trained() {
    let says = |seeds: [usize; 2], part: &str| {
        let mut comparison = example();
        for (contestant, n) in comparison.contestants.iter_mut().zip(seeds) {
            contestant.seeds = (1..=n as u64).collect();
        }
        assert!(html::page(&comparison).render().contains(part), "{part}");
    };
    says([1, 1], "One seed each. ");
    says([3, 3], "3 seeds each; scores are means over the seeds. ");
    says([3, 1], "3 seeds of one &lt;b&gt;, one seed of other &amp; &quot;co&quot;; scores are means");
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
        other_references: vec!["b a".into()],
        maps: vec![map("one", "a b"), map("other", "a c"), map("third", "b a")],
    };
    let page = html::page(&Comparison { alignments: vec![sentence], ..example() }).render();
    let captions = ["one: 3 tokens written, right<", "other: 3 tokens written, not", "third: 3 tokens written, right<"];
    for caption in captions {
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
fn no_name_and_no_text_can_become_a_part_of_the_page() {
    let evil = "<script>alert(1)</script>\"' onload=x";
    let mut comparison = example();
    let names: Vec<String> = comparison.contestants.iter().map(|own| own.name.clone()).collect();
    let text = serde_json::to_string(&comparison)
        .unwrap()
        .replace(&serde_json::to_string(&names[0]).unwrap(), &serde_json::to_string(evil).unwrap());
    comparison = serde_json::from_str(&text).unwrap();
    for text in [
        &mut comparison.task.name,
        &mut comparison.task.test_sha256,
        &mut comparison.decoding,
        &mut comparison.command,
        &mut comparison.version,
        &mut comparison.backend,
        &mut comparison.device,
        &mut comparison.platform,
    ] {
        *text = evil.into();
    }
    comparison.contestants[0].model = evil.into();
    comparison.notes = vec![evil.into()];
    comparison.same = vec![Fact { what: evil.into(), value: evil.into() }];
    comparison.differences = vec![Difference { what: evil.into(), values: vec![evil.into(); 2] }];
    comparison.trials = vec![Trial { contestant: evil.into(), ..Trial::default() }];
    comparison.costs[1].unfinished = Some(evil.into());
    let map = Map {
        contestant: evil.into(),
        text: evil.into(),
        columns: vec![evil.into(); 2],
        rows: vec![evil.into(); 2],
        weights: vec![0.5; 4],
    };
    comparison.alignments = vec![AlignedSentence {
        what: evil.into(),
        source: evil.into(),
        reference: evil.into(),
        other_references: vec![evil.into()],
        maps: vec![map],
    }];
    let page = html::page(&comparison).render();
    let scripts = html::page(&Comparison::default()).render().matches("<script").count();
    assert!(page.contains("&lt;script&gt;alert(1)"), "the name is shown");
    assert_eq!(page.matches("<script").count(), scripts, "a script of a name");
    assert!(!page.contains("\"' onload"), "a quote of a name");
    for chart in measures::charts(&comparison) {
        let svg = chart.svg();
        assert!(!svg.contains("<script") && !svg.contains("\"' onload"), "{}", chart.id);
    }
}

#[test]
fn one_architecture_has_one_line_of_costs() {
    let mut comparison = example();
    let names: Vec<String> = comparison.contestants.iter().map(|contestant| contestant.name.clone()).collect();
    comparison.costs.retain(|cost| cost.contestant == names[0]);
    let shared: Vec<Cost> = comparison
        .costs
        .iter()
        .map(|cost| Cost { contestant: names[1].clone(), same_as: Some(names[0].clone()), ..cost.clone() })
        .collect();
    comparison.costs.extend(shared);
    let all = measures::charts(&comparison);
    let costs = all.iter().find(|chart| chart.id == "cost-update-seconds").unwrap();
    let lines: Vec<&str> = costs.series.iter().map(|series| series.name.as_str()).collect();
    assert_eq!(lines, [names.join(", ")]);
}

#[test]
fn learning_curves_of_several_seeds_are_one_line_with_a_band() {
    let mut comparison = example();
    let of_seed = |seed: u64, losses: [f64; 2]| Curve {
        contestant: comparison.contestants[0].name.clone(),
        seed,
        train: (1..).zip(losses).map(|(update, loss)| CurvePoint { update, loss, ..CurvePoint::default() }).collect(),
        valid: Vec::new(),
    };
    comparison.curves = vec![of_seed(1, [3.0, 2.0]), of_seed(2, [4.0, 1.0])];
    comparison.contestants[0].seeds = vec![1, 2];
    let all = measures::charts(&comparison);
    let curves = all.iter().find(|chart| chart.id == "curves-updates").unwrap();
    assert_eq!(curves.series.len(), 1);
    let points: Vec<_> = curves.series[0].points.iter().map(|point| (point.y, point.interval)).collect();
    assert_eq!(points, [(3.5, Some([3.0, 4.0])), (1.5, Some([1.0, 2.0]))]);
    // A band, and no whisker at every point.
    let svg = curves.svg();
    assert_eq!((svg.matches("fill-opacity=\"0.16\"").count(), svg.matches("stroke-width=\"1.2\"").count()), (1, 0));
    assert!(curves.caption.contains("means over the seeds"));
}

#[test]
fn every_chart_is_a_picture_with_labels_markers_and_the_shaded_region() {
    let comparison = example();
    let all = measures::charts(&comparison);
    let quality = all.iter().find(|chart| chart.id == "quality-sequence-accuracy").unwrap().svg();
    for part in ["source length (words)", "sequence accuracy (%)", "never seen in training", "<title>", "fill-opacity"]
    {
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
    for chart in measures::charts(&comparison) {
        assert!(is_there(&format!("charts/{}.svg", chart.id)) && is_there(&format!("charts/{}.png", chart.id)));
    }
    assert!(is_there("overview.svg") && is_there("overview.png"));
    assert!(is_there("tables/quality.csv") && is_there("tables/costs.csv"));
}

#[test]
fn the_schema_in_the_manual_names_every_key() {
    let manual = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/results-json.md");
    let manual = std::fs::read_to_string(manual).unwrap();
    let value = serde_json::to_value(example()).unwrap();
    for key in value.as_object().unwrap().keys() {
        assert!(manual.contains(&format!("`{key}`")), "docs/reference/results-json.md does not name `{key}`");
    }
}
