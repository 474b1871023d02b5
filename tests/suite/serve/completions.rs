//! `/v1/completions` and `/v1/models`: what language models write, at once and piece by piece.

use super::server::{Server, answer};
use crate::cli::trained;
use crate::training::{assert_says, language_model, succeed};
use serde_json::{Value, json};

fn complete(server: &Server, body: Value) -> Value {
    let (status, answer) = server.post("/v1/completions", &body);
    assert_eq!(status, 200, "{body}: {answer}");
    answer
}

fn text(answer: &Value) -> &str {
    answer["choices"][0]["text"].as_str().unwrap()
}

/// The objects of a stream; it ends with `[DONE]`.
fn stream(server: &Server, mut body: Value) -> Vec<Value> {
    body["stream"] = json!(true);
    let sent = server.begin("POST", "/v1/completions", &["Content-Type: application/json"], body.to_string());
    let (status, head, text) = answer(sent);
    assert_eq!(status, 200, "{text}");
    assert_says(&head, &["content-type: text/event-stream"]);
    let mut events: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
    assert_eq!(events.pop(), Some("[DONE]"), "{text}");
    events.into_iter().map(|event| serde_json::from_str(event).unwrap()).collect()
}

fn joined(events: &[Value], index: usize) -> String {
    let choices = events.iter().flat_map(|event| event["choices"].as_array().unwrap());
    choices.filter(|choice| choice["index"] == index).map(|choice| choice["text"].as_str().unwrap()).collect()
}

#[test]
fn a_completion_is_what_the_program_writes() {
    let server = Server::start(language_model(), &["--run", "run"]);
    for (sampling, body) in [
        (&[][..], json!({ "temperature": 0 })),
        (&["--sample", "--seed", "9", "--temperature", "1.5"], json!({ "temperature": 1.5, "seed": 9 })),
        (
            &["--sample", "--seed", "4", "--top-k", "3", "--top-p", "0.9"],
            json!({ "seed": 4, "top_k": 3, "top_p": 0.9 }),
        ),
    ] {
        // More tokens than the model has in sight.
        let command = ["generate", "--run", "run", "ab", "--max-tokens", "40", "--json"];
        let expected: Value =
            serde_json::from_str(&succeed(language_model(), &[&command[..], sampling].concat())).unwrap();
        let mut body = body;
        body["prompt"] = json!("ab");
        body["max_tokens"] = json!(40);
        let whole = complete(&server, body.clone());
        assert_eq!(text(&whole), expected["text"], "{sampling:?}");
        assert_eq!(whole["choices"][0]["finish_reason"], json!("length"));
        assert_eq!(whole["usage"], json!({ "prompt_tokens": 2, "completion_tokens": 40, "total_tokens": 42 }));
        assert_eq!((&whole["object"], &whole["model"]), (&json!("text_completion"), &json!("run")));
        let events = stream(&server, body.clone());
        assert_eq!(joined(&events, 0), expected["text"]);
        assert!(events.len() > 5, "it comes in pieces");
        body["logprobs"] = json!(0);
        let scored = complete(&server, body);
        for (found, expected) in scored["choices"][0]["logprobs"]["token_logprobs"]
            .as_array()
            .unwrap()
            .iter()
            .zip(expected["token_log_probabilities"].as_array().unwrap())
        {
            assert!((found.as_f64().unwrap() - expected.as_f64().unwrap()).abs() < 1e-5, "{found} {expected}");
        }
    }
    assert!(server.metric("lookback_written_tokens_total") > 300);
}

#[test]
fn a_stop_text_ends_it_and_is_never_shown() {
    let server = Server::start(language_model(), &["--run", "run"]);
    let body = |stop: Value| json!({ "prompt": "ab", "max_tokens": 20, "temperature": 0, "stop": stop, "logprobs": 1 });
    assert_eq!(text(&complete(&server, json!({ "prompt": "ab", "max_tokens": 5, "temperature": 0 }))), "cdef\n");
    for (stop, expected) in
        [(json!("ef"), "cd"), (json!(["f\n", "zz"]), "cde"), (json!("\n"), "cdef"), (json!("cd"), "")]
    {
        let whole = complete(&server, body(stop.clone()));
        assert_eq!((text(&whole), &whole["choices"][0]["finish_reason"]), (expected, &json!("stop")), "{stop}");
        let events = stream(&server, body(stop.clone()));
        assert_eq!(joined(&events, 0), expected, "{stop}");
        assert_eq!(events.last().unwrap()["choices"][0]["finish_reason"], json!("stop"));
        let tokens: String = whole["choices"][0]["logprobs"]["tokens"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|token| token.as_str().unwrap())
            .collect();
        assert_eq!(tokens, expected);
    }
    // One that does not come changes nothing, also where its beginning does.
    let whole = complete(&server, json!({ "prompt": "ab", "max_tokens": 4, "temperature": 0, "stop": "efg" }));
    assert_eq!(text(&whole), "cdef");
}

#[test]
fn several_prompts_and_draws_are_told_apart() {
    let server = Server::start(language_model(), &["--run", "run"]);
    let one = |prompt: &str, seed: u64| {
        text(&complete(&server, json!({ "prompt": prompt, "max_tokens": 12, "temperature": 2, "seed": seed })))
            .to_string()
    };
    let body = json!({ "prompt": ["ab", "g"], "n": 2, "max_tokens": 12, "temperature": 2, "seed": 5 });
    let whole = complete(&server, body.clone());
    let found: Vec<&str> =
        whole["choices"].as_array().unwrap().iter().map(|choice| choice["text"].as_str().unwrap()).collect();
    assert_eq!(found, [one("ab", 5), one("ab", 6), one("g", 5), one("g", 6)]);
    assert_ne!(found[0], found[1]);
    let events = stream(&server, body);
    for (index, expected) in found.iter().enumerate() {
        assert_eq!(&joined(&events, index), expected);
    }
    // Ids are the tokens of the text.
    let (_, tokens) = server.post("/tokenize", &json!({ "q": "ab" }));
    let of_ids = complete(&server, json!({ "prompt": tokens["ids"], "max_tokens": 5, "temperature": 0 }));
    assert_eq!(text(&of_ids), "cdef\n");
}

#[test]
fn the_prompt_is_scored_as_what_is_written() {
    let server = Server::start(language_model(), &["--run", "run"]);
    let body = |prompt: &str, max_tokens: usize| json!({ "prompt": prompt, "max_tokens": max_tokens, "temperature": 0, "logprobs": 2, "echo": true });
    let written = complete(&server, body("ab", 4));
    let given = complete(&server, body("abcdef", 0));
    assert_eq!((text(&written), text(&given)), ("abcdef", "abcdef"));
    let [written, given] = [&written, &given].map(|answer| &answer["choices"][0]["logprobs"]);
    assert_eq!(written["tokens"], given["tokens"]);
    assert_eq!(written["text_offset"], json!([0, 1, 2, 3, 4, 5]));
    for (one, other) in
        written["token_logprobs"].as_array().unwrap().iter().zip(given["token_logprobs"].as_array().unwrap())
    {
        assert!((one.as_f64().unwrap() - other.as_f64().unwrap()).abs() < 1e-4, "{one} {other}");
    }
    assert_eq!(given["top_logprobs"][2].as_object().map(serde_json::Map::len), Some(2));
    // A prompt of one token, before which there is nothing: given as text, and as ids after the end of a line.
    let alone = complete(&server, body("a", 0));
    assert_eq!((text(&alone), &alone["choices"][0]["finish_reason"]), ("a", &json!("length")));
    assert_eq!(alone["choices"][0]["logprobs"]["tokens"], json!(["a"]));
    let on = complete(&server, body("a", 3));
    assert_eq!(
        (text(&on).chars().count(), on["choices"][0]["logprobs"]["tokens"].as_array().map(Vec::len)),
        (4, Some(4))
    );
    let plain = complete(&server, json!({ "prompt": "ab", "max_tokens": 2, "temperature": 0, "echo": true }));
    assert_eq!((text(&plain), &plain["choices"][0]["logprobs"]), ("abcd", &Value::Null));
}

#[test]
fn models_are_listed_and_faults_are_those_of_openai() {
    let run = trained().join("run");
    let server =
        Server::start(language_model(), &["--run", "run", "--run", run.to_str().unwrap(), "--max-tokens", "50"]);
    let (_, models) = server.get("/v1/models");
    assert_eq!(models["data"].as_array().map(Vec::len), Some(1));
    assert_eq!(server.get("/v1/models/run").1["id"], json!("run"));
    let (status, fault) = server.get("/v1/models/run-2");
    assert_eq!((status, &fault["error"]["code"]), (404, &json!("model_not_found")));
    let cases = [
        (json!({ "prompt": "a", "model": "x" }), 404, "no model x; there is run"),
        (json!({ "prompt": "a", "model": "run-2" }), 400, "run-2 is no language model; POST /translate is for it"),
        (json!({ "prompt": 3 }), 400, "prompt is a string, a list of strings"),
        (json!({ "prompt": [] }), 400, "prompt is a string, a list of strings"),
        (json!({ "prompt": [[1, "a"]] }), 400, "prompt has \"a\"; token ids are whole numbers below"),
        (json!({ "prompt": "a", "max_tokens": 51 }), 400, "max_tokens is 51; it may be at most 50"),
        (json!({ "prompt": "a", "max_tokens": 0 }), 400, "max_tokens is 0"),
        (json!({ "prompt": "a", "logprobs": 6 }), 400, "logprobs is 6; it may be at most 5"),
        (json!({ "prompt": "a", "n": 0 }), 400, "n is 0"),
        (json!({ "prompt": "a", "n": 2000 }), 400, "ask for 1 to 1000 completions"),
        (json!({ "prompt": "a", "stop": ["a", ""] }), 400, "stop has an empty text"),
        (json!({ "prompt": "a", "temperature": -1 }), 400, "temperature: must be above 0"),
        (json!({ "prompt": "a", "top_p": 2 }), 400, "top_p: must be above 0 and at most 1"),
        (json!({ "prompt": "a", "stream": 1 }), 400, "stream is 1; give true or false"),
        (json!({ "prompt": "a", "presence_penalty": 0.5 }), 400, "presence_penalty is not supported"),
        (json!({ "prompt": "a", "suffix": "b" }), 400, "suffix is not supported"),
        (json!({ "prompt": "a", "best_of": 3 }), 400, "best_of is 3 and n is 1"),
        (
            json!({ "prompt": "ab".repeat(1000), "n": 200, "echo": true }),
            400,
            "echo of n times the tokens of all prompts is",
        ),
        (
            json!({ "prompt": "abcdefabcdefabcdef", "echo": true, "logprobs": 1 }),
            400,
            "of which echo with logprobs takes 13",
        ),
    ];
    for (body, expected, part) in cases {
        let (status, answer) = server.post("/v1/completions", &body);
        assert_eq!(status, expected, "{body}: {answer}");
        assert_says(answer["error"]["message"].as_str().unwrap(), &[part]);
        assert_eq!(answer["error"]["type"], json!("invalid_request_error"));
    }
    // Neutral values of what is not supported are taken, as clients send them.
    let neutral =
        json!({ "prompt": "a", "presence_penalty": 0, "suffix": null, "logit_bias": {}, "best_of": 1, "user": "u" });
    complete(&server, neutral);
    // A translation goes to the other.
    assert_eq!(server.post("/translate", &json!({ "q": "a b" })).0, 200);
    let (_, answer) = server.post("/translate", &json!({ "q": "a", "model": "run" }));
    assert_says(answer["error"].as_str().unwrap(), &["run does not translate; POST /v1/completions is for it"]);
    let (_, languages) = server.get("/languages");
    assert_eq!(languages.as_array().map(Vec::len), Some(1));
}

#[test]
fn a_caller_that_goes_leaves_its_place() {
    let server = Server::start(language_model(), &["--run", "run", "--max-queue", "1", "--max-tokens", "100000000"]);
    let body = json!({ "prompt": "ab", "max_tokens": 100_000_000, "stream": true });
    let stream = server.begin("POST", "/v1/completions", &["Content-Type: application/json"], body.to_string());
    server.wait_for_queue(1);
    assert_eq!(server.post("/v1/completions", &json!({ "prompt": "a" })).0, 503);
    drop(stream);
    server.wait_for_queue(0);
    assert_eq!(
        complete(&server, json!({ "prompt": "ab", "max_tokens": 3, "temperature": 0 }))["choices"][0]["text"],
        json!("cde")
    );
}

#[test]
fn long_texts_do_not_hold_up_others() {
    let run = trained().join("run");
    let server = Server::start(
        language_model(),
        &["--run", "run", "--run", run.to_str().unwrap(), "--max-tokens", "100000000", "--timeout", "3"],
    );
    let body = json!({ "prompt": "ab", "max_tokens": 100_000_000, "stream": true });
    let long = server.begin("POST", "/v1/completions", &["Content-Type: application/json"], body.to_string());
    server.wait_for_queue(1);
    // Whoever asks for many leaves room for others, and does not keep the server writing by not reading.
    let many = json!({ "prompt": "ab", "n": 20, "max_tokens": 100_000_000, "stream": true });
    let unread = server.begin("POST", "/v1/completions", &["Content-Type: application/json"], many.to_string());
    server.wait_for_queue(2);
    assert_eq!(server.post("/translate", &json!({ "q": "a b" })).0, 200);
    assert_eq!(text(&complete(&server, json!({ "prompt": "ab", "max_tokens": 3, "temperature": 0 }))), "cde");
    // A stream that takes too long ends with a fault that clients raise.
    let (_, _, events) = answer(long);
    let last = events.lines().filter_map(|line| line.strip_prefix("data: ")).next_back().unwrap();
    assert_says(last, &["\"error\"", "took longer than 3 s"]);
    server.wait_for_queue(0);
    drop(unread);
}

#[test]
fn every_endpoint_is_described() {
    let server = Server::start(language_model(), &["--run", "run"]);
    let (status, api) = server.get("/openapi.json");
    assert_eq!((status, &api["openapi"]), (200, &json!("3.1.0")));
    let (_, fault) = server.get("/nothing");
    let paths: Vec<&String> = api["paths"].as_object().unwrap().keys().collect();
    for path in &paths {
        assert_says(fault["error"].as_str().unwrap(), &[path]);
        let method = api["paths"][path.as_str()].as_object().unwrap().keys().next().unwrap().to_uppercase();
        let wrong = if method == "GET" { "POST" } else { "GET" };
        let (status, answer) = server.send(wrong, &path.replace("{model}", "run"), &[], "");
        assert_eq!(status, 405, "{path}: {answer}");
        let said = answer["error"].as_str().or(answer["error"]["message"].as_str()).unwrap();
        assert_says(said, &[&format!("takes {method}, not {wrong}")]);
    }
    assert_eq!(
        fault["error"].as_str().unwrap().matches('/').count(),
        paths.iter().map(|path| path.matches('/').count()).sum::<usize>()
    );
    let (status, page) = server.text("GET", "/docs", &[], "");
    assert_eq!(status, 200);
    for path in paths {
        assert_says(&page, &[&format!(" {path}</code>")]);
    }
    assert!(!page.contains("$ref"));
}
