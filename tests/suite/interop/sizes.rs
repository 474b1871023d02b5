//! Sizes in `config.json` that the parameters do not have: they are refused before there is a list of that length.

use super::changed;
use crate::training::{assert_says, finish_in_memory};
use tempfile::TempDir;

/// A table of so many words fits into no machine.
const HUGE: &str = "1000000000000";
/// More than a small model takes.
const GIBIBYTES: u64 = 4;

/// What is said of the golden model of a kind where numbers of its config are others, in little memory.
fn refused(kind: &str, numbers: &[(&str, u64, &str)]) -> String {
    let dir = TempDir::new().unwrap();
    let texts: Vec<[String; 2]> =
        numbers.iter().map(|(key, old, new)| [format!("\"{key}\": {old}"), format!("\"{key}\": {new}")]).collect();
    let changes: Vec<(&str, &str, &str)> =
        texts.iter().map(|[old, new]| ("config.json", old.as_str(), new.as_str())).collect();
    changed(&dir, kind, "model", &changes);
    let arguments = ["import", kind, "model", "--run", "out"];
    let said = finish_in_memory(dir.path(), GIBIBYTES, &arguments).failure(&arguments);
    assert!(!dir.path().join("out").exists(), "nothing is left of what was refused");
    said
}

#[test]
fn a_vocabulary_that_the_table_does_not_have_is_refused() {
    let gpt2 = refused("gpt2", &[("vocab_size", 308, HUGE)]);
    assert_says(&gpt2, &["model.safetensors", "wte.weight", "[308, 16]", "vocab_size = 1000000000000"]);
    let bert = refused("bert", &[("vocab_size", 130, HUGE)]);
    assert_says(&bert, &["model.safetensors", "word_embeddings.weight", "[130, 16]", "vocab_size = 1000000000000"]);
    let marian = refused("marian", &[("vocab_size", 94, HUGE), ("decoder_vocab_size", 94, HUGE)]);
    assert_says(&marian, &["model.safetensors", "model.shared.weight", "[94, 18]", "vocab_size = 1000000000000"]);
}

#[test]
fn other_sizes_that_the_parameters_do_not_have_are_refused() {
    let layers = refused("bert", &[("num_hidden_layers", 2, HUGE)]);
    assert_says(&layers, &["model.safetensors", "too few for num_hidden_layers = 1000000000000"]);
    let positions = refused("bert", &[("max_position_embeddings", 40, "0")]);
    assert_says(&positions, &["config.json", "max_position_embeddings = 0"]);
    let width = refused("marian", &[("d_model", 18, HUGE)]);
    assert_says(&width, &["model.safetensors", "model.shared.weight", "d_model = 1000000000000"]);
}
