//! Language models as transformers reads them: GPT-2, GPT-NeoX or LLaMA, whichever is built as they are.

mod architecture;

use super::NEVER;
use super::hugging_face::{activation_name, json_file, transposed};
use super::shipped::{Files, Shipped, Texts, check_mixers};
use crate::data::tokenizer::{BOS, EOS, PAD};
use crate::error::Result;
use crate::layers::feed_forward::Activation;
use crate::layers::norm::NormKind;
use crate::layers::position::{PositionConfig, sinusoids};
use crate::models::transformer::NormPosition;
use crate::models::weights::{self, Weight, Weights};
use crate::models::{DecoderOnlyConfig, embedding_scale};
use architecture::{Architecture, is_tied, n_positions};
use serde_json::json;
use std::collections::{BTreeMap, HashMap};

/// What a refusal says would do.
const FITS: &str = "a language model goes out as GPT-2 (learned, sinusoidal or no positions) or GPT-NeoX (rotary), both with layer \
                    normalization and without gates, or as LLaMA (rotary, rms, swiglu)";

/// The folder of a language model: its files, and how they are used.
///
/// # Errors
/// If no architecture has a place for all parts of the model.
pub(super) fn files(shipped: &Shipped, config: &DecoderOnlyConfig) -> Result<(Files, String)> {
    let architecture = architecture(shipped, config)?;
    let never = never_written(shipped)?;
    let about = HashMap::from([("format".to_string(), "pt".to_string())]);
    let parameters = weights::to_safetensors(&parameters(shipped, config, architecture), &BTreeMap::new(), about)?;
    let n_positions = n_positions(config);
    let mut files = vec![
        ("model.safetensors", parameters),
        ("config.json", json_file(&architecture.config(shipped, config, n_positions))),
        (
            "generation_config.json",
            json_file(&json!({
                "do_sample": false, "max_length": n_positions, "suppress_tokens": never,
                "bos_token_id": EOS, "eos_token_id": EOS, "pad_token_id": PAD,
            })),
        ),
    ];
    let mut usage = format!("from transformers import {}", architecture.class());
    let texts = shipped.texts();
    let (import, ids, shown) = match texts {
        Texts::None(_) => (
            "import torch\n",
            format!("torch.tensor([[{EOS}, 4, 5]])    # those of a text"),
            "model.generate(ids, max_new_tokens=50)[0].tolist()",
        ),
        _ => (
            "",
            "tokenizer(\"...\", return_tensors=\"pt\").input_ids".to_string(),
            "tokenizer.decode(model.generate(ids, max_new_tokens=50)[0], skip_special_tokens=True)",
        ),
    };
    match texts {
        Texts::Library(more) => {
            files.extend(more);
            let about = json!({
                "tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": n_positions,
                "bos_token": "</s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>",
            });
            files.push(("tokenizer_config.json", json_file(&about)));
            usage += ", PreTrainedTokenizerFast\n\ntokenizer = PreTrainedTokenizerFast.from_pretrained(\".\")\n";
        }
        Texts::Pieces(_) => unreachable!("pieces of SentencePiece are those of translators"),
        Texts::None(reason) => {
            usage += &format!(
                "\n\n# There is no tokenizer.json: {reason}.\n# `POST /tokenize` of `lookback serve` gives the ids of a text; a text begins \
                 with the end of a line, {EOS}.\n"
            );
        }
    }
    usage = format!(
        "```python\n{import}{usage}model = {}.from_pretrained(\".\")\nids = {ids}\nprint({shown})\n```\n",
        architecture.class()
    );
    if !shipped.tokenizers.target().has_lines() {
        usage += "\nA text begins with `</s>`, the end of the line before it; writing stops at the end of the line. A prompt is one line.\n";
    }
    Ok((files, usage))
}

/// Which one the model is built as.
fn architecture(shipped: &Shipped, config: &DecoderOnlyConfig) -> Result<Architecture> {
    if config.reads_source {
        return Err(shipped.refuse("model.reads_source", "true", FITS));
    }
    check_mixers(shipped, "model.mixer", &config.mixer)?;
    if config.norm_position == NormPosition::Post {
        return Err(shipped.refuse("model.norm_position", "post", "norms have to stand before the sublayers"));
    }
    let architecture = match (&config.positions, config.norm) {
        (PositionConfig::Rotary { .. }, NormKind::Rms) => Architecture::Llama,
        (PositionConfig::Rotary { .. }, NormKind::Layer) => Architecture::GptNeoX,
        (PositionConfig::Learned { .. } | PositionConfig::Sinusoidal {} | PositionConfig::None {}, NormKind::Layer) => {
            Architecture::Gpt2
        }
        (positions, NormKind::Layer) => return Err(shipped.refuse("model.positions", positions.name(), FITS)),
        (_, NormKind::Rms) => return Err(shipped.refuse("model.norm", "rms", FITS)),
    };
    let is_gated = config.activation == Activation::Swiglu;
    if is_gated != (architecture == Architecture::Llama) {
        return Err(shipped.refuse("model.activation", activation_name(config.activation).unwrap_or("swiglu"), FITS));
    }
    if config.n_key_value_heads() != config.n_heads && architecture != Architecture::Llama {
        return Err(shipped.refuse("model.n_key_value_heads", &config.n_key_value_heads().to_string(), FITS));
    }
    Ok(architecture)
}

/// Words that are never written: padding, the start symbol, and those that an import has given a score to that effect.
///
/// # Errors
/// If words have other numbers added to their scores.
fn never_written(shipped: &Shipped) -> Result<Vec<u32>> {
    let bias = shipped.output_bias(&[PAD, BOS]);
    if bias[EOS as usize..].iter().any(|value| *value != 0.0 && *value != NEVER) {
        let (key, value) =
            if is_tied(shipped) { ("model.output_bias", "true") } else { ("model.tied_embeddings", "none") };
        let reason = "it adds no number of its own to the score of each word: train with model.tied_embeddings = \"target-output\" and \
                      without model.output_bias";
        return Err(shipped.refuse(key, value, reason));
    }
    Ok((0..bias.len() as u32).filter(|word| bias[*word as usize] == NEVER).collect())
}

/// The parameters under their names.
fn parameters(shipped: &Shipped, config: &DecoderOnlyConfig, architecture: Architecture) -> Weights {
    let ours = &shipped.weights;
    let mut theirs = Weights::new();
    let names = Names::of(architecture);
    for i in 0..config.n_layers {
        let (from, to) = (format!("layers.{}", shipped.layer_of("layers", i)), format!("{}.{i}", names.layers));
        let linear = |own: &str| {
            let part = |what: &str| ours[&format!("{from}.{own}.{what}")].clone();
            (part("weight"), part("bias"))
        };
        // Matrices of GPT-2 have a row for each input, as ours have; the others a row for each output.
        let mut put = |name: &str, (weight, bias): (Weight, Weight)| {
            let weight = if architecture == Architecture::Gpt2 { weight } else { transposed(&weight) };
            theirs.insert(format!("{to}.{name}.weight"), weight);
            theirs.insert(format!("{to}.{name}.bias"), bias);
        };
        let joined = linear("attention.query_key_value");
        match architecture {
            Architecture::Gpt2 => put("attn.c_attn", joined),
            Architecture::GptNeoX => put("attention.query_key_value", by_head(joined, config.n_heads)),
            Architecture::Llama => {
                let d_head = config.d_model / config.n_heads;
                let n_kept = config.n_key_value_heads() * d_head;
                let mut first = 0;
                for (name, n) in [("q", config.d_model), ("k", n_kept), ("v", n_kept)] {
                    put(&format!("self_attn.{name}_proj"), columns(&joined, (first..first + n).collect()));
                    first += n;
                }
            }
        }
        put(names.attention_output, linear("attention.output"));
        let inner = linear("feed_forward.inner");
        match names.gate {
            Some(gate) => {
                let n = config.d_feed_forward;
                put(gate, columns(&inner, (0..n).collect()));
                put(names.inner, columns(&inner, (n..2 * n).collect()));
            }
            None => put(names.inner, inner),
        }
        put(names.outer, linear("feed_forward.outer"));
        for (own, name) in [("attention_residual", names.first_norm), ("feed_forward_residual", names.second_norm)] {
            norm(ours, &format!("{from}.{own}.norm"), 1.0, &format!("{to}.{name}"), &mut theirs);
        }
    }
    // They do not multiply words by the root of the width: the table does, and where that scores words too, the last norm divides.
    let scale = embedding_scale(config.scales_embeddings, config.d_model) as f32;
    let mut table = ours["target_embedding.weight"].clone();
    table.values.iter_mut().for_each(|value| *value *= scale);
    theirs.insert(names.table.into(), table);
    norm(ours, "norm", if is_tied(shipped) { scale } else { 1.0 }, names.last_norm, &mut theirs);
    if let Some(weight) = ours.get("output.projection.weight") {
        theirs.insert(names.output.into(), transposed(weight));
    }
    if architecture == Architecture::Gpt2 {
        let (n, d) = (n_positions(config), config.d_model);
        let values = match config.positions {
            PositionConfig::Learned { .. } => ours["position.learned.weight"].values.clone(),
            PositionConfig::Sinusoidal {} => sinusoids(0, n, d),
            _ => vec![0.0; n * d],
        };
        theirs.insert("transformer.wpe.weight".into(), Weight { shape: vec![n, d], values });
    }
    theirs
}

/// A normalization, divided by a number.
fn norm(ours: &Weights, from: &str, divisor: f32, to: &str, theirs: &mut Weights) {
    for (own, name) in [("gamma", "weight"), ("beta", "bias")] {
        // That of root mean squares has no shift.
        if let Some(weight) = ours.get(&format!("{from}.{own}")) {
            let mut weight = weight.clone();
            weight.values.iter_mut().for_each(|value| *value /= divisor);
            theirs.insert(format!("{to}.{name}"), weight);
        }
    }
}

/// Some columns of a linear layer, in that order.
fn columns((weight, bias): &(Weight, Weight), chosen: Vec<usize>) -> (Weight, Weight) {
    let [n_rows, n_columns] = [weight.shape[0], weight.shape[1]];
    let rows = weight.values.chunks(n_columns);
    let values = rows.flat_map(|row| chosen.iter().map(|column| row[*column])).collect();
    let bias = Weight { shape: vec![chosen.len()], values: chosen.iter().map(|column| bias.values[*column]).collect() };
    (Weight { shape: vec![n_rows, chosen.len()], values }, bias)
}

/// All queries, all keys, all values: sorted by head, a head's queries, keys and values behind each other.
fn by_head(joined: (Weight, Weight), n_heads: usize) -> (Weight, Weight) {
    let n = joined.0.shape[1];
    let (d, d_head) = (n / 3, n / 3 / n_heads);
    let order = (0..n).map(|column| {
        let (head, part, place) = (column / (3 * d_head), column / d_head % 3, column % d_head);
        part * d + head * d_head + place
    });
    columns(&joined, order.collect())
}

/// What the parts are called.
struct Names {
    layers: &'static str,
    attention_output: &'static str,
    gate: Option<&'static str>,
    inner: &'static str,
    outer: &'static str,
    first_norm: &'static str,
    second_norm: &'static str,
    last_norm: &'static str,
    table: &'static str,
    output: &'static str,
}

impl Names {
    fn of(architecture: Architecture) -> Self {
        match architecture {
            Architecture::Gpt2 => Self {
                layers: "transformer.h",
                attention_output: "attn.c_proj",
                gate: None,
                inner: "mlp.c_fc",
                outer: "mlp.c_proj",
                first_norm: "ln_1",
                second_norm: "ln_2",
                last_norm: "transformer.ln_f",
                table: "transformer.wte.weight",
                output: "lm_head.weight",
            },
            Architecture::GptNeoX => Self {
                layers: "gpt_neox.layers",
                attention_output: "attention.dense",
                gate: None,
                inner: "mlp.dense_h_to_4h",
                outer: "mlp.dense_4h_to_h",
                first_norm: "input_layernorm",
                second_norm: "post_attention_layernorm",
                last_norm: "gpt_neox.final_layer_norm",
                table: "gpt_neox.embed_in.weight",
                output: "embed_out.weight",
            },
            Architecture::Llama => Self {
                layers: "model.layers",
                attention_output: "self_attn.o_proj",
                gate: Some("mlp.gate_proj"),
                inner: "mlp.up_proj",
                outer: "mlp.down_proj",
                first_norm: "input_layernorm",
                second_norm: "post_attention_layernorm",
                last_norm: "model.norm",
                table: "model.embed_tokens.weight",
                output: "lm_head.weight",
            },
        }
    }
}
