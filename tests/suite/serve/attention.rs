//! `/attention`: what a model wrote and where it looked; another beginning, words blanked, heads switched off.

use super::server::Server;
use crate::cli::trained;
use crate::training::{assert_says, language_model};
use serde_json::{Value, json};

fn ask(server: &Server, body: Value) -> Value {
    let (status, answer) = server.post("/attention", &body);
    assert_eq!(status, 200, "{body}: {answer}");
    answer
}

fn tokens(answer: &Value) -> Vec<&str> {
    answer["target"].as_array().unwrap().iter().map(|step| step["token"].as_str().unwrap()).collect()
}

fn ids(answer: &Value) -> Vec<u64> {
    answer["target"].as_array().unwrap().iter().map(|step| step["id"].as_u64().unwrap()).collect()
}

#[test]
fn what_was_written_and_looked_at_is_what_the_program_says() {
    let server = Server::start(trained(), &["--run", "run"]);
    let answer = ask(&server, json!({ "q": " a b c " }));
    let (_, translated) = server.post("/translate", &json!({ "q": "a b c" }));
    assert_eq!(answer["text"], translated["translatedText"]);
    assert_eq!(answer["source"], json!(["a", "b", "c", "</s>"]));
    assert_eq!(tokens(&answer).last(), Some(&"</s>"));
    let (_, scores) = server.post("/score", &json!({ "q": "a b c", "translation": answer["text"] }));
    let (_, explained) = server.post("/explain", &json!({ "q": "a b c" }));
    for (step, token) in answer["target"].as_array().unwrap().iter().enumerate() {
        let probability = token["probability"].as_f64().unwrap();
        let scored = scores["token_log_probabilities"][step].as_f64().unwrap().exp();
        assert!((probability - scored).abs() < 1e-4, "step {step}: {probability} and {scored}");
        assert_eq!(token["given"], json!(false));
        let candidates = token["candidates"].as_array().unwrap();
        let top = explained["steps"][step]["top"].as_array().unwrap();
        assert_eq!(candidates.len(), 5);
        for (candidate, expected) in candidates.iter().zip(top) {
            assert_eq!(candidate["id"], expected["id"], "step {step}");
        }
        // Every head's row of this step is the explanation's.
        for row in explained["steps"][step]["attention"].as_array().unwrap() {
            let is_its =
                |map: &&Value| map["part"] == "cross" && map["layer"] == row["layer"] && map["head"] == row["head"];
            let map = answer["maps"].as_array().unwrap().iter().find(is_its).unwrap();
            let n = map["n_columns"].as_u64().unwrap() as usize;
            for column in 0..n {
                let weight = map["weights"][step * n + column].as_f64().unwrap();
                assert!((weight - row["weights"][column].as_f64().unwrap()).abs() < 1e-4, "{row} {weight}");
            }
        }
    }
}

#[test]
fn the_model_goes_on_from_another_beginning() {
    let server = Server::start(trained(), &["--run", "run"]);
    let own = ask(&server, json!({ "q": "a b c d" }));
    // Another token than the model's own at the second step.
    let other = own["target"][1]["candidates"][1]["id"].clone();
    let prefix = json!([ids(&own)[0], other]);
    let changed = ask(&server, json!({ "q": "a b c d", "prefix": prefix }));
    assert_eq!(ids(&changed)[..2], [ids(&own)[0], other.as_u64().unwrap()]);
    let given: Vec<bool> =
        changed["target"].as_array().unwrap().iter().map(|step| step["given"] == json!(true)).collect();
    assert_eq!((given[0], given[1], given[2]), (true, true, false));
    // The steps up to the one that differs have the probabilities that they had.
    assert_eq!(changed["target"][0], {
        let mut same = own["target"][0].clone();
        same["given"] = json!(true);
        same
    });
    assert_eq!(changed["target"][1]["candidates"], own["target"][1]["candidates"]);
    // A beginning that the model would have chosen changes nothing.
    let same = ask(&server, json!({ "q": "a b c d", "prefix": ids(&own)[..2] }));
    assert_eq!(ids(&same), ids(&own));
    // With its end given, nothing follows.
    let ended = ask(&server, json!({ "q": "a b c d", "prefix": [ids(&own)[0], 2] }));
    assert_eq!(tokens(&ended).len(), 2);
    assert_eq!(ended["is_complete"], json!(true));
}

#[test]
fn without_a_word_the_model_does_not_know_it() {
    let server = Server::start(trained(), &["--run", "run"]);
    let own = ask(&server, json!({ "q": "a b c" }));
    let blanked = ask(&server, json!({ "q": "a b c", "blank": [2] }));
    assert_eq!((&blanked["source"], &blanked["blank"]), (&json!(["a", "<unk>", "c", "</s>"]), &json!([2])));
    assert_ne!(own["target"], blanked["target"]);
    // What was there does not matter any more.
    let other = ask(&server, json!({ "q": "a d c", "blank": [2] }));
    assert_eq!(other["target"], blanked["target"]);
}

#[test]
fn without_any_cross_attention_the_source_does_not_matter() {
    let server = Server::start(trained(), &["--run", "run"]);
    let (_, info) = server.get("/info");
    let heads: Vec<&str> =
        info["runs"][0]["without"].as_array().unwrap().iter().map(|head| head.as_str().unwrap()).collect();
    let cross: Vec<&str> = heads.iter().copied().filter(|head| head.starts_with("cross.")).collect();
    assert!(cross.len() >= 2 && cross.len() < heads.len(), "{heads:?}");
    let without = |q: &str, off: &[&str]| ask(&server, json!({ "q": q, "without": off }))["target"].clone();
    assert_eq!(without("a b c", &cross), without("d d a", &cross));
    assert_ne!(without("a b c", &cross[1..]), without("d d a", &cross[1..]));
    assert_eq!(without("a b c", &[]), ask(&server, json!({ "q": "a b c" }))["target"]);
    // An explanation can be of the same model.
    let (_, explained) = server.post("/explain", &json!({ "q": "a b c", "without": cross }));
    let target: Vec<Value> =
        explained["steps"].as_array().unwrap().iter().map(|step| step["chosen"]["id"].clone()).collect();
    let expected: Vec<Value> =
        without("a b c", &cross).as_array().unwrap().iter().map(|step| step["id"].clone()).collect();
    assert_eq!(target, expected);
    assert_says(&explained["notes"].to_string(), &["switched off: cross.1.1"]);
}

#[test]
fn a_language_model_is_looked_at_too() {
    let server = Server::start(language_model(), &["--run", "run"]);
    let answer = ask(&server, json!({ "q": "ab" }));
    assert_eq!((&answer["is_text"], &answer["source"]), (&json!(true), &json!(["</s>", "a", "b"])));
    assert_eq!(answer["text"], json!("cdef\n"));
    assert_eq!(tokens(&answer), ["c", "d", "e", "f", "</s>"]);
    // One row for each token that is read: all but the last.
    assert_eq!((&answer["maps"][0]["part"], &answer["maps"][0]["n_rows"]), (&json!("decoder"), &json!(7)));
    let changed =
        ask(&server, json!({ "q": "", "prefix": [ids(&ask(&server, json!({ "q": "ga" })))[0]], "max_tokens": 3 }));
    assert_eq!(changed["source"], json!(["</s>"]));
    assert_eq!(tokens(&changed)[0], "b");
    assert!(tokens(&changed).len() <= 4);
    let (status, page) = server.post_text("/explain", &json!({ "q": "ab", "translation": "cde", "format": "html" }));
    assert_eq!(status, 200);
    assert_says(&page, &["<!DOCTYPE html>", "ab → cde"]);
}

#[test]
fn what_cannot_be_is_refused() {
    let server = Server::start(trained(), &["--run", "run", "--run", "run", "--max-source-len", "9"]);
    let long = "a ".repeat(20);
    let cases = [
        (json!({}), 400, "q is missing"),
        (json!({ "q": " " }), 400, "q is empty"),
        (json!({ "q": long }), 400, "q has 21 tokens"),
        (json!({ "q": "a", "blank": [2] }), 400, "blank has 2; q has the tokens 1 to 1"),
        (json!({ "q": "a", "blank": ["x"] }), 400, "blank has \"x\"; give a list of whole numbers"),
        (json!({ "q": "a", "prefix": [999] }), 400, "prefix[0] is 999, which cannot stand there"),
        (json!({ "q": "a", "prefix": [4, 2, 4] }), 400, "prefix[1] is 2, which cannot stand there"),
        (json!({ "q": "a", "prefix": [4], "translation": "a" }), 400, "both given"),
        (json!({ "q": "a", "without": ["cross.9.1"] }), 400, "run has no head cross.9.1; /info lists its heads"),
        (
            json!({ "q": "a", "without": "first" }),
            400,
            "\"first\" is no head; write part, layer and head as in cross.2.1",
        ),
        (json!({ "q": "a", "model": "other" }), 404, "no model other; there is run, run-2"),
    ];
    for (mut body, expected, part) in cases {
        if body["model"].is_null() {
            body["model"] = json!("run");
        }
        let (status, answer) = server.post("/attention", &body);
        assert_eq!(status, expected, "{body}: {answer}");
        assert_says(answer["error"].as_str().unwrap(), &[part]);
    }
    // Of two runs for one pair of languages the first is taken, the other by its name.
    assert_eq!(ask(&server, json!({ "q": "a", "model": "run-2" }))["model"], json!("run-2"));
}

#[test]
fn more_than_there_is_room_for_is_refused_before_it_is_computed() {
    let server = Server::start(trained(), &["--run", "run"]);
    let long = "a ".repeat(2500);
    for path in ["/attention", "/explain"] {
        for body in
            [json!({ "q": long }), json!({ "q": long, "translation": "a" }), json!({ "q": "a", "translation": long })]
        {
            let (status, answer) = server.post(path, &body);
            assert_eq!(status, 400, "{path}: {answer}");
            assert_says(answer["error"].as_str().unwrap(), &["weights of attention", "an answer may have 50000000"]);
        }
    }
}

#[test]
fn a_text_goes_on_with_something_and_forms_end_lines_as_json_does() {
    let server = Server::start(language_model(), &["--run", "run"]);
    let (status, answer) = server.post("/attention", &json!({ "q": "", "translation": "" }));
    assert_eq!(status, 400, "{answer}");
    assert_says(answer["error"].as_str().unwrap(), &["translation is empty", "how the text goes on"]);
    // A browser sends the end of a line in a form as two characters.
    let form = "Content-Type: application/x-www-form-urlencoded";
    let (_, of_form) = server.send("POST", "/attention", &[form], "q=abcdef%0D%0Aga");
    assert_eq!(of_form["source"], ask(&server, json!({ "q": "abcdef\nga" }))["source"]);
}

#[test]
fn an_explanation_has_the_tokens_that_were_written_whatever_their_text_is() {
    let server = Server::start(trained(), &["--run", "run"]);
    let own = ask(&server, json!({ "q": "a b c" }));
    // An unknown word among those that were written: its text would be cut into other tokens.
    let written = json!([ids(&own)[0], 3, 2]);
    let (status, explained) = server.post("/explain", &json!({ "q": "a b c", "ids": written }));
    assert_eq!(status, 200, "{explained}");
    assert_eq!(explained["target"], json!([tokens(&own)[0], "<unk>", "</s>"]));
    let (_, of_ids) = server.post("/explain", &json!({ "q": "a b c", "ids": ids(&own) }));
    let (_, of_text) = server.post("/explain", &json!({ "q": "a b c", "translation": own["text"] }));
    assert_eq!(of_ids, of_text);
    for (body, part) in [
        (json!({ "q": "a", "ids": [999] }), "ids[0] is 999, which cannot stand there"),
        (json!({ "q": "a", "ids": [4], "translation": "a" }), "both given"),
    ] {
        let (status, answer) = server.post("/explain", &body);
        assert_eq!(status, 400, "{answer}");
        assert_says(answer["error"].as_str().unwrap(), &[part]);
    }
}
