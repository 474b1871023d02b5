//! `data generate` and `data list`.

use crate::training::{assert_says, fail, read, succeed};
use std::collections::HashSet;
use tempfile::TempDir;

#[test]
fn generated_data_is_the_same_again_and_another_seed_gives_other_data() {
    let dir = TempDir::new().unwrap();
    let generate = |out: &str, seed: &str| {
        let arguments = [
            "data",
            "generate",
            "reverse",
            "--out",
            out,
            "--pairs",
            "40",
            "--min-len",
            "2",
            "--max-len",
            "6",
            "--seed",
            seed,
        ];
        assert_says(&succeed(dir.path(), &arguments), &[out, "40 training pairs, 4 each"]);
        ["train.tsv", "valid.tsv", "test.tsv"].map(|file| read(dir.path().join(out).join(file)))
    };
    let (one, two, three) = (generate("one", "7"), generate("two", "7"), generate("three", "8"));
    assert_eq!(one, two);
    assert!(one.iter().zip(&three).all(|(a, b)| a != b));
    assert_eq!(one.each_ref().map(|text| text.lines().count()), [40, 4, 4]);
    let sources =
        |text: &str| text.lines().map(|line| line.split('\t').next().unwrap().to_string()).collect::<HashSet<_>>();
    assert!(sources(&one[0]).is_disjoint(&sources(&one[1])) && sources(&one[0]).is_disjoint(&sources(&one[2])));
    for line in one.iter().flat_map(|text| text.lines()) {
        let (source, target) = line.split_once('\t').unwrap();
        let mut letters: Vec<&str> = source.split(' ').collect();
        letters.reverse();
        assert_eq!(letters.join(" "), target);
        assert!((2..=6).contains(&letters.len()), "{line}");
    }
}

#[test]
fn generated_data_says_how_it_was_made_and_its_command_makes_it_again() {
    let dir = TempDir::new().unwrap();
    succeed(
        dir.path(),
        &["data", "generate", "sort", "--out", "a/b", "--pairs", "30", "--max-len", "9", "--seed", "3"],
    );
    let readme = read(dir.path().join("a/b/README.md"));
    let command = "lookback data generate sort --out a/b --pairs 30 --max-len 9 --seed 3";
    assert_says(
        &readme,
        &[
            "# sort",
            "| train.tsv | 30 |",
            "| valid.tsv | 3 |",
            "| test.tsv | 3 |",
            "Seed 3",
            command,
            "max_len = 9",
            env!("CARGO_PKG_VERSION"),
        ],
    );
    let before = read(dir.path().join("a/b/train.tsv"));
    let arguments: Vec<&str> = command.split(' ').skip(1).collect();
    let message = fail(dir.path(), &arguments);
    assert_says(&message, &["a/b/train.tsv: is there already", "--force"]);
    std::fs::remove_dir_all(dir.path().join("a")).unwrap();
    succeed(dir.path(), &arguments);
    assert_eq!(read(dir.path().join("a/b/train.tsv")), before);
    std::fs::write(dir.path().join("a/b/train.tsv"), "").unwrap();
    succeed(dir.path(), &[&arguments[..], &["--force"]].concat());
    assert_eq!(read(dir.path().join("a/b/train.tsv")), before);
    // Words of one letter are too few for three sets: those that are there stay.
    let few = ["--pairs", "300", "--min-len", "1", "--max-len", "1", "--force"];
    fail(dir.path(), &[&["data", "generate", "copy", "--out", "a/b"][..], &few].concat());
    assert_eq!(read(dir.path().join("a/b/train.tsv")), before);
}

#[test]
fn no_generated_file_is_overwritten_whichever_is_there() {
    for file in ["train.tsv", "valid.tsv", "test.tsv", "README.md"] {
        let dir = TempDir::new().unwrap();
        std::fs::write(dir.path().join(file), "mine").unwrap();
        let message = fail(dir.path(), &["data", "generate", "copy", "--out", ".", "--pairs", "10"]);
        assert_says(&message, &[file, "is there already"]);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "nothing else is written");
        assert_eq!(read(dir.path().join(file)), "mine");
    }
}

#[test]
fn a_set_that_cannot_be_replaced_as_a_whole_stays_as_it_was() {
    let dir = TempDir::new().unwrap();
    let generate = ["data", "generate", "copy", "--out", "set", "--pairs"];
    succeed(dir.path(), &[&generate[..], &["20"]].concat());
    let texts = || ["train.tsv", "valid.tsv", "test.tsv"].map(|file| read(dir.path().join("set").join(file)));
    let before = texts();
    let readme = dir.path().join("set/README.md");
    std::fs::remove_file(&readme).unwrap();
    std::fs::create_dir(&readme).unwrap();
    let said = fail(dir.path(), &[&generate[..], &["30", "--seed", "9", "--force"]].concat());
    assert_says(&said, &["README.md: is a folder"]);
    assert_eq!(texts(), before);
}

#[test]
fn every_listed_task_can_be_generated_and_every_corpus_has_a_licence() {
    let dir = TempDir::new().unwrap();
    let list = succeed(dir.path(), &["data", "list"]);
    let (tasks, corpora) = list.split_once("\n\n").unwrap();
    let names: Vec<&str> = tasks.lines().skip(1).map(|line| line.split_whitespace().next().unwrap()).collect();
    assert!(names.len() >= 6, "{names:?}");
    for name in names {
        succeed(dir.path(), &["data", "generate", name, "--out", name, "--pairs", "10"]);
    }
    for line in corpora.lines().skip(1) {
        assert!(line.ends_with(']'), "no licence: {line}");
    }
    assert_says(corpora, &["multi30k", "tatoeba-en-fr"]);
}

#[test]
fn tasks_and_numbers_that_make_no_sense_are_refused() {
    let dir = TempDir::new().unwrap();
    let generate =
        |arguments: &[&str]| fail(dir.path(), &[&["data", "generate"][..], arguments, &["--out", "out"]].concat());
    assert_says(&generate(&["copi"]), &["unknown task `copi`; there are: copy, reverse"]);
    assert_says(&generate(&["copy", "--pairs", "0"]), &["--pairs must be at least 1, got 0"]);
    assert_says(&generate(&["dates", "--max-len", "3"]), &["`dates` has no lengths to set"]);
    assert_says(&generate(&["copy", "--min-len", "5", "--max-len", "3"]), &["max_len: must be at least min_len = 5"]);
    assert_says(&generate(&["copy", "--min-len", "1", "--max-len", "1"]), &["too small"]);
}
