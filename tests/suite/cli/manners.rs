//! What every command has in common: short names, how much is said, which device, whose paths.

use super::{pipe, trained};
use crate::training::{TRANSFORMER, assert_says, fail, finish, read, succeed, tiny_text, write_tiny};
use std::fs;
use tempfile::TempDir;

#[test]
fn short_names_stand_for_long_ones() {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("in"), "a b\nc\n").unwrap();
    let run = trained().join("run");
    let run = run.to_str().unwrap();
    let long = ["translate", "--run", run, "--input", "in", "--output", "long", "--backend", "flex", "--device", "0"];
    let name = fs::read_to_string(trained().join("run/best")).unwrap().lines().next().unwrap().to_string();
    succeed(dir.path(), &[&long[..], &["--checkpoint", &name, "--set", "decoding.beam_size=2"]].concat());
    let short = ["translate", "-r", run, "-i", "in", "-o", "short", "-b", "flex", "-c", &name];
    succeed(dir.path(), &[&short[..], &["-s", "decoding.beam_size=2"]].concat());
    assert_eq!(read(dir.path().join("long")), read(dir.path().join("short")));
    let short = succeed(dir.path(), &["evaluate", "-r", run, "-s", "decoding.beam_size=2", "--json"]);
    assert_eq!(short, succeed(dir.path(), &["evaluate", "--run", run, "--set", "decoding.beam_size=2", "--json"]));
}

#[test]
fn quiet_says_nothing_but_warnings_and_verbose_says_what_and_how_long() {
    let dir = TempDir::new().unwrap();
    write_tiny(dir.path(), TRANSFORMER);
    let train = ["train", "tiny.toml", "--set", "training.max_updates=2", "--run"];
    let only_warns = |stderr: &str| stderr.lines().all(|line| line.starts_with("warning: "));
    let quiet = finish(dir.path(), &[&train[..], &["quiet", "--quiet"]].concat());
    assert!(quiet.code == Some(0) && only_warns(&quiet.stderr), "{}", quiet.stderr);
    assert_says(&quiet.stdout, &["held-out test: ", "the run is in quiet"]);
    let short = finish(dir.path(), &[&["-q"], &train[..], &["short"]].concat());
    assert!(short.code == Some(0) && only_warns(&short.stderr), "{}", short.stderr);
    let shown = finish(dir.path(), &[&train[..], &["shown", "-q", "--dashboard", "none"]].concat());
    assert!(shown.code == Some(0) && only_warns(&shown.stderr), "{}", shown.stderr);

    fs::write(dir.path().join("in"), "a q\n").unwrap();
    let translate = ["translate", "--run", "quiet", "--input", "in"];
    let warned = finish(dir.path(), &[&translate[..], &["-q"]].concat());
    assert!(!warned.stderr.is_empty() && only_warns(&warned.stderr), "a warning stays: {}", warned.stderr);
    let refused = finish(dir.path(), &["-q", "translate", "--run", "nowhere"]);
    assert_says(&refused.stderr, &["lookback: nowhere: is no folder"]);
    let verbose = finish(dir.path(), &[&translate[..], &["--verbose"]].concat());
    assert_says(
        &verbose.stderr,
        &["model    quiet, checkpoint 000002 after 2 updates: ", " parameters, read in ", " s\n"],
    );
    assert_says(&verbose.stderr, &["device   flex (CPU, "]);
    assert_eq!(verbose.stdout, warned.stdout);
    assert_eq!(finish(dir.path(), &["devices", "-q", "-v"]).code, Some(2));
}

#[test]
fn a_device_is_one_of_the_backend_that_is_named() {
    let run = ["translate", "--run", "run"];
    let with = |more: &[&'static str]| [&run[..], more].concat();
    assert_eq!(pipe(&with(&["--backend", "flex", "--device", "0"]), "a b\n"), pipe(&run, "a b\n"));
    let refused = fail(trained(), &with(&["--backend", "flex", "--device", "1"]));
    assert_says(&refused, &["backend \"flex\" has no device 1; it has device 0 alone (`lookback devices`)"]);
    let refused = fail(trained(), &with(&["--backend", "auto", "--device", "0"]));
    assert_says(&refused, &["--device is one of a backend's devices: name the backend too"]);
    let alone = finish(trained(), &with(&["--device", "0"]));
    assert_eq!(alone.code, Some(2));
    assert_says(&alone.stderr, &["--backend <BACKEND>"]);
    let listed = succeed(trained(), &["devices"]);
    assert_says(&listed, &["flex      0  CPU, "]);
    let listed: serde_json::Value = serde_json::from_str(&succeed(trained(), &["devices", "--json"])).unwrap();
    assert_eq!(listed["backends"][0]["adapters"][0]["number"], 0);
}

#[test]
fn every_command_that_computes_takes_a_device() {
    let dir = TempDir::new().unwrap();
    write_tiny(dir.path(), TRANSFORMER);
    fs::write(dir.path().join("in"), "a b\n").unwrap();
    let run = trained().join("run");
    let run = run.to_str().unwrap();
    // The model is not one for all of them, but a device is opened before that is seen, or is not opened at all.
    for (command, code) in [
        (&["train", "tiny.toml", "--run", "new"][..], 1),
        (&["translate", "--run", run, "--input", "in"], 1),
        (&["evaluate", "--run", run], 1),
        (&["explain", "--run", run, "a b"], 1),
        (&["generate", "--run", run], 1),
        (&["predict", "--run", run, "--input", "in"], 1),
        (&["inspect", "attention", "--run", run], 1),
        (&["inspect", "states", "--run", run, "--input", "in"], 1),
        (&["compare", "tiny.toml", "--out", "compared", "--max-cost-length", "0"], 1),
        (&["serve", "--run", run, "--port", "0"], 1),
    ] {
        let refused = finish(dir.path(), &[command, &["--backend", "ndarray", "--device", "7"]].concat());
        assert_eq!(refused.code, Some(code), "{command:?}: {}", refused.stderr);
        let other =
            ["is no language model", "is no encoder-only model"].iter().any(|what| refused.stderr.contains(what));
        let no_device = refused.stderr.contains("backend \"ndarray\" has no device 7; it has device 0 alone");
        assert!(no_device || other, "{command:?}: {}", refused.stderr);
    }
}

#[test]
fn keys_of_decoding_are_set_for_one_command() {
    let run = ["translate", "--run", "run"];
    let with = |setting: &'static str| [&run[..], &["--set", setting]].concat();
    let line = "a b c d e\n";
    assert_eq!(pipe(&with("decoding.beam_size=4"), line), pipe(&[&run[..], &["--beam", "4"]].concat(), line));
    let hypotheses = |arguments: &[&str]| -> Vec<serde_json::Value> {
        let found: serde_json::Value = serde_json::from_str(&pipe(&[arguments, &["--json"]].concat(), line)).unwrap();
        found["hypotheses"].as_array().unwrap().clone()
    };
    let several = hypotheses(&[&with("decoding.beam_size=4")[..], &["--n-best", "4"]].concat());
    assert_eq!(several.len(), 4, "as many as the beam is wide");
    assert!(several[0]["complete"] == true && several[0]["tokens"].as_array().unwrap().len() > 2, "{several:?}");
    // Two of five words, and no more.
    let short =
        hypotheses(&[&with("decoding.max_len_factor=0.3")[..], &["--set", "decoding.max_len_extra=0"]].concat());
    assert!(short[0]["complete"] == false && short[0]["tokens"].as_array().unwrap().len() == 2, "{short:?}");
    let refused = fail(trained(), &with("training.max_updates=3"));
    assert_says(
        &refused,
        &["training.max_updates: has no effect here: the model is trained", "only decoding can be set"],
    );
    assert_says(&fail(trained(), &with("decoding.beam_size=0")), &["decoding.beam_size", "got 0"]);
    let both = finish(trained(), &[&with("decoding.beam_size=2")[..], &["--targets", "x"]].concat());
    assert_eq!(both.code, Some(2));
}

#[test]
fn early_stopping_of_a_run_can_be_switched_off() {
    let dir = TempDir::new().unwrap();
    crate::training::copy_folder(&trained().join("run"), &dir.path().join("run"));
    let text = crate::training::sealed(
        &read(dir.path().join("run/config.toml")).replace("early_stopping = false", "early_stopping = true"),
    );
    assert!(text.contains("early_stopping = true"), "{text}");
    fs::write(dir.path().join("run/config.toml"), text).unwrap();
    let lines: String = ["a b c d e", "e d", "b b a c", "c a", "d d d d e"].map(|line| format!("{line}\n")).concat();
    fs::write(dir.path().join("in"), lines).unwrap();
    let scores = |more: &[&str]| {
        let command = [
            "translate",
            "--run",
            "run",
            "--input",
            "in",
            "--beam",
            "4",
            "--n-best",
            "4",
            "--length-penalty",
            "5",
            "--json",
        ];
        succeed(dir.path(), &[&command[..], more].concat())
    };
    let whole = scores(&["--no-early-stopping"]);
    assert_eq!(whole, scores(&["--set", "decoding.early_stopping=false"]));
    assert_eq!(scores(&[]), scores(&["--early-stopping"]));
    assert_eq!(whole, scores(&["--early-stopping", "--no-early-stopping"]), "the last one counts");
    assert_ne!(whole, scores(&[]), "a search that goes on finds something else");
}

#[test]
fn paths_in_a_config_are_relative_to_it_and_those_of_the_command_line_are_not() {
    let dir = TempDir::new().unwrap();
    let at = |name: &str| dir.path().join(name);
    for folder in ["project/config", "project/data", "elsewhere"] {
        fs::create_dir_all(at(folder)).unwrap();
    }
    let lines: String = (0..40).map(|i| format!("a b {}\tb a {}\n", ["c", "d"][i % 2], i % 3)).collect();
    fs::write(at("project/data/train.tsv"), &lines).unwrap();
    fs::write(at("project/data/valid.tsv"), &lines[..60]).unwrap();
    fs::write(at("elsewhere/test.tsv"), &lines[..90]).unwrap();
    let text = tiny_text(TRANSFORMER);
    let (_, rest) = text.split_once("[tokenizer]").unwrap();
    let before = &text[..text.find("[data]").unwrap()];
    let data = "[data]\ntrain = { tsv = \"../data/train.tsv\" }\nvalid = { tsv = \"../data/valid.tsv\" }\n";
    fs::write(at("project/config/own.toml"), format!("{before}{data}[tokenizer]{rest}")).unwrap();
    let train = ["train", "../project/config/own.toml", "--run", "run", "--set", "training.max_updates=2"];
    let test = ["--set", "data.test.tsv=test.tsv"];
    succeed(&at("elsewhere"), &[&train[..], &test].concat());
    // A run is read from where the command is given, as it always was.
    let config = read(at("elsewhere/run/config.toml"));
    assert_says(&config, &["tsv = \"../project/data/train.tsv\"", "tsv = \"test.tsv\""]);
    assert_says(&succeed(&at("elsewhere"), &["evaluate", "--run", "run"]), &["sentences"]);
    // With a folder for all of them.
    let with_dir = data.replace("../data/", "").replace("[data]\n", "[data]\ndir = \"../data\"\n");
    fs::write(at("project/config/dir.toml"), format!("{before}{with_dir}[tokenizer]{rest}")).unwrap();
    let shown = succeed(&at("elsewhere"), &["config", "show", "../project/config/dir.toml"]);
    assert_says(&shown, &["dir = \"../project/data\"", "tsv = \"train.tsv\""]);
    assert_says(&succeed(&at("project"), &["config", "check", "--data", "config/dir.toml"]), &["40"]);
    // As it was meant before paths were relative to the file.
    fs::write(at("project/config/old.toml"), format!("{before}[data]\ndir = \"data\"\ntrain = {{ tsv = \"train.tsv\" }}\nvalid = {{ tsv = \"valid.tsv\" }}\n[tokenizer]{rest}")).unwrap();
    let old = fail(&at("project"), &["config", "check", "config/old.toml"]);
    assert_says(
        &old,
        &["config/old.toml:", "data.dir: is \"data\", relative to the folder of this file: config/data is not there"],
    );
    succeed(&at("project"), &["config", "check", "--data", "config/old.toml", "--set", "data.dir=data"]);
    let moved = ["config", "check", "--data", "config/dir.toml", "--set", "data.dir=../elsewhere"];
    assert_says(&fail(&at("project"), &moved), &["../elsewhere/train.tsv"]);
}

#[test]
fn a_file_that_cannot_be_written_is_said_before_the_work() {
    let dir = TempDir::new().unwrap();
    fs::create_dir(dir.path().join("folder")).unwrap();
    let run = trained().join("run");
    let run = run.to_str().unwrap();
    for command in [
        &["evaluate", "--run", run, "--output"][..],
        &["explain", "--run", run, "a b", "--html"],
        &["translate", "--run", run, "--output"],
    ] {
        let missing = fail(dir.path(), &[command, &["nowhere/file.html"]].concat());
        assert_says(&missing, &["nowhere/file.html", "No such file or directory"]);
        let folder = fail(dir.path(), &[command, &["folder"]].concat());
        assert_says(&folder, &["folder: "]);
    }
    let left: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["folder"], "nothing is left of the attempt");
}
