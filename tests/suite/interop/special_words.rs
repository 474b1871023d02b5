//! Words that are spelled like special tokens, in tokenizers that were trained before such words were left out.

use crate::training::{TRANSFORMER, assert_says, change_tokenizer, fail, succeed, write_tiny};
use lookback::data::tokenizer::WordConfig;
use lookback::data::{Pair, TokenizerConfig, Tokenizers};
use tempfile::TempDir;

#[test]
fn an_old_tokenizer_with_such_a_word_is_not_written_for_hugging_face() {
    let whole = TokenizerConfig::Word(WordConfig { split_punctuation: false, ..WordConfig::default() });
    let new = Tokenizers::train(&[Pair::new("dog cat", "chien chat")], &whole).unwrap();
    assert!(new.for_hugging_face(false).is_ok());
    for (word, special) in [("\"dog\"", "<pad>"), ("\"chat\"", "</s>")] {
        let old = new.to_json().replace(word, &format!("\"{special}\""));
        let old = Tokenizers::from_json(old.as_bytes()).expect("old files keep loading");
        let reason = old.for_hugging_face(false).unwrap_err();
        assert_says(&reason, &["spelled like the special token", special]);
    }
}

#[test]
fn an_old_tokenizer_with_such_a_word_is_not_written_for_ctranslate2() {
    let dir = TempDir::new().unwrap();
    write_tiny(dir.path(), TRANSFORMER);
    let settings = ["--set", "training.max_updates=2", "--set", "tokenizer.split_punctuation=false"];
    succeed(dir.path(), &[&["train", "tiny.toml", "--run", "run"][..], &settings].concat());
    change_tokenizer(&dir.path().join("run"), |text| {
        let mut tokenizer: serde_json::Value = serde_json::from_str(&text).unwrap();
        tokenizer["source"]["vocabulary"][0] = "<unk>".into();
        tokenizer.to_string()
    });
    let said = fail(dir.path(), &["export", "ctranslate2", "--run", "run", "--out", "out"]);
    assert_says(&said, &["run: ", "spelled like the special token <unk>", "train the model again"]);
    assert!(!dir.path().join("out").exists());
}
