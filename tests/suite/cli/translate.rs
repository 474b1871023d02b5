//! `translate`.

use super::{pipe, trained};
use crate::training::{BAHDANAU, assert_says, copy_folder, finish, read, succeed, write_tiny};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;
use std::fs;
use std::io::Write;
use tempfile::TempDir;

const TRANSLATE: [&str; 3] = ["translate", "--run", "run"];

fn with<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    [&TRANSLATE[..], arguments].concat()
}

/// Lines of several lengths, blank ones among them.
const INPUT: &str = "a b c d\n\nc\n   \ne d c b a\nb b\n\n";

#[test]
fn blank_lines_stay_and_the_order_is_kept() {
    let all = pipe(&TRANSLATE, INPUT);
    assert_eq!(all.lines().count(), 7);
    for (source, target) in INPUT.lines().zip(all.lines()) {
        assert_eq!(source.trim().is_empty(), target.is_empty(), "{source:?} gives {target:?}");
        if !target.is_empty() {
            // Each alone gives the same as among the others.
            assert_eq!(pipe(&TRANSLATE, &format!("{source}\n")), format!("{target}\n"));
        }
    }
    assert_eq!(pipe(&TRANSLATE, ""), "");
    let right = INPUT.lines().zip(all.lines()).filter(|(source, target)| source.trim() == *target).count();
    assert!(right >= 5, "the model copies short lines:\n{all}");
}

#[test]
fn a_sentence_on_the_command_line_is_a_line_of_standard_input() {
    let expected = pipe(&TRANSLATE, "e d c b a\n");
    for text in ["e d c b a", "  e d c\nb a\n"] {
        let finished = finish(trained(), &with(&[text]));
        assert_eq!((finished.code, &finished.stdout, finished.stderr.as_str()), (Some(0), &expected, ""), "{text:?}");
    }
    assert_eq!(pipe(&with(&["-"]), INPUT), pipe(&TRANSLATE, INPUT));
    let finished = finish(trained(), &with(&["a b q"]));
    assert_says(&finished.stderr, &["\"q\" in line 1"]);
    for other in ["--input", "--targets"] {
        let finished = finish(trained(), &with(&["a b", other, "file"]));
        assert_eq!(finished.code, Some(2), "{other}: {}", finished.stderr);
        assert_says(&finished.stderr, &["cannot be used with"]);
    }
}

#[test]
fn standard_input_files_and_gzip_give_the_same() {
    let dir = TempDir::new().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_string();
    let expected = pipe(&TRANSLATE, INPUT);
    assert_eq!(pipe(&with(&["--input", "-", "--output", "-"]), INPUT), expected);
    fs::write(at("in"), INPUT).unwrap();
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(INPUT.as_bytes()).unwrap();
    fs::write(at("in.gz"), gzip.finish().unwrap()).unwrap();
    for input in ["in", "in.gz"] {
        let finished = finish(trained(), &with(&["--input", &at(input)]));
        assert_eq!((finished.code, &finished.stdout, finished.stderr.as_str()), (Some(0), &expected, ""));
    }
    assert_eq!(succeed(trained(), &with(&["--input", &at("in"), "--output", &at("out")])), "");
    assert_eq!(read(at("out")), expected);
    // One file has two names.
    let same = ["--output", &at("out"), "--alignments", &at("../").replace("../", "./out")];
    let finished = finish(trained(), &with(&[&["--input", &at("in")][..], &same].concat()));
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    assert_says(finished.fault(), &["--alignments and --output are both", "give two files"]);
}

#[test]
fn input_that_cannot_be_read_costs_no_results_of_before() {
    let dir = TempDir::new().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_string();
    fs::write(at("bad"), b"a b\n\xff\n").unwrap();
    for input in [at("none"), at("bad")] {
        fs::write(at("out"), "of before\n").unwrap();
        fs::write(at("pharaoh"), "of before\n").unwrap();
        let finished =
            finish(trained(), &with(&["--input", &input, "--output", &at("out"), "--alignments", &at("pharaoh")]));
        assert_eq!(finished.code, Some(1), "{}", finished.stderr);
        assert_eq!([read(at("out")), read(at("pharaoh"))], ["of before\n", "of before\n"]);
    }
    // What could not be written is refused before anything is read, and no lines are a file without any.
    let finished = finish(trained(), &with(&["--input", &at("bad"), "--output", &at("none/out")]));
    assert_says(&finished.stderr, &["none/out"]);
    fs::write(at("empty"), "").unwrap();
    succeed(trained(), &with(&["--input", &at("empty"), "--output", &at("out")]));
    assert_eq!(read(at("out")), "");
}

#[test]
fn a_beam_has_a_largest_width() {
    for (option, n) in [("--beam", "1001"), ("--beam", "9223372036854775807"), ("--n-best", "9223372036854775807")] {
        let sampled: &[&str] = if option == "--n-best" { &["--sample"] } else { &[] };
        let finished = finish(trained(), &[&with(&["a b", option, n])[..], sampled].concat());
        assert_eq!(finished.code, Some(1), "{option} {n}: {}", finished.stderr);
        assert_says(&finished.stderr, &["must be at most", n]);
    }
}

#[test]
fn n_best_lines_have_number_text_and_score_best_first() {
    let text = pipe(&with(&["--beam", "4", "--n-best", "3"]), "a b c\n\nd\n");
    let mut previous: Option<(usize, f64)> = None;
    let mut counts = [0; 3];
    for line in text.lines() {
        let [number, target, score] = line.split(" ||| ").collect::<Vec<_>>()[..] else { panic!("{line:?}") };
        let (number, score): (usize, f64) = (number.parse().unwrap(), score.parse().unwrap());
        counts[number] += 1;
        assert_eq!(target.is_empty(), number == 1, "{line}");
        if let Some((before, better)) = previous {
            assert!(number > before || number == before && score <= better, "out of order:\n{text}");
        }
        previous = Some((number, score));
    }
    assert_eq!(counts, [3, 1, 3], "three for each sentence, one for the blank line:\n{text}");
    let best: Vec<&str> = text.lines().filter(|line| line.starts_with("0 ")).collect();
    assert_eq!(best[0].split(" ||| ").nth(1).unwrap(), pipe(&with(&["--beam", "4"]), "a b c\n").trim_end());
}

#[test]
fn json_lines_carry_text_scores_and_tokens() {
    let text = pipe(&with(&["--json", "--beam", "3", "--n-best", "2"]), "a b c\n\n");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!((&lines[0]["source"], &lines[1]["source"]), (&"a b c".into(), &"".into()));
    assert_eq!(lines[0]["hypotheses"].as_array().unwrap().len(), 2);
    for hypothesis in lines[0]["hypotheses"].as_array().unwrap() {
        let tokens: Vec<&str> = hypothesis["tokens"].as_array().unwrap().iter().map(|t| t.as_str().unwrap()).collect();
        assert_eq!(tokens.join(" "), hypothesis["text"].as_str().unwrap());
        let log_probability = hypothesis["log_probability"].as_f64().unwrap();
        let penalty = (6.0 + tokens.len() as f64) / 6.0;
        assert!((hypothesis["score"].as_f64().unwrap() - log_probability / penalty).abs() < 1e-9, "{hypothesis}");
        let perplexity = (-log_probability / (tokens.len() + 1) as f64).exp();
        assert!((hypothesis["perplexity"].as_f64().unwrap() - perplexity).abs() < 1e-9, "{hypothesis}");
        assert_eq!(hypothesis["complete"], true);
    }
}

#[test]
fn forced_targets_get_the_scores_that_decoding_reports() {
    let dir = TempDir::new().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_string();
    let sources = "a b c d\nc\ne d c b a\n";
    fs::write(at("in"), sources).unwrap();
    let decoded = succeed(trained(), &with(&["--json", "--beam", "3", "--input", &at("in")]));
    let best: Vec<Value> =
        decoded.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["hypotheses"][0].clone()).collect();
    let targets: String = best.iter().map(|h| format!("{}\n", h["text"].as_str().unwrap())).collect();
    fs::write(at("targets"), targets).unwrap();
    let forced =
        with(&["--input", &at("in"), "--targets", &at("targets")]).iter().map(|s| s.to_string()).collect::<Vec<_>>();
    let forced: Vec<&str> = forced.iter().map(String::as_str).collect();
    let plain = succeed(trained(), &forced);
    let json = succeed(trained(), &[&forced[..], &["--json"]].concat());
    assert_eq!(plain.lines().count(), 3);
    for ((plain, json), best) in plain.lines().zip(json.lines()).zip(best) {
        let json: Value = serde_json::from_str(json).unwrap();
        let (sum, perplexity) = plain.split_once('\t').unwrap();
        let expected = best["log_probability"].as_f64().unwrap();
        // 32-bit numbers, one step at a time and all at once; printed with six and four decimals.
        assert!((sum.parse::<f64>().unwrap() - expected).abs() < 1e-4, "{plain}, decoding says {best}");
        assert!((json["log_probability"].as_f64().unwrap() - expected).abs() < 1e-4, "{json}, decoding says {best}");
        assert!(
            (perplexity.parse::<f64>().unwrap() - best["perplexity"].as_f64().unwrap()).abs() < 2e-4,
            "{plain}, {best}"
        );
        let parts: Vec<f64> =
            json["token_log_probabilities"].as_array().unwrap().iter().map(|p| p.as_f64().unwrap()).collect();
        assert_eq!(parts.len(), best["tokens"].as_array().unwrap().len() + 1, "one for each token and the end");
        assert!((parts.iter().sum::<f64>() - json["log_probability"].as_f64().unwrap()).abs() < 1e-9);
    }
}

#[test]
fn a_prefix_begins_the_target_and_a_blank_one_is_none() {
    let dir = TempDir::new().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_string();
    fs::write(at("prefixes"), "e e\n\n").unwrap();
    for beam in ["1", "3"] {
        let text = pipe(&with(&["--beam", beam, "--prefixes", &at("prefixes")]), "a b c\na b c\n");
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("e e"), "{text}");
        assert_eq!(lines[1], pipe(&with(&["--beam", beam]), "a b c\n").trim_end());
    }
}

#[test]
fn a_line_with_a_prefix_is_translated_as_it_would_be_alone_whatever_prefixes_others_have() {
    let dir = TempDir::new().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_string();
    let prefixes = ["e e", "", "a b c d", "c", "d d", "b", "e e"];
    let sources = ["a b c", "b", "c d e a b", "a b c", "e", "d c b a", "a b c d e"];
    let translated = |beam: &str, lines: &[usize]| -> Vec<(String, f64)> {
        let joined = |texts: &[&str]| lines.iter().map(|i| format!("{}\n", texts[*i])).collect::<String>();
        fs::write(at("prefixes"), joined(&prefixes)).unwrap();
        let output = pipe(&with(&["--beam", beam, "--json", "--prefixes", &at("prefixes")]), &joined(&sources));
        let of_line = |line: &str| {
            let best = &serde_json::from_str::<Value>(line).unwrap()["hypotheses"][0];
            (best["text"].as_str().unwrap().to_string(), best["log_probability"].as_f64().unwrap())
        };
        output.lines().map(of_line).collect()
    };
    for beam in ["1", "3"] {
        let all: Vec<usize> = (0..sources.len()).collect();
        let alone = all.iter().flat_map(|i| translated(beam, &[*i]));
        for ((found, alone), prefix) in translated(beam, &all).into_iter().zip(alone).zip(prefixes) {
            assert!(found.0.starts_with(prefix) && found.0 == alone.0, "beam {beam}: {found:?}, alone {alone:?}");
            assert!((found.1 - alone.1).abs() < 1e-4, "beam {beam}: {found:?}, alone {alone:?}");
        }
    }
}

#[test]
fn sampling_is_repeatable_by_seed() {
    let source = "a b c d e\n".repeat(20);
    let sample = |seed: &str| pipe(&with(&["--sample", "--temperature", "2.5", "--seed", seed]), &source);
    assert_eq!(sample("1"), sample("1"));
    assert_ne!(sample("1"), sample("2"));
    assert_eq!(pipe(&with(&["--sample", "--top-k", "1"]), INPUT), pipe(&TRANSLATE, INPUT), "of one word the likeliest");
    let narrow = with(&["--sample", "--top-p", "0.000001"]);
    assert_eq!(pipe(&narrow, INPUT), pipe(&TRANSLATE, INPUT), "so little probability is one word's");
}

#[test]
fn what_is_cut_at_the_length_cap_is_counted() {
    let dir = TempDir::new().unwrap();
    let path = write_tiny(dir.path(), BAHDANAU);
    let text = format!("{}\n[decoding]\nmax_len_extra = 0\n", read(&path));
    fs::write(&path, text).unwrap();
    succeed(dir.path(), &["train", "tiny.toml", "--run", "run", "--set", "training.max_updates=1"]);
    fs::write(dir.path().join("in"), "a b c\n\nb\n").unwrap();
    let finished = finish(dir.path(), &with(&["--input", "in", "--max-len-factor", "1"]));
    assert_eq!((finished.code, finished.stdout.lines().count()), (Some(0), 3), "{}", finished.stderr);
    let cut = "were cut at the length cap of 1 tokens for each source token and 0 more: the model does not end them, or \
               --max-len-factor is too low";
    assert_says(&finished.stderr, &["warning: 2 of 3 translations", cut]);
}

#[test]
fn a_run_that_was_moved_translates_the_same_also_on_another_backend() {
    let dir = TempDir::new().unwrap();
    copy_folder(&trained().join("run"), &dir.path().join("elsewhere"));
    fs::write(dir.path().join("in"), INPUT).unwrap();
    let expected = pipe(&TRANSLATE, INPUT);
    for backend in ["flex", "ndarray"] {
        let arguments = ["translate", "--run", "elsewhere", "--input", "in", "--backend", backend];
        assert_eq!(succeed(dir.path(), &arguments), expected, "{backend}");
    }
    // What training needs and translating does not.
    for name in ["environment.json", "metrics.jsonl", "last", "samples"] {
        let path = dir.path().join("elsewhere").join(name);
        if path.is_dir() { fs::remove_dir_all(path).unwrap() } else { fs::remove_file(path).unwrap() }
    }
    assert_eq!(succeed(dir.path(), &["translate", "--run", "elsewhere", "--input", "in"]), expected);
}

#[test]
fn weights_in_8_bits_translate_and_score_nearly_the_same() {
    let text = pipe(&with(&["--int8"]), INPUT);
    let right = INPUT.lines().zip(text.lines()).filter(|(source, target)| source.trim() == *target).count();
    assert!(right >= 5, "the model copies short lines in 8 bits too:\n{text}");
    let log_probabilities = |int8: &[&str]| -> Vec<f64> {
        let arguments = [&TRANSLATE[..], &["--beam", "1", "--json"], int8].concat();
        let text = pipe(&arguments, "a b c\nd\n");
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.map(|line| line["hypotheses"][0]["log_probability"].as_f64().unwrap()).collect()
    };
    let (floats, int8) = (log_probabilities(&[]), log_probabilities(&["--int8"]));
    assert_ne!(floats, int8, "the weights are rounded");
    for (a, b) in floats.iter().zip(&int8) {
        assert!((a - b).abs() < 0.1, "{floats:?} {int8:?}");
    }
    let score = |extra: &[&str]| -> Value {
        let arguments = [&["evaluate", "--run", "run", "--json"], extra].concat();
        serde_json::from_str(&succeed(trained(), &arguments)).unwrap()
    };
    let (floats, int8) = (score(&[]), score(&["--int8"]));
    let perplexity = |scores: &Value| scores["perplexity"].as_f64().unwrap();
    assert_ne!(perplexity(&floats), perplexity(&int8), "what is scored is what is rounded");
    assert!((perplexity(&floats) / perplexity(&int8)).ln().abs() < 0.1, "{floats} {int8}");
}

/// What the program answers to each line of `input` when the next one comes only after the answer. Were answers held back until
/// the end of the input, this would wait forever.
fn line_by_line(arguments: &[&str], input: &str) -> String {
    use std::io::{BufRead, BufReader};
    let mut child = crate::training::lookback(trained(), arguments)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut answers = String::new();
    for line in input.lines() {
        writeln!(lines, "{line}").unwrap();
        output.read_line(&mut answers).unwrap();
    }
    drop(lines);
    assert!(child.wait().unwrap().success());
    answers
}

#[test]
fn a_line_is_answered_while_the_next_has_not_come() {
    assert_eq!(line_by_line(&TRANSLATE, INPUT), pipe(&TRANSLATE, INPUT));
}

#[test]
fn samples_are_the_same_from_a_file_a_pipe_and_line_by_line() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("in");
    let lines: String = "a b c\nb d\n".repeat(20);
    fs::write(&path, &lines).unwrap();
    let sample = ["--sample", "--temperature", "3", "--seed", "7"];
    let of_file = succeed(trained(), &with(&[&sample[..], &["--input", path.to_str().unwrap()]].concat()));
    assert_eq!(pipe(&with(&sample), &lines), of_file);
    assert_eq!(line_by_line(&with(&sample), &lines), of_file);
    let distinct: std::collections::HashSet<&str> = of_file.lines().collect();
    assert!(distinct.len() > 10, "each line has draws of its own:\n{of_file}");
}

#[test]
fn what_the_vocabulary_does_not_hold_is_counted_and_marked() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("in");
    fs::write(&path, "a b\nc ☃ a\nzzz ☃\n").unwrap();
    let finished = finish(trained(), &with(&["--input", path.to_str().unwrap(), "--json"]));
    assert_eq!(finished.code, Some(0));
    let warning = "warning: 3 of 7 source tokens, in 2 lines, are not in the vocabulary and were read as <unk>: \
                   \"☃\" in line 2, \"zzz\" in line 3\n";
    assert_eq!(finished.stderr, warning);
    let unknown: Vec<Value> =
        finished.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["unknown"].clone()).collect();
    assert_eq!(unknown, [serde_json::json!([]), serde_json::json!(["☃"]), serde_json::json!(["zzz", "☃"])]);
}

#[test]
fn standard_input_is_refused_for_two_things_at_once() {
    for option in ["--targets", "--prefixes"] {
        let message = crate::training::fail(trained(), &with(&[option, "-"]));
        assert_says(&message, &["--input and ", option, "are both standard input"]);
    }
}

#[test]
fn one_file_is_not_two_however_it_is_spelled() {
    let dir = TempDir::new().unwrap();
    fs::create_dir(dir.path().join("folder")).unwrap();
    fs::write(dir.path().join("in"), "a b\n").unwrap();
    let run = trained().join("run");
    let translate = ["translate", "--run", run.to_str().unwrap(), "--input", "in"];
    for output in ["al", "./al", "folder/../al"] {
        let arguments = [&translate[..], &["--alignments", "al", "--output", output]].concat();
        let said = crate::training::fail(dir.path(), &arguments);
        assert_says(&said, &["--alignments and --output are both al"]);
    }
    assert!(!dir.path().join("al").exists());
    // A hard link is another name of the same file.
    #[cfg(unix)]
    {
        fs::hard_link(dir.path().join("in"), dir.path().join("linked")).unwrap();
        let said = crate::training::fail(dir.path(), &[&translate[..], &["--output", "linked"]].concat());
        assert_says(&said, &["linked: is read and would be written over"]);
        assert_eq!(read(dir.path().join("in")), "a b\n");
    }
    // Files of one name in two folders are two.
    succeed(dir.path(), &[&translate[..], &["--alignments", "al", "--output", "folder/al"]].concat());
}

#[test]
fn several_runs_write_together() {
    let dir = TempDir::new().unwrap();
    let alone = pipe(&TRANSLATE, INPUT);
    assert_eq!(pipe(&with(&["--run", "run"]), INPUT), alone, "a model and itself write as the model");
    assert_eq!(pipe(&with(&["--run", "run", "--beam", "3"]), INPUT), pipe(&with(&["--beam", "3"]), INPUT));
    // Another model with the same vocabularies changes what is thought of a sentence.
    write_tiny(dir.path(), BAHDANAU);
    let other = dir.path().join("other");
    let train =
        ["train", "tiny.toml", "--run", "other", "--set", "training.max_updates=2", "--set", "data.n_train=400"];
    succeed(dir.path(), &train);
    let other = other.to_str().unwrap();
    let score = |arguments: &[&str]| -> f64 {
        let line: Value = serde_json::from_str(&pipe(&with(arguments), "a b c\n")).unwrap();
        line["hypotheses"][0]["log_probability"].as_f64().unwrap()
    };
    assert!(score(&["--json", "--run", other]) < score(&["--json"]), "half of the probability is an untrained model's");
    let scored: Value =
        serde_json::from_str(&succeed(trained(), &["evaluate", "--run", "run", "--run", other, "--json"])).unwrap();
    assert_eq!(scored["sentences"], 3);
    // Models of other words cannot.
    succeed(
        dir.path(),
        &[
            "train",
            "tiny.toml",
            "--run",
            "letters",
            "--set",
            "training.max_updates=1",
            "--set",
            "tokenizer={kind=\"char\"}",
        ],
    );
    let letters = dir.path().join("letters");
    let message = crate::training::fail(trained(), &with(&["--run", letters.to_str().unwrap()]));
    assert_says(&message, &["letters: has other vocabularies than run"]);
}
