//! Tables and sentences about results are those of `lookback results`.

use super::{below, root};
use crate::training::{assert_says, copy_folder, fail, finish, read, succeed};
use lookback::report::comparison::{Comparison, Curve};
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;

/// The documents with results, and what they are made from, in a folder of their own.
fn copied() -> TempDir {
    let dir = TempDir::new().unwrap();
    fs::create_dir_all(dir.path().join("docs")).unwrap();
    fs::copy(root().join("README.md"), dir.path().join("README.md")).unwrap();
    copy_folder(&root().join("docs/results"), &dir.path().join("docs/results"));
    dir
}

/// Their places below the root.
fn places() -> Vec<PathBuf> {
    let found = below(&root().join("docs/results")).into_iter().chain([root().join("README.md")]);
    found.map(|path| path.strip_prefix(root()).unwrap().to_path_buf()).collect()
}

#[test]
fn what_documents_say_of_results_is_what_the_command_writes() {
    let dir = copied();
    let said = succeed(dir.path(), &["results"]);
    assert_says(&said, &["3 documents from 15 results"]);
    for place in places() {
        let (committed, written) = (read(root().join(&place)), read(dir.path().join(&place)));
        assert!(committed == written, "{} is not what `lookback results` writes", place.display());
    }
}

#[test]
fn results_that_change_change_the_documents() {
    let dir = copied();
    let data = dir.path().join("docs/results/data/tour.json");
    let mut results: serde_json::Value = serde_json::from_str(&read(&data)).unwrap();
    results["quality"][0]["scores"][0]["score"] = 0.1234.into();
    fs::write(&data, results.to_string()).unwrap();
    succeed(dir.path(), &["results"]);
    let place = "docs/results/results.md";
    let (committed, written) = (read(root().join(place)), read(dir.path().join(place)));
    let row = "| all | 1000 | 12.3 (";
    assert!(!committed.contains(row) && written.contains(row), "{place}");
}

#[test]
fn evaluations_of_every_seed_are_taken_in_and_their_row_follows() {
    let dir = copied();
    let lines = "{\"sequence_accuracy\":0.25}\n\n{\"sequence_accuracy\":0.75}\n";
    fs::write(dir.path().join("scan.jsonl"), lines).unwrap();
    succeed(dir.path(), &["results", "--add", "scan-simple=scan.jsonl"]);
    assert_says(&read(dir.path().join("docs/results/results.md")), &["| 25.0, 75.0 % | 50.0 % (0.0 to 100.0) |"]);
    for (text, message) in [("", "no line"), ("{\"bleu\": 1}", "sequence_accuracy"), ("[]", "line 1")] {
        fs::write(dir.path().join("scan.jsonl"), text).unwrap();
        let said = fail(dir.path(), &["results", "--add", "scan-simple=scan.jsonl"]);
        assert_says(&said, &[message]);
        let kept = read(dir.path().join("docs/results/data/scan-simple.jsonl"));
        assert_eq!(
            kept, "{\"sequence_accuracy\":0.25}\n{\"sequence_accuracy\":0.75}\n",
            "what is refused replaces nothing"
        );
    }
    fs::write(dir.path().join("scan.jsonl"), lines).unwrap();
    assert_says(&fail(dir.path(), &["results", "--add", "other=scan.jsonl"]), &["index.toml", "[other]"]);
}

#[test]
fn a_suite_is_taken_in_and_its_matrix_follows() {
    let dir = copied();
    let data = dir.path().join("docs/results/data/small.json");
    let before = read(&data);
    fs::create_dir(dir.path().join("runs")).unwrap();
    fs::rename(&data, dir.path().join("runs/results.json")).unwrap();
    succeed(dir.path(), &["results", "--add", "small=runs"]);
    assert!(read(&data) == before, "it is taken in as it is");
    let mut results: serde_json::Value = serde_json::from_str(&before).unwrap();
    results["cells"][0]["scores"][0]["score"] = 0.1237.into();
    fs::write(&data, results.to_string()).unwrap();
    succeed(dir.path(), &["results"]);
    // In the matrix, and where there are sentences, in one of them.
    for (place, times) in [("README.md", 1), ("docs/results/results.md", 2)] {
        let n = |text: String| text.matches("12.4").count();
        assert_eq!(n(read(dir.path().join(place))), n(read(root().join(place))) + times, "{place}");
    }
}

#[test]
fn a_comparison_is_taken_in_without_what_no_document_needs() {
    let dir = copied();
    let run = dir.path().join("runs");
    fs::create_dir(&run).unwrap();
    let data = dir.path().join("docs/results/data/tour.json");
    let mut results: Comparison = serde_json::from_str(&read(&data)).unwrap();
    results.curves = vec![Curve::default()];
    fs::write(run.join("results.json"), serde_json::to_string(&results).unwrap()).unwrap();
    let before = read(&data);
    fs::remove_file(&data).unwrap();
    succeed(dir.path(), &["results", "--add", "tour=runs"]);
    assert!(read(&data) == before, "it is written as it was, without learning curves");
}

#[test]
fn no_folder_of_one_machine_is_taken_in() {
    let dir = copied();
    fs::create_dir(dir.path().join("made")).unwrap();
    let take = |name: &str, [from, to]: [&str; 2]| {
        let data = dir.path().join(format!("docs/results/data/{name}.json"));
        let before = read(&data);
        assert!(before.contains(from), "{name}");
        fs::write(dir.path().join("made/results.json"), before.replace(from, to)).unwrap();
        succeed(dir.path(), &["results", "--add", &format!("{name}=made")]);
        (before, read(&data))
    };
    let (before, after) = take("small", ["--out runs/small", "--out /home/me/small"]);
    assert!(after == before, "the command of a suite names no folder of one machine");
    let (before, after) = take("tour", ["runs/tour-three", "/home/me/three"]);
    assert!(
        after == before.replace("runs/tour-three", "runs/tour"),
        "neither the command nor the runs name the folder"
    );
    let (before, after) = take("tour", ["--out runs/tour", "--out=/home/me/three"]);
    assert!(after == before.replace("--out runs/tour", "--out=runs/tour"), "runs elsewhere stay where they are");
    // With a slash at its end, as a shell completes it; the runs have none.
    let (before, after) = take("tour", ["--out=runs/tour", "--out /home/me/three/"]);
    assert!(after == before.replace("--out=runs/tour", "--out runs/tour"));
    // One that is named from where the command was given is anybody's.
    let (before, after) = take("small", ["--out runs/small", "--out here"]);
    assert!(after == before.replace("--out runs/small", "--out here"));
}

#[test]
fn a_mark_that_asks_for_what_is_not_there_is_refused_with_its_line() {
    let dir = copied();
    let readme = dir.path().join("README.md");
    let says = |mark: &str, parts: &[&str]| {
        fs::write(&readme, format!("# Title\n\n<!-- results: {mark} -->\n<!-- end -->\n")).unwrap();
        assert_says(&fail(dir.path(), &["results"]), &[&["README.md", "line 3"], parts].concat());
    };
    says(
        "tuor; about",
        &[
            "there are no results \"tuor\" (cmudict, cmudict-together, cmudict-transformer, dutch, dutch-together, long, long-copy, multi30k-bahdanau, multi30k-rnn, multi30k-transformer, scan-length, scan-simple, small, tour, wu-2021)",
        ],
    );
    says("tour; abuot", &["\"abuot\" is nothing that can be written", "claims"]);
    says("small; models", &["\"models\" is nothing that can be written", "matrix intervals"]);
    says("scores; small", &["\"small\" is a comparison or a suite"]);
    says("dutch; models", &["\"models\" is nothing that can be written", "scores; NAME"]);
    says("grid bleu 2061; multi30k-rnn", &["RNN, one fixed context has no evaluation", "\"2061\""]);
    says("tour; models all, 5-66", &["there are no sentences \"5-66\"", "5-6"]);
    fs::write(&readme, "<!-- results: tour; about -->\ntext\n").unwrap();
    assert_says(&fail(dir.path(), &["results"]), &["line 1: there is no <!-- end --> after it"]);
    let refused = finish(dir.path(), &["results", "--add", "a b=x"]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert_says(&refused.stderr, &["is not NAME=PATH"]);
}
