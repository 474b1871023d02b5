//! What bad input gets: exit code 1 and one line that says what is wrong, where, and what to do.

use super::trained;
use crate::training::{BAHDANAU, TRANSFORMER, assert_says, fail, finish, lookback, read, succeed, write_tiny};
use std::fs;
use std::process::Stdio;
use tempfile::TempDir;

#[test]
fn a_folder_that_is_no_run_says_so() {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("in"), "a\n").unwrap();
    fs::create_dir(dir.path().join("empty")).unwrap();
    fs::create_dir(dir.path().join("half")).unwrap();
    fs::copy(trained().join("run/config.toml"), dir.path().join("half/config.toml")).unwrap();
    for command in [&["translate", "--input", "in"][..], &["evaluate"]] {
        let on = |run: &'static str| fail(dir.path(), &[command, &["--run", run]].concat());
        assert_says(&on("nowhere"), &["nowhere: is no folder; give the run folder"]);
        assert_says(&on("in"), &["in: is no folder"]);
        assert_says(&on("empty"), &["empty: has no config.toml, so it is no run folder"]);
        assert_says(&on("half"), &["half: has no tokenizer.json"]);
    }
    fs::copy(trained().join("run/tokenizer.json"), dir.path().join("half/tokenizer.json")).unwrap();
    assert_says(
        &fail(dir.path(), &["translate", "--run", "half", "--input", "in"]),
        &["half: has no checkpoint, and no model.safetensors"],
    );
}

#[test]
fn a_damaged_file_of_a_run_is_named() {
    for (file, text, parts) in [
        ("tokenizer.json", "{", &["run/tokenizer.json: not a tokenizer file"][..]),
        ("config.toml", "seed = 1\nsede = 2\n", &["run/config.toml: has lost its first line"]),
    ] {
        let dir = TempDir::new().unwrap();
        crate::training::copy_folder(&trained().join("run"), &dir.path().join("run"));
        fs::write(dir.path().join("run").join(file), text).unwrap();
        fs::write(dir.path().join("in"), "a\n").unwrap();
        assert_says(&fail(dir.path(), &["translate", "--run", "run", "--input", "in"]), parts);
    }
}

#[test]
fn a_backend_that_was_not_compiled_in_lists_those_that_were() {
    let Some(missing) =
        [("cuda", cfg!(feature = "cuda")), ("metal", cfg!(feature = "metal"))].iter().find(|(_, is_in)| !is_in)
    else {
        return;
    };
    let message = fail(trained(), &["translate", "--run", "run", "--backend", missing.0]);
    assert_says(
        &message,
        &[&format!("backend \"{}\" is not in this build, which has auto, flex, ndarray", missing.0), "--features"],
    );
}

#[test]
fn malformed_text_names_file_and_line() {
    let dir = TempDir::new().unwrap();
    let run = trained().join("run");
    let run = run.to_str().unwrap();
    fs::write(dir.path().join("latin"), b"a\nb\n\xe9t\xe9\n").unwrap();
    assert_says(&fail(dir.path(), &["translate", "--run", run, "--input", "latin"]), &["latin:3: ", "UTF-8"]);
    fs::write(dir.path().join("long"), format!("a\n{}\n", "a ".repeat(1 << 20))).unwrap();
    assert_says(&fail(dir.path(), &["translate", "--run", run, "--input", "long"]), &["long:2: "]);
    assert_says(&fail(dir.path(), &["translate", "--run", run, "--input", "missing"]), &["missing: No such file"]);
    fs::write(dir.path().join("in"), "a\nb\n").unwrap();
    fs::write(dir.path().join("three"), "a\nb\nc\n").unwrap();
    for flag in ["--prefixes", "--targets"] {
        let message = fail(dir.path(), &["translate", "--run", run, "--input", "in", flag, "three"]);
        assert_says(&message, &["three: has 3 lines where in has 2"]);
    }
    assert_says(
        &fail(dir.path(), &["translate", "--run", run, "--input", "in", "--output", "no/out"]),
        &["no/out: No such file"],
    );
    for (flags, part) in [
        (&["--beam", "0"][..], "decoding.beam_size: must be at least 1, got 0"),
        (&["--beam", "2", "--n-best", "3"], "decoding.n_best: must be at most decoding.beam_size, got 3 and 2"),
        (&["--sample", "--temperature", "0"], "decoding.sampling.temperature: must be above 0 and finite, got 0"),
        (&["--sample", "--temperature", "-1"], "decoding.sampling.temperature: must be above 0 and finite, got -1"),
        (&["--sample", "--temperature", "inf"], "decoding.sampling.temperature: must be above 0 and finite, got inf"),
        (&["--max-len-factor", "-2.5"], "decoding.max_len_factor: must be a finite number of at least 0, got -2.5"),
        (&["--max-len-factor", "nan"], "decoding.max_len_factor: must be a finite number of at least 0, got NaN"),
    ] {
        assert_says(&fail(dir.path(), &[&["translate", "--run", run, "--input", "in"][..], flags].concat()), &[part]);
    }
}

#[test]
fn bad_training_data_is_named() {
    let dir = TempDir::new().unwrap();
    let write = |name: &str, text: &[u8]| fs::write(dir.path().join(name), text).unwrap();
    write("good", b"a\tb\nb\ta\n");
    write("one", b"a\tb\nb\n");
    write("latin", b"a\tb\nb\t\xe9\n");
    write("empty", b"");
    write("src", b"a\nb\n");
    write("tgt", b"a\n");
    let config = |data: &str| write("my.toml", format!("backend = \"flex\"\n[data]\n{data}\n{TRANSFORMER}").as_bytes());
    for (train, parts) in [
        ("{ tsv = \"one\" }", &["one:2: 1 column instead of 2"][..]),
        ("{ tsv = \"latin\" }", &["latin:2: ", "UTF-8"]),
        ("{ tsv = \"empty\" }", &["empty: the corpus is empty"]),
        ("{ tsv = \"nowhere\" }", &["nowhere: No such file"]),
        ("{ source = \"src\", target = \"tgt\" }", &["src: 2 lines, but tgt has 1"]),
    ] {
        config(&format!("train = {train}\nvalid = {{ tsv = \"good\" }}"));
        assert_says(&fail(dir.path(), &["train", "my.toml"]), parts);
        assert!(!dir.path().join("runs/my/config.toml").exists(), "a run that could not begin has not begun");
    }
    // Where a corpus comes from is said where its folder has its name.
    for (folder, fetches) in [("scan", true), ("own", false)] {
        config(&format!("dir = \"{folder}\"\ntrain = {{ tsv = \"x\" }}\nvalid = {{ tsv = \"x\" }}"));
        for command in [&["train", "my.toml"][..], &["config", "check", "my.toml", "--data"]] {
            let message = fail(dir.path(), command);
            assert_says(&message, &[&format!("{folder}/x: is not there"), "--set data.dir=FOLDER"]);
            assert_eq!(message.contains("lookback data fetch scan --out scan"), fetches, "{message}");
        }
    }
    config("train = { tsv = \"good\" }\nvalid = { tsv = \"good\" }\nfilter = { min_len = 3 }");
    assert_says(
        &fail(dir.path(), &["train", "my.toml"]),
        &["no training pairs are left after filtering", "2 too short"],
    );
    config("train = { tsv = \"good\" }\nvalid = { tsv = \"good\" }\n[tokenizer]\nkind = \"word\"\nmin_count = 9");
    assert_says(
        &fail(dir.path(), &["train", "my.toml"]),
        &["tokenizer: ", "nothing but special tokens", "min_count = 9"],
    );
    config("train = { tsv = \"good\" }\nvalid = { tsv = \"good\" }");
    succeed(dir.path(), &["train", "my.toml", "--set", "training.max_updates=1"]);
    assert_says(
        &fail(dir.path(), &["evaluate", "--run", "runs/my"]),
        &["data.test: is missing", "--set data.test.source=FILE"],
    );
    succeed(dir.path(), &["evaluate", "--run", "runs/my", "--set", "data.test.tsv=good"]);
}

#[test]
fn a_model_that_cannot_be_built_names_the_keys() {
    let dir = TempDir::new().unwrap();
    write_tiny(dir.path(), TRANSFORMER);
    let train = |setting: &'static str| fail(dir.path(), &["train", "tiny.toml", "--set", setting]);
    assert_says(&train("model.n_heads=3"), &["model.n_heads: must divide model.d_model, got 3 and 16"]);
    let message = fail(
        dir.path(),
        &["train", "tiny.toml", "--set", "tokenizer.shared=false", "--set", "model.tied_embeddings=all"],
    );
    assert_says(&message, &["model.tied_embeddings: ", "tokenizer.shared = true"]);
    assert_says(&train("data.n_valid=100000"), &["data.task: ", "too small"]);
    assert_says(&fail(dir.path(), &["train", "no.toml"]), &["no.toml: No such file"]);
    fs::write(dir.path().join("in-the-way"), "").unwrap();
    assert_says(
        &fail(dir.path(), &["train", "tiny.toml", "--run", "in-the-way"]),
        &["in-the-way/checkpoints: Not a directory"],
    );
}

#[test]
fn learned_positions_refuse_what_is_too_long_wherever_it_comes_from() {
    let dir = TempDir::new().unwrap();
    write_tiny(dir.path(), TRANSFORMER);
    let learned = |n: &str| format!("model.positions={{ kind = \"learned\", max_len = {n} }}");
    let message = fail(dir.path(), &["train", "tiny.toml", "--set", &learned("4")]);
    assert_says(
        &message,
        &["model.positions.max_len: is 4, but the data has 6 tokens in a source sentence", "a scheme without a limit"],
    );
    let n = learned("6");
    succeed(dir.path(), &["train", "tiny.toml", "--run", "run", "--set", &n, "--set", "training.max_updates=1"]);
    let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
    write("long", "a\n\na b c d e a\nb\n");
    write("short", "a\n\na b c d e\nb\n");
    let translate = |arguments: &[&str]| finish(dir.path(), &[&["translate", "--run", "run"][..], arguments].concat());
    let finished = translate(&["--input", "short"]);
    assert_eq!((finished.code, finished.stdout.lines().count()), (Some(0), 4), "{}", finished.stderr);
    for (arguments, place) in [
        (&["--input", "long"][..], "long:3: "),
        (&["--input", "short", "--prefixes", "long"], "long:3: "),
        (&["--input", "short", "--targets", "long"], "long:3: "),
        (&["--input", "long", "--targets", "short"], "long:3: "),
    ] {
        let finished = translate(arguments);
        assert_eq!(finished.code, Some(1), "{arguments:?}: {}", finished.stderr);
        let what = "has 7 tokens with the end symbol, but the model was trained with model.positions.max_len = 6; split the line";
        assert_says(finished.fault(), &[place, what, "a model without that limit"]);
    }
    for (pairs, place) in [
        ("a\ta\na b c d e a\ta\n", "the source of pair 2 has 7 tokens"),
        ("a\ta b c d e a\n", "the target of pair 1 has 7"),
    ] {
        write("pairs", pairs);
        let message = fail(dir.path(), &["evaluate", "--run", "run", "--set", "data.test.tsv=pairs"]);
        assert_says(&message, &[place, "model.positions.max_len = 6"]);
    }
}

#[test]
fn a_location_score_refuses_a_source_that_is_too_long_wherever_it_comes_from() {
    let dir = TempDir::new().unwrap();
    write_tiny(dir.path(), BAHDANAU);
    let location = |n: &str| format!("model.attention.score={{ kind = \"location\", max_source_len = {n} }}");
    let message = fail(dir.path(), &["train", "tiny.toml", "--set", &location("5")]);
    let what = "model.attention.score.max_source_len: is 5, but the data has 6 tokens in a source sentence";
    assert_says(&message, &[what, "raise it", "a scheme without a limit"]);
    let n = location("6");
    succeed(dir.path(), &["train", "tiny.toml", "--run", "run", "--set", &n, "--set", "training.max_updates=1"]);
    let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
    write("long", "a\n\na b c d e a\nb\n");
    write("short", "a\n\na b c d e\nb\n");
    let translate = |arguments: &[&str]| finish(dir.path(), &[&["translate", "--run", "run"][..], arguments].concat());
    // The target may be of any length.
    for arguments in [&["--input", "short", "--beam", "2"][..], &["--input", "short", "--targets", "long"]] {
        let finished = translate(arguments);
        assert_eq!((finished.code, finished.stdout.lines().count()), (Some(0), 4), "{}", finished.stderr);
    }
    let limit = "the model was trained with model.attention.score.max_source_len = 6";
    for arguments in [&["--input", "long"][..], &["--input", "long", "--targets", "short"]] {
        let finished = translate(arguments);
        assert_eq!(finished.code, Some(1), "{arguments:?}: {}", finished.stderr);
        assert_says(finished.fault(), &["long:3: has 7 tokens with the end symbol", limit]);
    }
    let evaluate = || finish(dir.path(), &["evaluate", "--run", "run", "--set", "data.test.tsv=pairs"]);
    write("pairs", "a\ta b c d e a\n");
    assert_eq!(evaluate().code, Some(0));
    write("pairs", "a\ta\na b c d e a\ta\n");
    assert_says(evaluate().fault(), &["the source of pair 2 has 7 tokens", limit]);
}

#[test]
fn a_message_is_one_line_without_a_stack_trace() {
    let dir = TempDir::new().unwrap();
    for arguments in [&["train", "no.toml"][..], &["evaluate", "--run", "no"], &["config", "check", "no.toml"]] {
        let finished =
            lookback(dir.path(), arguments).env("RUST_BACKTRACE", "1").stdin(Stdio::null()).output().unwrap();
        let stderr = String::from_utf8(finished.stderr).unwrap();
        assert_eq!((finished.status.code(), stderr.lines().count()), (Some(1), 1), "{stderr}");
    }
}

#[test]
fn a_reader_of_the_message_can_run_the_command_again() {
    let dir = TempDir::new().unwrap();
    write_tiny(dir.path(), BAHDANAU);
    let run = dir.path().join("with space");
    let run = run.to_str().unwrap();
    succeed(dir.path(), &["train", "tiny.toml", "--run", run, "--set", "training.max_updates=1"]);
    let environment: serde_json::Value =
        serde_json::from_str(&read(dir.path().join("with space/environment.json"))).unwrap();
    assert_says(environment["command"].as_str().unwrap(), &[&format!("--run '{run}'")]);
}
