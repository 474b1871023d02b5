//! How transformers is to search: settings of `generation_config.json`.

use super::{change_json, change_weights, changed};
use crate::training::{assert_says, fail, succeed};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

const FILE: &str = "generation_config.json";

/// Writes a setting into a file.
fn set(file: &Path, key: &str, value: Value) {
    change_json(file, |all| all[key] = value);
}

#[test]
fn padding_counts_in_no_sum_where_logits_are_normalized_again() {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("in.txt"), "the dog\nwhen the tide goes out\n").unwrap();
    // Scores of the model with the flag, and with a number instead of what is added to the score of padding.
    let scores = |name: &str, flag: bool, bias: Option<f32>| {
        let from = changed(&dir, "marian", name, &[]);
        set(&from.join(FILE), "renormalize_logits", json!(flag));
        if let Some(bias) = bias {
            let config: Value = serde_json::from_str(&fs::read_to_string(from.join("config.json")).unwrap()).unwrap();
            let pad = config["pad_token_id"].as_u64().unwrap() as usize;
            change_weights(&from, |all| all.get_mut("final_logits_bias").unwrap().values[pad] = bias);
        }
        let run = format!("{name}-run");
        succeed(dir.path(), &["import", "marian", name, "--run", &run]);
        succeed(dir.path(), &["translate", "--run", &run, "--input", "in.txt", "--json"])
    };
    let plain = scores("plain", true, None);
    assert_eq!(scores("raised", true, Some(20.0)), plain);
    assert_ne!(scores("unset", false, Some(20.0)), plain, "else the number says nothing");
}

#[test]
fn settings_that_the_search_does_not_have_are_refused_by_name() {
    let dir = TempDir::new().unwrap();
    let settings = [
        ("no_repeat_ngram_size", json!(3)),
        ("encoder_no_repeat_ngram_size", json!(2)),
        ("repetition_penalty", json!(1.25)),
        ("encoder_repetition_penalty", json!(1.5)),
        ("diversity_penalty", json!(0.5)),
        ("num_beam_groups", json!(3)),
        ("min_length", json!(2)),
        ("min_new_tokens", json!(1)),
        ("max_new_tokens", json!(20)),
        ("bad_words_ids", json!([[93], [5]])),
        ("forced_bos_token_id", json!(2)),
        ("suppress_tokens", json!([4])),
        ("begin_suppress_tokens", json!([4])),
        ("sequence_bias", json!([[[4], -1.0]])),
        ("force_words_ids", json!([[4]])),
        ("constraints", json!([])),
        ("exponential_decay_length_penalty", json!([5, 1.5])),
        ("do_sample", json!(true)),
    ];
    for (key, value) in settings {
        let from = changed(&dir, "marian", key, &[]);
        set(&from.join(FILE), key, value.clone());
        let said = fail(dir.path(), &["import", "marian", key, "--run", "out"]);
        assert_says(&said, &[FILE, &format!("has {key} = {value}, "), &format!("remove {key} to import the model")]);
    }
    // Folders of old versions have them in config.json.
    let from = changed(&dir, "marian", "old", &[]);
    fs::remove_file(from.join(FILE)).unwrap();
    set(&from.join("config.json"), "no_repeat_ngram_size", json!(3));
    let said = fail(dir.path(), &["import", "marian", "old", "--run", "out"]);
    assert_says(&said, &["config.json: has no_repeat_ngram_size = 3"]);
    assert!(!dir.path().join("out").exists(), "nothing is left of what was refused");
}

#[test]
fn settings_that_change_nothing_are_taken() {
    let dir = TempDir::new().unwrap();
    let from = changed(&dir, "marian", "neutral", &[]);
    for (key, value) in [
        ("no_repeat_ngram_size", json!(0)),
        ("repetition_penalty", json!(1.0)),
        ("encoder_repetition_penalty", Value::Null),
        ("diversity_penalty", json!(0.0)),
        ("num_beam_groups", json!(1)),
        ("min_length", json!(0)),
        ("max_new_tokens", Value::Null),
        ("bad_words_ids", json!([[93]])),
        ("suppress_tokens", json!([])),
        ("do_sample", json!(false)),
    ] {
        set(&from.join(FILE), key, value);
    }
    succeed(dir.path(), &["import", "marian", "neutral", "--run", "run"]);
}
