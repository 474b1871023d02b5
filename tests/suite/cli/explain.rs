//! `lookback explain`.

use super::trained;
use crate::training::{assert_says, fail, finish, lookback, succeed};
use serde_json::Value;

fn json(arguments: &[&str]) -> Value {
    let arguments = [&["explain", "--run", "run", "a b c", "--json"], arguments].concat();
    serde_json::from_str(&succeed(trained(), &arguments)).expect("one JSON object")
}

#[test]
fn the_page_goes_from_words_to_steps() {
    let page = succeed(trained(), &["explain", "--run", "run", "a b c"]);
    assert_says(
        &page,
        &[
            "a b c   ->   a b c",
            "Transformer with 1 decoder layer of 2 heads",
            "1. Words become vectors",
            "2. The encoder reads",
            "3. Step by step",
            "Step 1 of 4   the word after \"<s>\" is \"a\" with ",
            "e_1i = q_1 . k_i / sqrt(8)",
            "--layer N (1 to 1) and --head N (1 to 2)",
        ],
    );
    assert!(!page.contains('\u{1b}'), "colours in a pipe");
    let step = succeed(trained(), &["explain", "--run", "run", "a b c", "--step", "2", "--head", "2"]);
    assert_says(&step, &["Step 2 of 4", "Layer 1, head 2: attention to the source", "to the target so far"]);
    assert!(!step.contains("Step 1 of 4") && !step.contains("head 1:"), "{step}");
}

#[test]
fn colours_are_forced_and_forbidden_by_the_usual_variables() {
    let page = |variables: &[(&str, &str)]| {
        let mut command = lookback(trained(), &["explain", "--run", "run", "a b"]);
        let output = command.envs(variables.iter().copied()).output().expect("the program starts");
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    assert!(page(&[("CLICOLOR_FORCE", "1")]).contains("\u{1b}["));
    assert!(!page(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]).contains('\u{1b}'));
}

#[test]
fn a_given_target_is_explained_and_what_the_model_would_rather_have() {
    let page = succeed(trained(), &["explain", "--run", "run", "a b c", "--target", "c b a"]);
    assert_says(&page, &["a b c   given:  c b a", "the model would rather have \"a\"", "(rather a "]);
    let value = json(&["--target", "c b a"]);
    assert_eq!((value["forced"].as_bool(), value["target_text"].as_str()), (Some(true), Some("c b a")));
    assert_eq!(
        (&value["steps"][0]["chosen"]["token"], &value["steps"][0]["preferred"]["token"]),
        (&"c".into(), &"a".into())
    );
}

/// Every object with a key `weights`.
fn rows(value: &Value) -> Vec<&serde_json::Map<String, Value>> {
    match value {
        Value::Object(object) if object.contains_key("weights") => vec![object],
        Value::Object(object) => object.values().flat_map(rows).collect(),
        Value::Array(values) => values.iter().flat_map(rows).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn every_row_of_weights_stands_beside_what_it_belongs_to() {
    let value = json(&[]);
    let rows = rows(&value);
    // Two heads: four source positions in the encoder, four steps to the source and to the target so far.
    assert_eq!(rows.len(), 2 * (4 + 4 + 4));
    for row in rows {
        let weights: Vec<f64> = row["weights"].as_array().unwrap().iter().map(|w| w.as_f64().unwrap()).collect();
        assert!((weights.iter().sum::<f64>() - 1.0).abs() < 1e-5, "{row:?}");
        assert_eq!(row["source"].as_array().unwrap().len(), weights.len());
        assert_eq!(row["scores"].as_array().unwrap().len(), weights.len());
        assert_eq!(row["context"].as_array().unwrap().len(), 8);
        assert!(row["target"].is_string() && row["name"].is_string());
        assert!(["layer", "head", "step"].iter().all(|key| row[*key].as_u64().is_some_and(|n| n >= 1)));
    }
    for key in
        ["source", "target", "source_text", "target_text", "source_words", "encoder", "memories", "steps", "mechanism"]
    {
        assert!(!value[key].is_null(), "{key} is missing");
    }
    let chosen = json(&["--step", "3", "--head", "2"]);
    assert_eq!((chosen["steps"].as_array().unwrap().len(), chosen["steps"][0]["step"].as_u64()), (1, Some(3)));
    assert_eq!(chosen["steps"][0]["attention"].as_array().unwrap().len(), 1);
}

#[test]
fn the_html_page_has_everything_in_it() {
    let dir = tempfile::TempDir::new().unwrap();
    let path = dir.path().join("page.html");
    let message = succeed(trained(), &["explain", "--run", "run", "a b <unk>", "--html", path.to_str().unwrap()]);
    assert_says(&message, &["page.html: ", " steps; open it in a browser"]);
    let page = std::fs::read_to_string(&path).unwrap();
    assert!(
        !page.contains("http://www.")
            || page.matches("http").count()
                == page.matches("http://www.w3.org").count() + page.matches("http-equiv").count(),
        "something is loaded from elsewhere"
    );
    assert_says(&page, &["\"mechanism\"", "ArrowRight", "<title>"]);
    assert_says(
        &fail(trained(), &["explain", "--run", "run", "a", "--html", "no/such/page.html"]),
        &["no/such/page.html: No such file"],
    );
}

#[test]
fn what_cannot_be_explained_says_why() {
    for (arguments, parts) in [
        (&["--run", "run", ""][..], &["the source is empty; give a sentence"][..]),
        (&["--run", "run", "  \t "], &["the source is empty"]),
        (&["--run", "nowhere", "a"], &["nowhere: is no folder; give the run folder"]),
        (&["--run", "run", "a b", "--step", "9"], &["--step 9: this translation has 3 steps, 1 to 3"]),
        (&["--run", "run", "a b", "--step", "0"], &["--step 0: this translation has 3 steps"]),
        (&["--run", "run", "a b", "--layer", "2"], &["--layer 2: this model has attention in one layer, 1"]),
        (&["--run", "run", "a b", "--head", "3"], &["--head 3: this model has attention in heads 1 to 2"]),
        (&["--run", "run", "a b", "--beam", "0"], &["decoding.beam_size: must be at least 1, got 0"]),
    ] {
        assert_says(&fail(trained(), &[&["explain"], arguments].concat()), parts);
    }
    let finished = finish(trained(), &["explain", "--run", "run", "a", "--beam", "2", "--target", "b"]);
    assert_eq!(finished.code, Some(2), "{}", finished.stderr);
}

#[test]
fn unknown_words_are_named() {
    let page = succeed(trained(), &["explain", "--run", "run", "a zebra b"]);
    assert_says(&page, &["note: the vocabulary lacks \"zebra\" of the source: the model sees <unk> there", "<unk>"]);
    let page = succeed(trained(), &["explain", "--run", "run", "a", "--target", "okapi a okapi"]);
    assert_says(&page, &["the vocabulary lacks \"okapi\" of the target"]);
}
