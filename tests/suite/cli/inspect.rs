//! `lookback inspect`: maps and states of a small trained model, and what wrong requests get.

use super::trained;
use crate::training::{BAHDANAU, assert_says, copy_folder, fail, finish, lookback, read, sealed, succeed, write_tiny};
use lookback::report::states::Labelled;
use serde_json::Value;
use std::path::Path;
use tempfile::TempDir;

fn inspect(arguments: &[&str]) -> String {
    let all: Vec<&str> = ["inspect", "attention", "--run", "run"].iter().chain(arguments).copied().collect();
    succeed(trained(), &all)
}

/// A file outside the run that all tests share.
fn out(dir: &TempDir, name: &str) -> String {
    dir.path().join(name).to_string_lossy().into_owned()
}

#[test]
fn every_head_is_measured_and_a_copy_s_alignment_is_scored() {
    let report: Value = serde_json::from_str(&inspect(&["--json", "--sentences", "3"])).unwrap();
    assert_eq!(report["sentences"], 3);
    // One layer of two heads in each of three parts.
    let heads = report["heads"].as_array().unwrap();
    assert_eq!(heads.len(), 6);
    for head in heads {
        for key in
            ["part", "layer", "head", "looks_at", "entropy", "distance", "diagonality", "previous", "same", "next"]
        {
            assert!(!head[key].is_null(), "{key} is missing in {head}");
        }
    }
    let errors = report["errors"].as_array().unwrap();
    assert_eq!(errors.len(), 4, "the mean of all, that of the layer, and its two heads: {errors:?}");
    assert!(errors.iter().all(|error| error["links"].as_u64() > Some(0)), "{errors:?}");
    assert!(errors.iter().all(|error| (0.0..=1.0).contains(&error["aer"].as_f64().unwrap())));
    assert_says(&inspect(&[]), &["part     layer  head  looks at", "cross", "encoder", "decoder"]);
}

#[test]
fn maps_are_written_in_every_format() {
    let dir = TempDir::new().unwrap();
    std::fs::write(dir.path().join("in"), "a b c\n\nb d\n").unwrap();
    let input = out(&dir, "in");
    for name in ["m.html", "m.svg", "m.png", "m.csv", "m.safetensors"] {
        inspect(&["--input", &input, "--out", &out(&dir, name)]);
        assert!(dir.path().join(name).metadata().unwrap().len() > 1000, "{name}");
    }
    assert_says(
        &read(dir.path().join("m.html")),
        &["<!DOCTYPE html>", "\"source\":[\"a\",\"b\",\"c\",\"\\u003c/s>\"]"],
    );
    let csv = read(dir.path().join("m.csv"));
    // The blank line is left out and the numbers stay those of the file.
    assert!(csv.lines().any(|line| line.starts_with("3,cross,1,2,")) && !csv.contains("\n2,"), "{csv}");
    let one = out(&dir, "one.csv");
    inspect(&["--input", &input, "--sentence", "3", "--part", "encoder", "--head", "average", "--out", &one]);
    assert_eq!(read(dir.path().join("one.csv")).lines().count(), 1 + 3 * 3);
}

#[test]
fn given_targets_are_aligned_with_gold() {
    let dir = TempDir::new().unwrap();
    for (name, text) in [
        ("in", "a b c\n"),
        ("target", "a b c\n"),
        ("gold", "0-0 1-1 2?2\n"),
        ("beyond", "0-3\n"),
        ("bad", "0-0\n1:1\n"),
    ] {
        std::fs::write(dir.path().join(name), text).unwrap();
    }
    let path = |name| out(&dir, name);
    let (input, target, gold) = (path("in"), path("target"), path("gold"));
    let report = inspect(&["--input", &input, "--target", &target, "--alignments", &gold, "--json"]);
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["errors"][0]["sure"], 2);
    let arguments = ["inspect", "attention", "--run", "run", "--input", "-", "--target", &target, "--json"];
    let piped = lookback(trained(), &arguments).stdin(std::fs::File::open(&input).unwrap()).output().unwrap();
    assert_eq!(piped.status.code(), Some(0), "{piped:?}");
    let piped: Value = serde_json::from_slice(&piped.stdout).unwrap();
    assert_eq!(piped["heads"], report["heads"], "from standard input as from a file");
    for (name, says) in [("beyond", "beyond:1: links word 0 to word 3"), ("bad", "bad:2: \"1:1\" is no link")] {
        let arguments = [
            "inspect",
            "attention",
            "--run",
            "run",
            "--input",
            &input,
            "--target",
            &target,
            "--alignments",
            &path(name),
        ];
        let finished = finish(trained(), &arguments);
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(1), ""));
        assert_says(&finished.stderr, &[says]);
    }
}

#[test]
fn gold_alignments_have_a_line_for_each_sentence() {
    let dir = TempDir::new().unwrap();
    for (name, text) in [("in", "a b\n"), ("target", "a b\n"), ("gold", "0-0\n1-1\n")] {
        std::fs::write(dir.path().join(name), text).unwrap();
    }
    let (input, target, gold) = (out(&dir, "in"), out(&dir, "target"), out(&dir, "gold"));
    let inspect = ["inspect", "attention", "--run", "run", "--input", &input, "--target", &target];
    let said = fail(trained(), &[&inspect[..], &["--alignments", &gold]].concat());
    assert_says(&said, &["gold: has 2 lines where ", "in has 1"]);
}

#[test]
fn no_file_that_is_read_is_written_over() {
    let dir = TempDir::new().unwrap();
    let text = "a b\nb a\n";
    let file = out(&dir, "in.csv");
    std::fs::write(&file, text).unwrap();
    let linked = out(&dir, "linked.csv");
    std::fs::hard_link(&file, &linked).unwrap();
    let outs = if cfg!(unix) { vec![&file, &linked] } else { vec![&file] };
    for place in outs {
        for arguments in [
            &["attention", "--run", "run", "--input", &file][..],
            &["attention", "--run", "run", "--input", "-", "--target", &file],
            &["states", "--run", "run", "--input", &file],
        ] {
            let said = fail(trained(), &[&["inspect"][..], arguments, &["--out", place]].concat());
            assert_says(&said, &["is read and would be written over; give another --out"]);
        }
    }
    assert_eq!(read(&file), text);
}

#[test]
fn a_run_that_samples_is_searched_all_the_same() {
    let dir = TempDir::new().unwrap();
    copy_folder(&trained().join("run"), &dir.path().join("run"));
    let config = dir.path().join("run/config.toml");
    std::fs::write(&config, sealed(&(read(&config) + "\n[decoding.sampling]\ntemperature = 100.0\n"))).unwrap();
    let arguments = ["inspect", "attention", "--run", "run", "--sentences", "3", "--beam", "1", "--json"];
    assert_eq!(succeed(dir.path(), &arguments), succeed(trained(), &arguments));
}

#[test]
fn faithfulness_compares_attention_and_gradients_with_erasing() {
    let report: Value = serde_json::from_str(&inspect(&["--faithfulness", "--sentences", "3", "--json"])).unwrap();
    for way in ["attention", "gradient_times_input"] {
        let verdict = &report["faithfulness"][way];
        assert!(verdict["effect_of_most"].as_f64().unwrap().is_finite(), "{way}: {verdict}");
        assert!(verdict["n_targets"].as_u64().unwrap() > 0);
    }
    assert_says(&inspect(&["--faithfulness"]), &["replaced by <unk>", "attention ", "gradient x input "]);
}

#[test]
fn a_model_without_attention_says_so_and_can_still_be_asked_what_matters() {
    let dir = TempDir::new().unwrap();
    let attention = "{ kind = \"bahdanau\", score = { kind = \"additive\", d_attention = 10 } }";
    let model = BAHDANAU.replace(attention, "{ kind = \"none\" }");
    assert_ne!(model, BAHDANAU);
    write_tiny(dir.path(), &model);
    succeed(dir.path(), &["train", "tiny.toml", "--run", "run", "--set", "training.max_updates=2"]);
    let finished = finish(dir.path(), &["inspect", "attention", "--run", "run", "--out", "x.html"]);
    assert_eq!(finished.code, Some(1));
    assert_says(&finished.stderr, &["this model has no attention: one fixed vector", "--faithfulness"]);
    assert!(!dir.path().join("x.html").exists());
    assert_says(
        &succeed(dir.path(), &["inspect", "attention", "--run", "run", "--faithfulness"]),
        &["gradient x input"],
    );
}

#[test]
fn states_are_drawn_and_words_have_neighbours() {
    let dir = TempDir::new().unwrap();
    std::fs::write(dir.path().join("in"), "x\ta b c\nx\tc b a\ny\td\n\ny\td d\n").unwrap();
    let input = out(&dir, "in");
    let run = |rest: &[&str]| {
        let all: Vec<&str> = ["inspect", "states", "--run", "run"].iter().chain(rest).copied().collect();
        finish(trained(), &all)
    };
    for name in ["s.html", "s.svg", "s.png", "s.csv"] {
        let finished = run(&["--input", &input, "--out", &out(&dir, name)]);
        assert_eq!(finished.code, Some(0), "{}", finished.stderr);
        assert_says(
            &finished.stdout,
            &["4 sentences, each as the mean of the encoder's states", "variance in the plane", "by chance 33.3 %"],
        );
    }
    assert_eq!(read(dir.path().join("s.csv")).lines().filter(|line| line.starts_with("sentence,")).count(), 4);
    assert_says(&run(&["--word", "a", "--word", "b"]).stdout, &["a: ", "1.000"]);
    let report: Value = serde_json::from_str(&run(&["--input", &input, "--json"]).stdout).unwrap();
    assert_eq!(report["vectors"], "mean-of-memory");
    std::fs::write(dir.path().join("single"), "a\n").unwrap();
    for (arguments, says) in [
        (&["--word", "zebra"][..], "\"zebra\" is not in the model's source vocabulary"),
        (&["--input", &out(&dir, "single")], "has 1 sentences; a picture needs two at least"),
        (&["--input", &input, "--out", "s.pdf"], "there are .html, .svg, .png, .csv"),
    ] {
        let finished = run(arguments);
        assert_eq!(finished.code, Some(1));
        assert_says(&finished.stderr, &[says]);
    }
    let undrawn = run(&["--input", &input, "--tokens"]);
    assert_eq!(undrawn.code, Some(2), "nothing is drawn");
    assert_says(&undrawn.stderr, &["--out <FILE>"]);
}

#[test]
fn wrong_requests_are_refused_before_anything_is_written() {
    let dir = TempDir::new().unwrap();
    std::fs::write(dir.path().join("blank"), "\n\n").unwrap();
    std::fs::write(dir.path().join("in"), "a b\n").unwrap();
    std::fs::write(dir.path().join("two"), "a\nb\n").unwrap();
    std::fs::write(dir.path().join("gap"), "a\n\nb\n").unwrap();
    let (blank, input, two, file) = (out(&dir, "blank"), out(&dir, "in"), out(&dir, "two"), out(&dir, "x.svg"));
    let gap = out(&dir, "gap");
    for (arguments, code, says) in [
        (&["--out", "maps.pdf"][..], 1, "there are .html, .svg, .png, .csv, .safetensors"),
        (&["--input", &blank], 1, "every line is blank"),
        (&["--input", &input, "--target", &two], 1, "has 2 lines where"),
        (&["--input", &input, "--sentence", "2"], 1, "in: has no sentence 2; it has sentences 1 to 1"),
        (&["--input", &gap, "--sentence", "2"], 1, "gap: sentence 2 is blank"),
        (&["--sentence", "9"], 1, "run: has no sentence 9; it has sentences 1 to 3"),
        (&["--sentences", "0"], 2, "0 is not in 1.."),
        (&["--input", "-", "--target", "-"], 1, "standard input (-) can be read only once"),
        // What has no effect is refused.
        (&["--layer", "1"], 2, "--out <FILE>"),
        (&["--head", "average"], 2, "--out <FILE>"),
        (&["--part", "cross"], 2, "--out <FILE>"),
        (&["--sentence", "1", "--sentences", "3"], 2, "cannot be used with"),
        (&["--input", &input, "--target", &input, "--beam", "2"], 2, "cannot be used with"),
        (&["--layer", "7", "--out", &file], 1, "--layer 7: there are maps of one layer, 1"),
        (&["--head", "none", "--out", &file], 2, "\"none\" is no number from 1 on"),
        (
            &["--part", "side", "--out", &file],
            2,
            "[possible values: cross, encoder, decoder, memory, encoder-memory, encoder-memory-backward]",
        ),
        (&["--alignments", "gold"], 2, "--target"),
    ] {
        let all: Vec<&str> = ["inspect", "attention", "--run", "run"].iter().chain(arguments).copied().collect();
        let finished = finish(trained(), &all);
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(code), ""), "{arguments:?}");
        assert_says(&finished.stderr, &[says]);
    }
    assert!(!Path::new(&file).exists());
}

#[test]
fn the_sentences_in_groups_of_one_meaning_are_whole() {
    for language in ["de", "en"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("datasets/meaning/{language}.tsv"));
        let lines: Vec<Labelled> = read(path).lines().map(|line| Labelled::parse(1, line)).collect();
        assert_eq!(lines.len(), 32, "{language}");
        for group in lines.chunks(4) {
            assert!(
                group.iter().all(|line| line.label.is_some() && line.label == group[0].label),
                "{language}: {group:?}"
            );
        }
        let distinct: std::collections::HashSet<&str> = lines.iter().map(|line| line.text.as_str()).collect();
        assert_eq!(distinct.len(), 32, "{language}: a sentence occurs twice");
    }
}
