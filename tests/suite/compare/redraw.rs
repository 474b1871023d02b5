//! `lookback compare --redraw`: a report from its numbers alone.

use super::command::COMPARED;
use super::suite::MADE;
use crate::training::{assert_says, copy_folder, fail, finish, read, succeed};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Every file below a folder, with its bytes.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut todo = vec![folder.to_path_buf()];
    while let Some(next) = todo.pop() {
        for path in std::fs::read_dir(&next).unwrap().map(|entry| entry.unwrap().path()) {
            match path.is_dir() {
                true => todo.push(path),
                false => drop(found.insert(path.strip_prefix(folder).unwrap().into(), std::fs::read(&path).unwrap())),
            }
        }
    }
    found
}

#[test]
fn a_report_is_drawn_again_from_its_results_where_they_lie_and_elsewhere() {
    let dir = TempDir::new().unwrap();
    std::fs::create_dir(dir.path().join("old")).unwrap();
    let results = read(COMPARED.path().join("out/results.json"));
    // What another program may have written after the last brace stays where the results lie.
    let kept = results.clone() + "\n\n";
    std::fs::write(dir.path().join("old/results.json"), &kept).unwrap();
    let expected = files(&COMPARED.path().join("out/report"));
    assert_eq!(succeed(dir.path(), &["compare", "--redraw", "old"]), "the report is old/report/index.html\n");
    assert_eq!(files(&dir.path().join("old/report")), expected);
    assert_eq!(read(dir.path().join("old/results.json")), kept);
    let elsewhere = ["compare", "--redraw", "old/results.json", "--out", "new"];
    assert_eq!(succeed(dir.path(), &elsewhere), "the report is new/report/index.html\n");
    assert_eq!(files(&dir.path().join("new/report")), expected);
    assert_eq!(read(dir.path().join("new/results.json")), results);
    // Charts and tables of an earlier report are removed, and files of others stay.
    for name in ["charts/cost-old.svg", "charts/mine.svg", "tables/notes.csv", "tables/trials.csv"] {
        std::fs::write(dir.path().join("new/report").join(name), "old").unwrap();
    }
    succeed(dir.path(), &elsewhere);
    let left: Vec<PathBuf> =
        files(&dir.path().join("new/report")).into_keys().filter(|path| !expected.contains_key(path)).collect();
    assert_eq!(left, ["charts/mine.svg", "tables/notes.csv"].map(PathBuf::from));
}

#[test]
fn results_are_not_put_in_the_place_of_others() {
    let dir = TempDir::new().unwrap();
    let (suite, comparison) = (MADE.0.path().join("out"), COMPARED.path().join("out"));
    copy_folder(&suite, &dir.path().join("suite"));
    copy_folder(&comparison, &dir.path().join("comparison"));
    for (from, to) in [(&comparison, "suite"), (&suite, "comparison"), (&comparison, "suite/copy")] {
        let before = files(&dir.path().join(to));
        let message = fail(dir.path(), &["compare", "--redraw", from.to_str().unwrap(), "--out", to]);
        assert_says(&message, &[&format!("{to}/results.json: has other results, which would be lost"), "--out"]);
        assert_eq!(files(&dir.path().join(to)), before);
    }
}

#[test]
fn a_suite_is_drawn_again_with_its_tasks_or_without() {
    let dir = TempDir::new().unwrap();
    copy_folder(&MADE.0.path().join("out"), &dir.path().join("old"));
    let expected = files(&dir.path().join("old"));
    succeed(dir.path(), &["compare", "--redraw", "old"]);
    assert_eq!(files(&dir.path().join("old")), expected);
    succeed(dir.path(), &["compare", "--redraw", "old", "--out", "new"]);
    let found = files(&dir.path().join("new"));
    assert!(found.len() > 20, "{} files", found.len());
    found.iter().for_each(|(path, bytes)| assert_eq!(expected.get(path), Some(bytes), "{path:?}"));
    // The results of a suite alone have the matrix.
    std::fs::create_dir(dir.path().join("alone")).unwrap();
    std::fs::copy(dir.path().join("old/results.json"), dir.path().join("alone/results.json")).unwrap();
    let finished = finish(dir.path(), &["compare", "--redraw", "alone"]);
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    assert_says(&finished.stderr, &["results.json: is not there, so that the report has the matrix"]);
    assert!(
        !read(dir.path().join("alone/report/index.html")).contains("/report/index.html"),
        "a link that leads nowhere"
    );
    assert!(read(dir.path().join("old/report/index.html")).contains("/report/index.html"));
}

#[test]
fn rows_and_maps_that_are_not_whole_are_drawn_as_far_as_they_go() {
    let dir = TempDir::new().unwrap();
    let mut results: serde_json::Value = serde_json::from_str(&read(COMPARED.path().join("out/results.json"))).unwrap();
    results["differences"][0]["values"] = serde_json::json!(["one"]);
    results["alignments"][0]["maps"][0]["columns"] = serde_json::json!([]);
    results["alignments"][0]["what"] = "of \u{1} letters".into();
    results["alignments"][0]["maps"][0]["rows"][0] = "\u{1}".into();
    std::fs::write(dir.path().join("results.json"), results.to_string()).unwrap();
    succeed(dir.path(), &["compare", "--redraw", "results.json"]);
    assert!(dir.path().join("report/index.html").is_file());
}

#[test]
fn what_is_no_result_is_refused_and_nothing_is_written() {
    let dir = TempDir::new().unwrap();
    let refused = |text: &str, parts: &[&str]| {
        std::fs::write(dir.path().join("results.json"), text).unwrap();
        assert_says(&fail(dir.path(), &["compare", "--redraw", "results.json", "--out", "new"]), parts);
        assert!(!dir.path().join("new").exists() && !dir.path().join("report").exists());
    };
    refused("{", &["results.json", "is not the results of a comparison"]);
    refused("{\"format\": 1}", &["results.json", "missing field"]);
    let results = read(COMPARED.path().join("out/results.json"));
    refused(&results.replacen("\"format\": 3", "\"format\": 99", 1), &["has format 99", "knows 3"]);
    refused(
        &results.replacen("\"format\": 3", "\"format\": 2", 1).replacen("\"thresholds\"", "\"x\"", 1),
        &["has format 2 of an earlier version, which lacks something: missing field `thresholds`"],
    );
    // Results name folders; those of somebody else lead nowhere else.
    let suite = read(MADE.0.path().join("out/results.json"));
    let name =
        suite.split("\"tasks\"").nth(1).unwrap().split("\"name\": \"").nth(1).unwrap().split('"').next().unwrap();
    refused(&suite.replace(&format!("\"{name}\""), "\"../gone\""), &["a task called \"../gone\""]);
    assert_says(
        &fail(dir.path(), &["compare", "--redraw", "nothing"]),
        &["nothing: is not there; give the results.json"],
    );
    let finished = finish(dir.path(), &["compare", "--redraw", ".", "--seeds", "3"]);
    assert_says(&finished.stderr, &["cannot be used with", "--seeds"]);
    // A run is not written into.
    std::fs::write(dir.path().join("results.json"), results).unwrap();
    std::fs::create_dir_all(dir.path().join("run/checkpoints")).unwrap();
    let message = fail(dir.path(), &["compare", "--redraw", ".", "--out", "run"]);
    assert_says(&message, &["run", "is a run folder"]);
}
