//! Tokens that were added to a vocabulary.

use super::exports::json_file;
use super::{Golden, change_json, change_weights, changed};
use crate::training::{assert_says, fail, succeed};
use lookback::data::{EOS, TokenStream, Tokenizers};
use lookback::experiment::Run;
use serde_json::{Map, Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const SEP: &str = "<|sep|>";
/// The first of them is a part of the second; the third has a letter that is also a byte in the alphabet of bytes.
const ADDED: [&str; 3] = [SEP, "<|sep|>+", "café"];
/// The number of words of the golden GPT-2.
const N_WORDS: usize = 308;

/// A token as a file has it.
fn added(id: usize, content: &str) -> Value {
    json!({
        "id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
        "special": true,
    })
}

/// The golden GPT-2 with [`ADDED`] behind its words.
fn gpt2(dir: &TempDir, name: &str) -> PathBuf {
    let from = changed(dir, "gpt2", name, &[]);
    change_json(&from.join("tokenizer.json"), |tokenizer| {
        let all = tokenizer["added_tokens"].as_array_mut().unwrap();
        all.extend(ADDED.iter().enumerate().map(|(i, content)| added(N_WORDS + i, content)));
    });
    change_json(&from.join("config.json"), |config| config["vocab_size"] = json!(N_WORDS + ADDED.len()));
    change_weights(&from, |weights| {
        let table = weights.get_mut("transformer.wte.weight").unwrap();
        table.shape[0] += ADDED.len();
        table.values.resize(table.shape[0] * table.shape[1], 0.5);
    });
    from
}

/// The same with the tokenizer in the files of old versions.
fn in_old_files(from: &Path) {
    let tokenizer = json_file(&from.join("tokenizer.json"));
    fs::remove_file(from.join("tokenizer.json")).unwrap();
    fs::write(from.join("vocab.json"), tokenizer["model"]["vocab"].to_string()).unwrap();
    let merges = tokenizer["model"]["merges"].as_array().unwrap();
    let line = |pair: &Value| format!("{} {}\n", pair[0].as_str().unwrap(), pair[1].as_str().unwrap());
    let merges: String = merges.iter().map(line).collect();
    fs::write(from.join("merges.txt"), format!("#version: 0.2\n{merges}")).unwrap();
    let ids: Map<String, Value> =
        ADDED.iter().enumerate().map(|(i, content)| ((*content).to_owned(), json!(N_WORDS + i))).collect();
    fs::write(from.join("added_tokens.json"), Value::Object(ids).to_string()).unwrap();
}

fn tokenizers(dir: &TempDir, run: &str) -> Tokenizers {
    Run::open(&dir.path().join(run)).unwrap().tokenizers().unwrap()
}

#[test]
fn an_added_token_of_gpt2_is_found_whole() {
    let (golden, dir) = (Golden::read(), TempDir::new().unwrap());
    let from = gpt2(&dir, "gpt2");
    succeed(dir.path(), &["import", "gpt2", "gpt2", "--run", "run"]);
    let ours = tokenizers(&dir, "run");
    let tokenizer = ours.target();
    let theirs = tokenizers::Tokenizer::from_file(from.join("tokenizer.json")).unwrap();
    for text in [
        "dog<|sep|>cat",
        "the dog <|sep|> looks",
        "<|sep|><|sep|>+<|sep|\n",
        "two<|sep|>+ and\n<|sep|>one\n",
        "a café, cafés",
        "none",
    ] {
        let ids = tokenizer.encode(text);
        assert_eq!(ids, golden.all_ours(theirs.encode(text, true).unwrap().get_ids()), "{text:?}");
        assert_eq!(tokenizer.decode(&ids), text);
        let lines: Vec<&str> = text.lines().collect();
        let whole: String = lines.iter().map(|line| format!("{line}\n")).collect();
        assert_eq!(TokenStream::new(&lines, tokenizer).ids[1..], tokenizer.encode(&whole), "{text:?}");
    }
    let sep = tokenizer.id(SEP).unwrap();
    assert_eq!(sep, golden.ours(N_WORDS as u32));
    assert_eq!(tokenizer.encode("dog<|sep|>cat").iter().filter(|id| **id == sep).count(), 1);
    assert_eq!(tokenizer.label(sep), SEP);
    assert!(!tokenizer.encode("dog<|endoftext|>cat").contains(&EOS), "the end is taken from no text");
    // Another program finds them in what is written for it, too.
    succeed(dir.path(), &["export", "huggingface", "--run", "run", "--out", "out"]);
    let written = tokenizers::Tokenizer::from_file(dir.path().join("out/tokenizer.json")).unwrap();
    for text in ["dog<|sep|>cat", "<|sep|><|sep|>+ café"] {
        assert_eq!(written.encode(text, true).unwrap().get_ids(), tokenizer.encode(text), "{text:?}");
    }
}

#[test]
fn added_tokens_of_gpt2_in_a_file_of_their_own_are_the_same() {
    let dir = TempDir::new().unwrap();
    gpt2(&dir, "one");
    in_old_files(&gpt2(&dir, "several"));
    for name in ["one", "several"] {
        succeed(dir.path(), &["import", "gpt2", name, "--run", &format!("{name}-run")]);
    }
    assert_eq!(tokenizers(&dir, "several-run").fingerprint(), tokenizers(&dir, "one-run").fingerprint());
}

#[test]
fn added_tokens_of_gpt2_that_are_not_found_as_they_stand_are_refused() {
    let dir = TempDir::new().unwrap();
    for rule in ["single_word", "lstrip", "rstrip"] {
        let from = gpt2(&dir, rule);
        change_json(&from.join("tokenizer.json"), |tokenizer| tokenizer["added_tokens"][1][rule] = json!(true));
        let said = fail(dir.path(), &["import", "gpt2", rule, "--run", "out"]);
        assert_says(&said, &["tokenizer.json", "the added token `<|sep|>`", &format!("{rule} = true")]);
        // The end is taken from no text, with or without spaces.
        change_json(&from.join("tokenizer.json"), |tokenizer| {
            tokenizer["added_tokens"][1][rule] = json!(false);
            tokenizer["added_tokens"][0][rule] = json!(true);
        });
        succeed(dir.path(), &["import", "gpt2", rule, "--run", &format!("{rule}-run")]);
    }
    let from = gpt2(&dir, "beyond");
    change_json(&from.join("tokenizer.json"), |tokenizer| tokenizer["added_tokens"][3]["id"] = json!(400));
    let said = fail(dir.path(), &["import", "gpt2", "beyond", "--run", "out"]);
    assert_says(&said, &["the added token `café` with the number 400", "the model has 311 words"]);
    assert!(!dir.path().join("out").exists(), "nothing is left of what was refused");
}

#[test]
fn added_tokens_of_bert_are_refused_but_for_its_own() {
    let dir = TempDir::new().unwrap();
    let from = changed(&dir, "bert", "one", &[]);
    change_json(&from.join("tokenizer.json"), |tokenizer| {
        tokenizer["added_tokens"].as_array_mut().unwrap().push(added(129, "[NEW]"));
    });
    let said = fail(dir.path(), &["import", "bert", "one", "--run", "out"]);
    assert_says(&said, &["the added token `[NEW]`", "[MASK]"]);
    // The same beside a list of lines.
    let from = changed(&dir, "bert", "lines", &[]);
    let tokenizer = json_file(&from.join("tokenizer.json"));
    let mut tokens: Vec<(u64, &String)> = Vec::new();
    for (token, id) in tokenizer["model"]["vocab"].as_object().unwrap() {
        tokens.push((id.as_u64().unwrap(), token));
    }
    tokens.sort_unstable();
    fs::write(from.join("vocab.txt"), tokens.iter().map(|(_, token)| format!("{token}\n")).collect::<String>())
        .unwrap();
    fs::remove_file(from.join("tokenizer.json")).unwrap();
    fs::write(from.join("added_tokens.json"), json!({ "[MASK]": 4, "[NEW]": 130 }).to_string()).unwrap();
    let said = fail(dir.path(), &["import", "bert", "lines", "--run", "out"]);
    assert_says(&said, &["the added token `[NEW]`", "added_tokens.json"]);
    assert!(!dir.path().join("out").exists(), "nothing is left of what was refused");
    fs::write(from.join("added_tokens.json"), json!({ "[MASK]": 4 }).to_string()).unwrap();
    succeed(dir.path(), &["import", "bert", "lines", "--run", "run"]);
}
