//! Language models as transformers reads them. `tests/clients/language_models.py` asks the real program for the words.

use super::exports::{json_file, parameters, turned, weights};
use super::{Golden, imported};
use crate::training::{assert_says, fail, succeed};
use lookback::models::weights::{Weight, Weights};
use serde_json::{Value, json};
use std::fs;
use tempfile::TempDir;

const CONFIG: &str = r#"
[data.text]
train = ["text.txt"]
valid = ["text.txt"]
context = 12

[tokenizer]
kind = "char"

[model]
kind = "decoder-only"
reads_source = false
d_model = 16
d_feed_forward = 12
n_heads = 4
n_layers = 2
tied_embeddings = "target-output"

[training]
max_updates = 2
batch_tokens = 48
"#;

/// The folder of a language model that was trained with such settings.
fn trained(settings: &[&str]) -> TempDir {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("text.txt"), "the dog looks back\nthe tide goes out\n".repeat(20)).unwrap();
    fs::write(dir.path().join("text.toml"), CONFIG).unwrap();
    let start = ["train", "text.toml", "--run", "run", "--dashboard", "none"];
    succeed(dir.path(), &[&start[..], &super::with_set(settings)].concat());
    dir
}

fn exported(dir: &TempDir) -> (Value, Weights) {
    succeed(dir.path(), &["export", "huggingface", "--run", "run", "--out", "out"]);
    (json_file(&dir.path().join("out/config.json")), weights(&dir.path().join("out/model.safetensors")))
}

fn times(weight: &Weight, factor: f32) -> Vec<f32> {
    weight.values.iter().map(|value| value * factor).collect()
}

/// Some rows of a matrix.
fn rows(matrix: &Weight, rows: impl IntoIterator<Item = usize>) -> Vec<f32> {
    let n = matrix.shape[1];
    rows.into_iter().flat_map(|row| matrix.values[row * n..(row + 1) * n].to_vec()).collect()
}

#[test]
fn gpt2_goes_out_as_it_came_in() {
    let (golden, dir) = (Golden::read(), imported());
    let (config, theirs) = exported(&dir);
    let original = weights(&super::folder("gpt2").join("model.safetensors"));
    assert_eq!((&config["architectures"], &config["n_positions"]), (&json!(["GPT2LMHeadModel"]), &json!(40)));
    assert_eq!((&config["eos_token_id"], &config["tie_word_embeddings"]), (&json!(2), &json!(true)));
    for (name, weight) in &original {
        let found = &theirs[name];
        if name != "transformer.wte.weight" {
            assert_eq!(found, weight, "{name}");
            continue;
        }
        for id in 0..weight.shape[0] {
            assert_eq!(rows(found, [golden.ours(id as u32) as usize]), rows(weight, [id]), "word {id}");
        }
    }
    assert_eq!(theirs.len(), original.len());
    let generation = json_file(&dir.path().join("out/generation_config.json"));
    assert_eq!(generation["suppress_tokens"], json!([0, 1, 3]), "what GPT-2 does not have is never written");
    // A prompt of bytes begins with itself.
    let tokenizer = tokenizers::Tokenizer::from_file(dir.path().join("out/tokenizer.json")).unwrap();
    for super::Text { text, ids } in &golden.texts {
        assert_eq!(tokenizer.encode(text.as_str(), true).unwrap().get_ids(), golden.all_ours(ids), "{text:?}");
    }
}

#[test]
fn rotary_positions_make_a_gpt_neox_whose_heads_stand_together() {
    let dir = trained(&["model.share_layers=true"]);
    let (config, theirs) = exported(&dir);
    let ours = parameters(dir.path());
    assert_eq!(config["architectures"], json!(["GPTNeoXForCausalLM"]));
    assert_eq!((&config["use_parallel_residual"], &config["num_hidden_layers"]), (&json!(false), &json!(2)));
    assert_eq!(config["rope_parameters"]["rope_theta"], json!(10_000.0));
    // Of each head its queries, keys and values; layers are shared.
    let own = turned(&ours["layers.0.attention.query_key_value.weight"]);
    let order = (0..4).flat_map(|head| (0..3).flat_map(move |part| (0..4).map(move |i| part * 16 + head * 4 + i)));
    for layer in 0..2 {
        let name = format!("gpt_neox.layers.{layer}.attention.query_key_value");
        assert_eq!(theirs[&format!("{name}.weight")].values, rows(&own, order.clone()));
        let bias = &ours["layers.0.attention.query_key_value.bias"].values;
        assert_eq!(theirs[&format!("{name}.bias")].values, order.clone().map(|i| bias[i]).collect::<Vec<f32>>());
    }
    // The root of the width is 4: the table has it, and the last norm takes it out of the scores.
    assert_eq!(theirs["gpt_neox.embed_in.weight"].values, times(&ours["target_embedding.weight"], 4.0));
    assert_eq!(theirs["gpt_neox.final_layer_norm.weight"].values, times(&ours["norm.gamma"], 0.25));
    assert_eq!(theirs["gpt_neox.final_layer_norm.bias"].values, times(&ours["norm.beta"], 0.25));
    assert!(!theirs.contains_key("embed_out.weight"), "the table is the output's too");
    let tokenizer = tokenizers::Tokenizer::from_file(dir.path().join("out/tokenizer.json")).unwrap();
    assert_eq!(tokenizer.encode("the", true).unwrap().get_ids()[0], 2, "a text begins at the end of a line");
    let card = fs::read_to_string(dir.path().join("out/README.md")).unwrap();
    assert_says(&card, &["GPTNeoXForCausalLM.from_pretrained", "A text begins with `</s>`"]);
}

#[test]
fn root_mean_squares_and_gates_make_a_llama() {
    let dir = trained(&["model.norm=\"rms\"", "model.activation=\"swiglu\"", "model.n_key_value_heads=2"]);
    let (config, theirs) = exported(&dir);
    let ours = parameters(dir.path());
    assert_eq!(config["architectures"], json!(["LlamaForCausalLM"]));
    assert_eq!((&config["num_key_value_heads"], &config["mlp_bias"]), (&json!(2), &json!(true)));
    let (own, bias) = (
        turned(&ours["layers.1.attention.query_key_value.weight"]),
        &ours["layers.1.attention.query_key_value.bias"].values,
    );
    for (part, range) in [("q", 0..16), ("k", 16..24), ("v", 24..32)] {
        let name = format!("model.layers.1.self_attn.{part}_proj");
        assert_eq!(theirs[&format!("{name}.weight")].values, rows(&own, range.clone()), "{name}");
        assert_eq!(theirs[&format!("{name}.bias")].values, bias[range]);
    }
    let inner = turned(&ours["layers.0.feed_forward.inner.weight"]);
    assert_eq!(theirs["model.layers.0.mlp.gate_proj.weight"].values, rows(&inner, 0..12));
    assert_eq!(theirs["model.layers.0.mlp.up_proj.weight"].values, rows(&inner, 12..24));
    assert!(!theirs.contains_key("model.norm.bias"));
}

#[test]
fn a_language_model_that_no_architecture_has_a_place_for_is_refused() {
    let refused = |settings: &[&str]| {
        let dir = trained(settings);
        let said = fail(dir.path(), &["export", "huggingface", "--run", "run", "--out", "out"]);
        assert!(!dir.path().join("out").exists());
        said
    };
    let untied = refused(&["model.tied_embeddings=\"none\""]);
    assert_says(&untied, &["model.tied_embeddings = none", "adds no number", "target-output"]);
    assert_says(&refused(&["model.output_bias=true"]), &["model.output_bias = true"]);
    assert_says(&refused(&["model.positions={ kind = \"alibi\" }"]), &["model.positions = alibi", "GPT-NeoX"]);
    assert_says(&refused(&["model.norm=\"rms\""]), &["model.activation = gelu", "LLaMA"]);
    assert_says(
        &refused(&["model.mixer={ kind = \"min-gru\" }", "model.positions={ kind = \"none\" }"]),
        &["model.mixer"],
    );
    assert_says(&refused(&["model.norm_position=\"post\""]), &["model.norm_position = post"]);
}

#[test]
fn a_card_without_a_tokenizer_asks_for_token_ids() {
    let dir = trained(&["tokenizer={ kind = \"word\" }"]);
    exported(&dir);
    assert!(!dir.path().join("out/tokenizer.json").exists());
    let card = fs::read_to_string(dir.path().join("out/README.md")).unwrap();
    assert_says(&card, &["import torch\nfrom transformers import GPTNeoXForCausalLM\n", "There is no tokenizer.json"]);
    assert_says(&card, &["ids = torch.tensor([[2, 4, 5]])", "print(model.generate(ids"]);
    assert!(!card.contains("tokenizer("), "{card}");
}
