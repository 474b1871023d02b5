//! Nothing that a user made is lost, replaced or ignored without a word.

use super::{pipe, trained};
use crate::training::{
    BAHDANAU, Finished, TRANSFORMER, assert_says, copy_folder, fail, finish, lookback, read, succeed, write_tiny,
};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::process::Stdio;
use tempfile::TempDir;

#[test]
fn training_refuses_a_folder_with_files_of_somebody_else() {
    let dir = TempDir::new().unwrap();
    let config = read(write_tiny(dir.path(), BAHDANAU));
    let own = dir.path().join("own");
    fs::create_dir(&own).unwrap();
    for name in ["config.toml", ".draft.tmp", ".notes.backup.tmp", "notes.txt"] {
        fs::write(own.join(name), &config).unwrap();
        assert_says(
            &fail(dir.path(), &["train", "tiny.toml", "--run", "own"]),
            &["own: is no run and has ", name, "--run"],
        );
        assert_eq!(read(own.join(name)), config);
        fs::remove_file(own.join(name)).unwrap();
    }
    // What training that was killed early leaves is in nobody's way.
    for name in ["lock", "tokenizer.json", ".config.toml.aB3dE6.tmp"] {
        fs::write(own.join(name), "").unwrap();
    }
    succeed(dir.path(), &["train", "tiny.toml", "--run", "own", "--set", "training.max_updates=2"]);
    assert!(!own.join(".config.toml.aB3dE6.tmp").exists());
    // Nor is a model lost whose checkpoints have been removed.
    copy_folder(&own, &dir.path().join("mean"));
    let checkpoints = dir.path().join("mean/checkpoints");
    fs::rename(checkpoints.join("000002"), checkpoints.join("averaged-000002")).unwrap();
    fs::remove_dir_all(checkpoints.join("000001")).unwrap();
    assert_says(&fail(dir.path(), &["train", "tiny.toml", "--run", "mean"]), &["would lose averaged-000002"]);
    // A run is gone on with, whatever has been put beside it.
    fs::write(own.join("notes.txt"), "mine").unwrap();
    succeed(dir.path(), &["train", "tiny.toml", "--run", "own", "--set", "training.max_updates=4"]);
    assert_eq!(read(own.join("notes.txt")), "mine");
}

#[test]
fn training_that_never_began_leaves_no_folder() {
    let dir = TempDir::new().unwrap();
    write_tiny(dir.path(), BAHDANAU);
    let train = ["train", "tiny.toml", "--run", "run", "--set", "data.valid.tsv=nowhere.tsv"];
    assert_says(&fail(dir.path(), &train), &["nowhere.tsv"]);
    assert!(!dir.path().join("run").exists());
    let short = "model={kind=\"transformer\",d_model=16,n_heads=2,positions={kind=\"learned\",max_len=3}}";
    assert_says(&fail(dir.path(), &["train", "tiny.toml", "--run", "run", "--set", short]), &["max_len"]);
    assert!(!dir.path().join("run").exists(), "what is too long for the model shows before training begins");
    // A folder that was there stays.
    fs::create_dir(dir.path().join("run")).unwrap();
    fail(dir.path(), &train);
    assert!(dir.path().join("run").exists());
}

#[test]
fn training_again_what_is_trained_changes_no_record_of_it() {
    let dir = TempDir::new().unwrap();
    write_tiny(dir.path(), BAHDANAU);
    let train = ["train", "tiny.toml", "--run", "run", "--set"];
    succeed(dir.path(), &[&train[..], &["training.max_updates=6"]].concat());
    let command = || -> Value {
        serde_json::from_str::<Value>(&read(dir.path().join("run/environment.json"))).unwrap()["command"].clone()
    };
    let (config, first) = (read(dir.path().join("run/config.toml")), command());
    let message = fail(dir.path(), &[&train[..], &["training.max_updates=4"]].concat());
    assert_says(&message, &["training.max_updates: is 4 here", "has made 6 updates"]);
    assert_eq!(read(dir.path().join("run/config.toml")), config);
    let again =
        finish(dir.path(), &[&train[..], &["training.max_updates=6", "--set", "decoding.beam_size=2"]].concat());
    assert_says(&again.stderr, &["nothing left to train: all updates made, 6 updates"]);
    assert_eq!(command(), first, "the command is that of the training");
    succeed(dir.path(), &[&train[..], &["training.max_updates=8"]].concat());
    assert_says(command().as_str().unwrap(), &["training.max_updates=8"]);
}

#[test]
fn options_that_would_have_no_effect_are_refused() {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("a"), "x\n").unwrap();
    let a = dir.path().join("a");
    let a = a.to_str().unwrap();
    let files = ["evaluate", "--hypotheses", a, "--references", a];
    let run = ["evaluate", "--run", "run"];
    let attend = ["attend", "--query", "1,2", "--keys", "1,2;3,4"];
    let cases: [(&[&str], &[&str]); 8] = [
        (&files, &["--output", "out.txt"]),
        (&files, &["--chart", "chart.svg"]),
        (&run, &["--references", a]),
        (&run, &["--sources", a]),
        (&run, &["--sample", "--beam", "4"]),
        (&run, &["--sample", "--early-stopping"]),
        (&attend, &["--causal"]),
        (&["compare", "no.toml"], &["--sweep", "model.d_hidden=16,16"]),
    ];
    for (command, option) in cases {
        let finished = finish(trained(), &[command, option].concat());
        assert_eq!(
            (finished.code, finished.stdout.as_str()),
            (Some(2), ""),
            "{command:?} {option:?}: {}",
            finished.stderr
        );
    }
}

#[test]
fn words_of_targets_that_the_vocabulary_lacks_are_told() {
    let dir = TempDir::new().unwrap();
    let path = |name: &str, text: &str| {
        fs::write(dir.path().join(name), text).unwrap();
        dir.path().join(name).to_str().unwrap().to_owned()
    };
    let (sources, targets) = (path("s", "a b\nc\n"), path("t", "a zzz\nc\n"));
    for (option, side) in [("--targets", "target"), ("--prefixes", "prefix")] {
        let told = finish(trained(), &["translate", "--run", "run", "--input", &sources, option, &targets]);
        assert_eq!(told.code, Some(0), "{}", told.stderr);
        assert_says(
            &told.stderr,
            &[&format!("1 of 3 {side} tokens, in 1 line, are not in the vocabulary"), "\"zzz\" in line 1"],
        );
    }
    assert_eq!(pipe(&["translate", "--run", "run"], "a b\n").lines().count(), 1);
}

#[test]
fn a_check_with_data_finds_what_training_would() {
    let dir = TempDir::new().unwrap();
    let text = "[data]\ntrain = { tsv = \"train.tsv\" }\nvalid = { tsv = \"train.tsv\" }\n[tokenizer]\nkind = \"word\"\n\
                [model]\nkind = \"encoder-only\"\n";
    fs::write(dir.path().join("tags.toml"), text).unwrap();
    fs::write(dir.path().join("train.tsv"), "a b\tX Y\nc d\tX\n").unwrap();
    let train = fail(dir.path(), &["train", "tags.toml"]);
    assert_says(&train, &["2 source tokens and 1 target token"]);
    assert_eq!(fail(dir.path(), &["config", "check", "--data", "tags.toml"]), train);
    fs::write(dir.path().join("train.tsv"), "a b\tX Y\n").unwrap();
    assert_says(&succeed(dir.path(), &["config", "check", "--data", "tags.toml"]), &["training    1 pairs"]);
    // What a vocabulary made of the training data does not hold of the others.
    fs::write(dir.path().join("valid.tsv"), "a b\tX X\na zz\tX Y\n").unwrap();
    fs::write(dir.path().join("test.tsv"), "a b\tX W\n").unwrap();
    let others = ["--set", "data.valid.tsv=valid.tsv", "--set", "data.test.tsv=test.tsv"];
    let checked = succeed(dir.path(), &[&["config", "check", "--data", "tags.toml"], &others[..]].concat());
    let said: Vec<&str> = checked.lines().skip(3).collect();
    let read = "in 1 line, are not in the vocabulary and were read as <unk>";
    assert_eq!(
        said,
        [
            "test        1 pairs",
            &format!("validation  1 of 4 source tokens, {read}: \"zz\" in line 2"),
            &format!("test        1 of 2 target tokens, {read}: \"W\" in line 1"),
            "validation  1 of 2 different sources are training sources, too",
            "test        1 of 1 different sources are training sources, too",
        ]
    );
    // A model without test data is evaluated on what there is.
    let quick = ["train", "tags.toml", "--run", "run", "--set", "training.max_updates=1", "--set", "backend=flex"];
    assert_says(&succeed(dir.path(), &quick), &["lookback evaluate --run run --split valid"]);
    assert_says(&fail(dir.path(), &["evaluate", "--run", "run"]), &["data.test", "--split valid"]);
    succeed(dir.path(), &["evaluate", "--run", "run", "--split", "valid"]);
}

#[test]
fn data_that_are_all_held_out_are_not_blamed_on_the_filter() {
    let dir = TempDir::new().unwrap();
    let text = "[data]\ntrain = { tsv = \"train.tsv\" }\nhold_out_per_mille = 400\n";
    fs::write(dir.path().join("one.toml"), text).unwrap();
    // Of one source, which is held out as a whole; which sources are depends on their text alone.
    let all_held_out = (0..100).map(|i| format!("source{i}\ttarget\n").repeat(20)).any(|pairs| {
        fs::write(dir.path().join("train.tsv"), pairs).unwrap();
        let finished = finish(dir.path(), &["config", "check", "--data", "one.toml"]);
        assert_eq!(finished.code, Some(1), "nothing can be validated or learnt from: {}", finished.stdout);
        finished.stderr.contains("data.train: has no pairs")
            && finished.stderr.contains("data.hold_out_per_mille takes all")
    });
    assert!(all_held_out);
}

#[test]
fn a_model_that_writes_lower_case_has_one_score_in_training_and_in_evaluation() {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("train.tsv"), "A\tX\nb\ty\nC\tZ\nd\tw\n".repeat(5)).unwrap();
    let text = "[data]\ntrain = { tsv = \"train.tsv\" }\nvalid = { tsv = \"train.tsv\" }\ntest = { tsv = \"train.tsv\" }\n[tokenizer]\nkind = \"word\"\nlowercase = true\n";
    fs::write(dir.path().join("low.toml"), text.to_owned() + &TRANSFORMER.replace("0.2", "0.0").replace("0.1", "0.0"))
        .unwrap();
    let settings = [
        "training.max_updates=80",
        "training.validate_every=80",
        "training.learning_rate=0.01",
        "training.warmup_updates=5",
        "training.score=sequence-accuracy",
        "backend=flex",
    ];
    let mut train = vec!["train", "low.toml", "--run", "run"];
    settings.iter().for_each(|setting| train.extend(["--set", setting]));
    succeed(dir.path(), &train);
    let in_training = crate::training::numbers(&dir.path().join("run"), "valid", "score")[0];
    let evaluate = ["evaluate", "--run", "run", "--split", "valid", "--json"];
    let scores: Value = serde_json::from_str(&succeed(dir.path(), &evaluate)).unwrap();
    assert_eq!((in_training, &scores["sequence_accuracy"]), (100.0, &1.0.into()));
    let compare = ["compare", "--run", "run", "--max-cost-length", "0", "--out", "out"];
    succeed(dir.path(), &compare);
    let found: Value = serde_json::from_str(&read(dir.path().join("out/results.json"))).unwrap();
    assert_eq!(found["quality"][0]["scores"][0]["score"], 1.0, "{}", found["quality"][0]);
}

#[test]
fn evaluations_say_what_of_the_data_is_not_as_in_the_config() {
    let tested = |more: &[&str]| -> String {
        let text = succeed(trained(), &[&["evaluate", "--run", "run", "--json"], more].concat());
        serde_json::from_str::<Value>(&text).unwrap()["test"].as_str().unwrap().to_owned()
    };
    let own = tested(&[]);
    assert_eq!(tested(&["--split", "valid"]), format!("{own} (valid)"));
    assert_eq!(tested(&["--set", "data.task.max_len=7"]), format!("{own} (data.task.max_len=7)"));
    assert_eq!(tested(&["--set", "seed = 8", "--set", "data.dir=elsewhere"]), format!("{own} (seed=8)"));
    assert_eq!(tested(&["--set", "decoding.max_len_extra=9"]), own);
}

#[test]
fn each_score_is_shown_once_and_none_is_made_up() {
    let table = succeed(trained(), &["evaluate", "--run", "run", "--metric", "per", "--metric", "per"]);
    assert_eq!(table.lines().filter(|line| line.starts_with("PER")).count(), 1, "{table}");
    let table = succeed(trained(), &["evaluate", "--run", "run", "--metric", "span-f1"]);
    assert_says(&table, &["F1 of spans", " -   no spans"]);
    assert!(!table.contains("0.00"), "none by length either: {table}");
}

#[test]
fn the_results_of_other_contestants_are_kept() {
    let dir = TempDir::new().unwrap();
    copy_folder(&trained().join("run"), &dir.path().join("first"));
    copy_folder(&trained().join("run"), &dir.path().join("second"));
    let compare = |run: &str| finish(dir.path(), &["compare", "--run", run, "--max-cost-length", "0", "--out", "out"]);
    let first = compare("first");
    assert_eq!(first.code, Some(0), "{}", first.stderr);
    let results = read(dir.path().join("out/results.json"));
    assert!(!compare("first").stderr.contains("replace"));
    let replacing = compare("second");
    assert_says(
        &replacing.stderr,
        &["out has a report with first, which the new one will replace", "--redraw out/results-before-1.json"],
    );
    let second = read(dir.path().join("out/results.json"));
    compare("first");
    // Each of them is kept.
    assert_eq!(read(dir.path().join("out/results-before-1.json")), results);
    assert_eq!(read(dir.path().join("out/results-before-2.json")), second);
    succeed(dir.path(), &["compare", "--redraw", "out/results-before-1.json", "--out", "again"]);
    let message = fail(dir.path(), &["compare", "--redraw", "out/results-before-1.json"]);
    assert_says(&message, &["has another name than results.json", "--out"]);
}

#[test]
fn a_file_is_named_as_its_user_would() {
    let refused = fail(trained(), &["config", "check", "tiny.toml", "--set", "data.test.tsv="]);
    assert_says(&refused, &["data.test", "a file has an empty name"]);
    let mut child = lookback(trained(), &["translate", "--run", "run"]);
    let mut child = child.stdin(Stdio::piped()).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"a b\n\xff\n").unwrap();
    let finished = Finished::from(child.wait_with_output().unwrap());
    assert_says(finished.fault(), &["<standard input>:2: "]);
}

#[test]
fn a_place_that_is_not_there_is_named_as_it_was_given() {
    let finished = finish(trained(), &["explain", "--run", "run", "a b", "--html", "/nowhere/x.html"]);
    assert_eq!((finished.code, finished.stderr.contains(".tmp")), (Some(1), false), "{}", finished.stderr);
    assert_says(finished.fault(), &["/nowhere/x.html: No such file"]);
}
