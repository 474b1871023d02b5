//! States: projections by hand, groups, neighbours, the picture.

use crate::cli::trained;
use crate::support::{flex, golden_with_source};
use crate::training::{assert_says, finish, read};
use lookback::layers::{Pass, Trace};
use lookback::models::Seq2Seq;
use lookback::models::weights::Weight;
use lookback::report::states::pca::project;
use lookback::report::states::words::{WordVectors, cosine};
use lookback::report::states::{Labelled, SentenceStates, grouping};
use serde_json::Value;
use tempfile::TempDir;

#[test]
fn two_dimensions_are_found_and_their_variance_is_told() {
    // Along (3, 4, 0) / 5 by -10, 0, 10 and along (0, 0, 1) by 1, -2, 1; the mean is (7, 7, 7).
    let vectors: [[f32; 3]; 3] = [[1.0, -1.0, 8.0], [7.0, 7.0, 5.0], [13.0, 15.0, 8.0]];
    let found = project(&vectors.each_ref().map(|vector| &vector[..]));
    let total = 200.0 + 6.0;
    assert!((found.explained[0] - 200.0 / total).abs() < 1e-9 && (found.explained[1] - 6.0 / total).abs() < 1e-9);
    for (point, expected) in found.points.iter().zip([[-10.0, 1.0], [0.0, -2.0], [10.0, 1.0]]) {
        assert!((point[0] - expected[0]).abs() < 1e-6 && (point[1] - expected[1]).abs() < 1e-6, "{point:?}");
    }
}

#[test]
fn vectors_that_do_not_vary_lie_on_one_point() {
    let found = project(&[&[1.0, 2.0], &[1.0, 2.0]]);
    assert_eq!((found.points, found.explained), (vec![[0.0, 0.0]; 2], [0.0, 0.0]));
    assert_eq!(project(&[]).points, Vec::<[f64; 2]>::new());
}

fn state(label: &str, vector: [f32; 2]) -> SentenceStates {
    let sentence = Labelled::parse(1, &format!("{label}\tx"));
    SentenceStates { sentence, tokens: vec![], vector: vector.to_vec(), states: vec![] }
}

#[test]
fn groups_by_hand() {
    let states = [state("a", [1.0, 0.0]), state("a", [2.0, 0.0]), state("b", [-1.0, 0.0]), state("c", [-2.0, 0.0])];
    let found = grouping(&states).unwrap();
    assert_eq!((found.within, found.nearest_is_same), (1.0, 1.0));
    assert!((found.by_chance - 1.0 / 3.0).abs() < 1e-12 && found.between < 0.0);
    assert_eq!(grouping(&[state("a", [1.0, 0.0]), state("b", [0.0, 1.0])]), None, "no label occurs twice");
    // A sentence without a label is of no other one.
    let unlabelled = SentenceStates { sentence: Labelled::parse(5, "x"), ..state("b", [-1.0, 0.0]) };
    let [first, second, ..] = states;
    let found = grouping(&[first, second, unlabelled]).unwrap();
    assert_eq!((found.within, found.between, found.nearest_is_same), (1.0, 0.0, 1.0));
}

#[test]
fn lines_may_have_a_label() {
    let with = Labelled::parse(2, "greeting\t guten Tag ");
    assert_eq!((with.label.as_deref(), with.text.as_str()), (Some("greeting"), "guten Tag"));
    assert_eq!(Labelled::parse(1, "guten Tag").label, None);
}

#[test]
fn the_mean_of_several_tokens_has_neighbours() {
    let table = Weight { shape: vec![3, 2], values: vec![1.0, 0.0, 0.0, 1.0, 3.0, 3.0] };
    let vectors = WordVectors::new(table);
    assert_eq!(vectors.of(&[0, 1]), [0.5, 0.5]);
    assert!((cosine(&vectors.of(&[0, 1]), &vectors.of(&[2])) - 1.0).abs() < 1e-6);
    assert_eq!(cosine(&[0.0, 0.0], &[1.0, 0.0]), 0.0);
}

#[test]
fn a_map_of_unknown_words_comes_with_a_warning() {
    let dir = TempDir::new().unwrap();
    std::fs::write(dir.path().join("unknown"), "x\ta dog chases a cat\ny\tthe cat sees a\n").unwrap();
    std::fs::write(dir.path().join("half"), "a dog b cat\nc d\n").unwrap();
    let path = |name: &str| dir.path().join(name).to_string_lossy().into_owned();
    let run = |input: &str, out: &str| {
        let (input, out) = (path(input), path(out));
        finish(trained(), &["inspect", "states", "--run", "run", "--input", &input, "--out", &out, "--json"])
    };
    let finished = run("unknown", "states.html");
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let warning = ["6 of the 9 words in", "are not in the vocabulary of run (\"dog\", \"chases\", \"cat\", ..)"];
    assert_says(&finished.stderr, &[&["warning: "][..], &warning].concat());
    assert_says(&read(dir.path().join("states.html")), &["6 of the 9 words in"]);
    let report: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!((&report["words_read"], &report["unknown_words"]), (&9.into(), &6.into()));
    assert!(!run("half", "half.html").stderr.contains("warning"), "a third is unknown");
}

#[test]
fn every_encoder_leaves_its_output_in_the_trace() {
    for case in golden_with_source() {
        let model = case.model(&flex());
        let mut trace = Trace::of(|name| name == "encoder.output");
        let source = lookback::data::batch::Padded::new(&case.source, 0, &flex());
        model.encode(&source, &mut Pass::traced(&mut trace));
        let output = trace.get("encoder.output").unwrap_or_else(|| panic!("{} has no output", case.name));
        assert_eq!(output.shape[..2], [case.source.len(), source.len()], "{}", case.name);
    }
}
