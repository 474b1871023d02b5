//! `serve`: each endpoint, what wrong requests get, batches, limits, and how it ends.

mod attention;
mod completions;
mod limits;
mod page;
mod server;

use crate::cli::trained;
use crate::reliability::{dead_pipe, full};
use crate::training::{assert_says, fail, finish, language_model, succeed};
use serde_json::{Value, json};
use server::Server;
use std::fs;
use std::process::Stdio;
use tempfile::TempDir;

/// Lines of several lengths, a blank one and unknown symbols among them.
const LINES: [&str; 12] =
    ["a b c d", "c", "", "e d c b a", "b b", "d", "a a a a a", "  e  ", "c b", "d c b a e", "a z b", "e e e"];

/// What `lookback translate` makes of each line when it is alone in its batch.
fn alone(lines: &[&str], options: &[&str]) -> Vec<String> {
    let dir = TempDir::new().unwrap();
    let input = dir.path().join("input");
    fs::write(&input, lines.join("\n") + "\n").unwrap();
    let command = ["translate", "--run", "run", "--batch-tokens", "1", "--input", input.to_str().unwrap()];
    let text = finish(trained(), &[&command[..], options].concat()).stdout;
    text.lines().map(str::to_owned).collect()
}

#[test]
fn many_callers_at_once_get_what_each_line_gets_alone() {
    let sample = ["--sample", "--seed", "5", "--temperature", "0.8", "--top-k", "4", "--top-p", "0.95"];
    for options in [&[][..], &["--beam", "4"], &sample] {
        // Each line is the first of its file, for what is drawn depends on the line's number.
        let expected: Vec<String> = match options {
            ["--sample", ..] => LINES.iter().flat_map(|line| alone(&[line], options)).collect(),
            _ => alone(&LINES, options),
        };
        assert_eq!(expected.len(), LINES.len());
        let server = Server::start(trained(), &[&["--run", "run", "--max-wait", "200"][..], options].concat());
        std::thread::scope(|scope| {
            for caller in 0..8 {
                let (server, expected) = (&server, &expected);
                scope.spawn(move || {
                    // Each caller has an order and a number of lines of its own.
                    let order: Vec<usize> = (0..LINES.len() - caller).map(|i| (i * 5 + caller) % LINES.len()).collect();
                    let lines: Vec<&str> = order.iter().map(|i| LINES[*i]).collect();
                    let (status, answer) = server.post("/translate", &json!({ "q": lines }));
                    assert_eq!(status, 200, "{answer}");
                    let right: Vec<&String> = order.iter().map(|i| &expected[*i]).collect();
                    assert_eq!(answer["translatedText"], json!(right), "{options:?}, caller {caller}");
                });
            }
        });
        let count = |name: &str| server.metric(name);
        assert_eq!(count("lookback_batch_sentences_total"), 68);
        assert!(count("lookback_batches_total") < 34, "sentences of several callers share batches");
        assert_eq!(count("lookback_queue_size"), 0);
    }
}

#[test]
fn decoding_options_are_those_of_translate() {
    for options in [
        &["--beam", "3", "--length-penalty", "0.5", "--early-stopping", "--backend", "flex", "--device", "0"][..],
        &["--beam", "3", "--length-penalty", "3", "--no-early-stopping", "--checkpoint", "000150"],
        &["--max-len-factor", "0.2", "--set", "decoding.max_len_extra=2"],
        &["--max-source-len", "50", "-v"],
    ] {
        let server = Server::start(trained(), &[&["--run", "run"], options].concat());
        let options: Vec<&str> = options.iter().copied().filter(|option| *option != "-v").collect();
        let expected = alone(&LINES, &options);
        let (status, answer) = server.post("/translate", &json!({ "q": LINES }));
        assert_eq!((status, &answer["translatedText"]), (200, &json!(expected)), "{options:?}");
    }
}

#[test]
fn a_long_request_is_translated_in_several_batches_and_answered_in_order() {
    let lines: Vec<&str> = (0..60).map(|i| LINES[i % LINES.len()]).collect();
    let server = Server::start(trained(), &["--run", "run", "--batch-tokens", "6"]);
    let (status, answer) = server.post("/translate", &json!({ "q": lines }));
    assert_eq!((status, &answer["translatedText"]), (200, &json!(alone(&lines, &[]))));
    assert!(server.metric("lookback_batches_total") > 5);
}

#[test]
fn translate_takes_what_clients_of_libretranslate_send() {
    let server = Server::start(trained(), &["--run", "run", "--languages", "de-en", "--beam", "4"]);
    let expected = alone(&["a b c", "d"], &["--beam", "4"]);
    let (status, answer) = server.post("/translate", &json!({ "q": "a b c", "source": "de", "target": "en" }));
    assert_eq!((status, &answer), (200, &json!({ "translatedText": expected[0] })));
    let (_, answer) = server.post("/translate", &json!({ "q": ["a b c"], "source": "auto", "target": "en", "x": 1 }));
    assert_eq!(answer, json!({ "translatedText": [expected[0]] }));
    // A form, as urllib and browsers write it; lines of one text.
    let form = "q=a+b%20c%0Ad%0A&source=de&target=en&format=text&api_key=";
    let (status, answer) =
        server.send("POST", "/translate", &["Content-Type: application/x-www-form-urlencoded"], form);
    assert_eq!((status, answer), (200, json!({ "translatedText": format!("{}\n{}\n", expected[0], expected[1]) })));
    // Alternatives are the hypotheses after the best.
    let all = succeed_n_best("a b c");
    let (_, answer) = server.post("/translate", &json!({ "q": "a b c", "alternatives": 2 }));
    assert_eq!(answer, json!({ "translatedText": all[0], "alternatives": all[1..3] }));
    let (_, answer) = server.post("/translate", &json!({ "q": "a b c", "alternatives": 99 }));
    assert_eq!(answer["alternatives"].as_array().map(Vec::len), Some(3));
    // What the model cannot read is said.
    let (_, answer) = server.post("/translate", &json!({ "q": ["a", "a é"] }));
    assert_says(answer["notes"][0].as_str().unwrap(), &["q[1]: the vocabulary lacks \"é\""]);
    let (_, answer) = server.post("/translate", &json!({ "q": [] }));
    assert_eq!(answer, json!({ "translatedText": [] }));

    let (status, languages) = server.get("/languages");
    assert_eq!((status, languages), (200, json!([{ "code": "de", "name": "de", "targets": ["en"] }])));
}

/// The four hypotheses of a line, best first.
fn succeed_n_best(line: &str) -> Vec<String> {
    let dir = TempDir::new().unwrap();
    let input = dir.path().join("input");
    fs::write(&input, line).unwrap();
    let path = input.to_str().unwrap();
    let text = succeed(trained(), &["translate", "--run", "run", "--beam", "4", "--n-best", "4", "--input", path]);
    text.lines().map(|line| line.split(" ||| ").nth(1).unwrap().to_string()).collect()
}

#[test]
fn info_tokens_scores_and_explanations_are_those_of_the_program() {
    let server = Server::start(trained(), &["--run", "run"]);
    assert_eq!(server.get("/health"), (200, json!({ "status": "ok" })));
    let (status, info) = server.get("/info");
    assert_eq!(status, 200);
    let run = &info["runs"][0];
    assert_eq!((&run["name"], &run["source"], &run["checkpoint"]), (&json!("run"), &json!("run"), &json!("000150")));
    assert!(run["parameters"].as_u64() > Some(1000) && run["source_vocabulary"].as_u64() > Some(5), "{run}");
    assert!(run["model"].as_str().unwrap().contains("Transformer"), "{run}");

    let (_, tokens) = server.post("/tokenize", &json!({ "q": ["a b", "c"] }));
    assert_eq!(tokens[0]["tokens"].as_array().map(Vec::len), tokens[0]["ids"].as_array().map(Vec::len));
    assert_eq!(tokens.as_array().map(Vec::len), Some(2));
    let (_, one) = server.post("/tokenize", &json!({ "q": "c", "side": "target" }));
    assert!(one["ids"].is_array(), "{one}");

    let dir = TempDir::new().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_string();
    fs::write(at("source"), "a b\nc\n").unwrap();
    fs::write(at("target"), "a b\nd d\n").unwrap();
    let command = ["translate", "--run", "run", "--json", "--input", &at("source"), "--targets", &at("target")];
    let expected: Vec<Value> =
        succeed(trained(), &command).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (status, scores) = server.post("/score", &json!({ "q": ["a b", "c"], "translation": ["a b", "d d"] }));
    assert_eq!(status, 200, "{scores}");
    assert_eq!((scores.as_array().map(Vec::len), expected.len()), (Some(2), 2), "{scores}");
    for (found, expected) in scores.as_array().unwrap().iter().zip(&expected) {
        for key in ["log_probability", "perplexity", "token_log_probabilities"] {
            assert_eq!(found[key], expected[key], "{key}");
        }
        let n_tokens = found["tokens"].as_array().map(Vec::len);
        assert_eq!(n_tokens, found["token_log_probabilities"].as_array().map(Vec::len));
    }
    let (status, answer) = server.post("/score", &json!({ "q": ["a", "b"], "translation": "a" }));
    assert_eq!(status, 400);
    assert_says(&answer["error"].to_string(), &["q has 2 texts and translation 1"]);

    let expected: Value =
        serde_json::from_str(&succeed(trained(), &["explain", "--run", "run", "a b é", "--json"])).unwrap();
    let (status, mut found) = server.post("/explain", &json!({ "q": "a b é" }));
    assert_eq!(status, 200);
    // The program names the folder as it was given.
    assert_says(found["model"].as_str().unwrap(), &["Transformer", "; run"]);
    found["model"] = expected["model"].clone();
    assert_eq!(found, expected);
    let (status, answer) = server.post("/explain", &json!({ "q": "a b", "step": 90 }));
    assert_eq!(status, 400);
    assert_says(&answer["error"].to_string(), &["step 90: this translation has "]);
    assert_eq!(server.post("/explain", &json!({ "q": " " })).0, 400);
    let long = "a ".repeat(20_000);
    assert_eq!(server.post("/explain", &json!({ "q": "a", "translation": "b" })).0, 200);
    assert_says(&server.post("/explain", &json!({ "q": long })).1["error"].to_string(), &["q has ", "max_source_len"]);
}

#[test]
fn languages_choose_among_several_runs() {
    let options = ["--run", "run", "--languages", "de-en", "--run", "run", "--languages", "zh-Hans:en", "--int8"];
    let server = Server::start(trained(), &options);
    let asked = |source: &str, target: &str| {
        server.post("/translate", &json!({ "q": "a", "source": source, "target": target }))
    };
    assert_eq!(asked("de", "en").0, 200);
    assert_eq!(asked("zh-Hans", "en").0, 200);
    let (status, answer) = asked("en", "de");
    assert_eq!(
        (status, &answer),
        (400, &json!({ "error": "no model from en to de; there is de to en, zh-Hans to en" }))
    );
    let (status, answer) = asked("auto", "en");
    assert_eq!(status, 400);
    assert_says(&answer["error"].to_string(), &["several models fit; give source and target"]);
    assert_eq!(server.get("/languages").1.as_array().map(Vec::len), Some(2));
    drop(server);

    let serve = |arguments: &[&str]| fail(trained(), &[&["serve", "--port", "0"][..], arguments].concat());
    let twice = ["--run", "run", "--run", "run"];
    assert_says(
        &serve(&[&twice[..], &["--languages", "de-en"]].concat()),
        &["--languages is given 1 times and --run 2"],
    );
    assert_says(&serve(&["--run", "run", "--languages", "de"]), &["--languages de: give two codes as de-en"]);
    assert_says(&serve(&["--run", "run", "--host", "0.0.0.0"]), &["lets other machines in; give --token"]);
    assert_says(&serve(&["--run", "run", "--n-best", "1"]), &["--n-best is not for serve"]);
    assert_says(&serve(&["--run", "nothing"]), &["nothing: is no folder"]);
    for token in ["secret ", "p\u{e4}sse", "two words"] {
        assert_says(
            &serve(&["--run", "run", "--token", token]),
            &["--token has a character that a header cannot hold"],
        );
    }
    let ignored = |option: &str| fail(language_model(), &["serve", "--port", "0", "--run", "run", option]);
    for option in ["--int8", "--sample"] {
        assert_says(&ignored(option), &[option, "has no effect on language models"]);
    }
    let finished = finish(trained(), &["serve", "--port", "0", "--run", "run", "--timeout", "18446744073709551615"]);
    assert_says(&finished.stderr, &["--timeout", "is not in 1..=31536000"]);
}

#[test]
#[cfg(target_os = "linux")]
fn a_server_that_nobody_listens_to_answers_its_callers() {
    for (what, stderr) in [("full", full as fn() -> Stdio), ("gone", dead_pipe)] {
        let mut server = Server::start_with(trained(), &["--run", "run", "--verbose"], stderr());
        server.stop_reading();
        for _ in 0..2 {
            let (status, answer) = server.post("/translate", &json!({ "q": LINES }));
            assert_eq!((status, &answer["translatedText"]), (200, &json!(alone(&LINES, &[]))), "{what}");
        }
        // What cannot be answered is said on standard error too.
        assert_eq!(server.post("/translate", &json!({ "q": 7 })).0, 400, "{what}");
        server.terminate();
        assert_eq!(server.end().0, Some(0), "{what}");
    }
}
