//! Transformers as models of CTranslate2, an engine in C++ with kernels of 8 bits.

mod binary;

use super::hugging_face::{json_file, transposed};
use super::shipped::{Shipped, Texts, check_plain, self_attention_parts, tokens};
use crate::data::tokenizer::{BOS, EOS, PAD, SPECIALS, UNK};
use crate::error::{Error, Result};
use crate::experiment::ExportOptions;
use crate::layers::feed_forward::Activation;
use crate::layers::norm::EPSILON;
use crate::layers::position::{PositionConfig, sinusoids};
use crate::models::transformer::NormPosition;
use crate::models::weights::{Weight, Weights};
use crate::models::{TransformerConfig, embedding_scale};
use binary::{Values, Variables};
use serde_json::json;
use std::path::Path;

/// Positions that are written out where the scheme has no end.
const N_POSITIONS: usize = 2048;

/// Writes the Transformer of `run` as a model folder of CTranslate2 into `out`, which must not exist yet or be empty. Returns the
/// bytes written.
///
/// Padding and the start symbol get a score by which they are never written; everything else is as it is here.
///
/// # Errors
/// If the run has no whole checkpoint, the model has a part for which CTranslate2 has no place, or `out` holds something.
pub fn export_ctranslate2(
    run: &crate::experiment::Run,
    out: &Path,
    options: &ExportOptions,
    warn: impl FnOnce(String),
) -> Result<u64> {
    let shipped = Shipped::open(run, out, options, "CTranslate2", warn)?;
    let config = shipped.transformer()?;
    check(&shipped, config)?;
    check_words(run, &shipped)?;
    let variables = variables(&shipped, config, options.int8);
    let about = json!({
        "add_source_bos": false,
        "add_source_eos": true,
        "bos_token": SPECIALS[BOS as usize],
        "decoder_start_token": SPECIALS[BOS as usize],
        "eos_token": SPECIALS[EOS as usize],
        "layer_norm_epsilon": EPSILON,
        "unk_token": SPECIALS[UNK as usize],
    });
    let words = |side| json_file(&tokens(side).collect());
    let mut files = vec![("model.bin", variables.to_bytes()), ("config.json", json_file(&about))];
    let tokenizers = &shipped.tokenizers;
    if tokenizers.is_shared() {
        files.push(("shared_vocabulary.json", words(tokenizers.target())));
    } else {
        files.push(("source_vocabulary.json", words(tokenizers.source())));
        files.push(("target_vocabulary.json", words(tokenizers.target())));
    }
    let texts = shipped.texts();
    let usage = usage(&texts, tokenizers.is_shared(), options.int8);
    if let Texts::Library(more) | Texts::Pieces(more) = texts {
        files.extend(more);
    }
    shipped.write(files, &usage)
}

/// How the folder is used.
fn usage(texts: &Texts, is_shared: bool, int8: bool) -> String {
    let kind = if int8 { "int8" } else { "float32" };
    let (before, tokens, after) = match texts {
        Texts::Library(files) => {
            let target = files.last().map_or("tokenizer.json", |(name, _)| name);
            (
                format!(
                    "from tokenizers import Tokenizer\n\nsource = Tokenizer.from_file(\"tokenizer.json\")\n\
                     target = Tokenizer.from_file(\"{target}\")\n"
                ),
                "source.encode(\"...\", add_special_tokens=False).tokens".to_owned(),
                "print(target.decode([target.token_to_id(token) for token in best]))".to_owned(),
            )
        }
        Texts::Pieces(_) => (
            "import sentencepiece\n\nsource = sentencepiece.SentencePieceProcessor(model_file=\"source.spm\")\n"
                .to_owned(),
            "source.encode(\"...\", out_type=str)".to_owned(),
            "print(\"\".join(best).replace(\"▁\", \" \").strip())".to_owned(),
        ),
        Texts::None(reason) => {
            let words = if is_shared { "shared_vocabulary.json" } else { "source_vocabulary.json" };
            (
                format!(
                    "import json\n\n# There is no tokenizer.json: {reason}.\n# `POST /tokenize` of `lookback serve` gives the ids of a \
                     text.\nids = [4, 5, 6]\nwords = json.load(open(\"{words}\"))\n"
                ),
                "[words[id] for id in ids]".to_owned(),
                "print(best)".to_owned(),
            )
        }
    };
    format!(
        "```python\nimport ctranslate2\n{before}translator = ctranslate2.Translator(\".\", compute_type=\"{kind}\")\ntokens = {tokens}\n\
         best = translator.translate_batch([tokens], beam_size=1)[0].hypotheses[0]\n{after}\n```\n"
    )
}

/// Refuses a vocabulary with a word that is spelled like a special token: CTranslate2 knows tokens by their spelling.
fn check_words(run: &crate::experiment::Run, shipped: &Shipped) -> Result<()> {
    let Some(token) = shipped.tokenizers.spelled_as_special() else { return Ok(()) };
    let message = format!(
        "has a word in its vocabulary that is spelled like the special token {token}, and CTranslate2 knows tokens by \
         their spelling; train the model again: a new tokenizer leaves such words out"
    );
    Err(Error::file(run.path(), message))
}

/// Refuses what CTranslate2 has no place for.
fn check(shipped: &Shipped, config: &TransformerConfig) -> Result<()> {
    check_plain(shipped, config)?;
    for (key, positions) in
        [("model.positions", &config.positions), ("model.decoder_positions", config.decoder_positions())]
    {
        match positions {
            PositionConfig::Sinusoidal {}
            | PositionConfig::Learned { .. }
            | PositionConfig::Rotary { .. }
            | PositionConfig::None {} => (),
            other => {
                return Err(shipped.refuse(key, other.name(), "there are sinusoidal, learned, rotary and none"));
            }
        }
    }
    Ok(())
}

fn variables(shipped: &Shipped, config: &TransformerConfig, int8: bool) -> Variables {
    let weights = &shipped.weights;
    let mut variables = Variables::new(int8);
    let is_post = config.norm_position == NormPosition::Post;
    for (side, n_layers, positions) in [
        ("encoder", config.n_encoder_layers, &config.positions),
        ("decoder", config.n_decoder_layers, config.decoder_positions()),
    ] {
        let is_decoder = side == "decoder";
        let activation = match config.activation {
            Activation::Relu => 0,
            Activation::GeluTanh => 1,
            Activation::Silu | Activation::Swiglu => 2,
            Activation::Gelu => 3,
        };
        variables.scalar(format!("{side}/activation"), Values::I8(vec![activation]));
        variables.scalar(format!("{side}/num_heads"), Values::I16(config.n_heads as i16));
        variables.flag(format!("{side}/pre_norm"), !is_post);
        let scale = embedding_scale(config.scales_embeddings, config.d_model) as f32;
        variables.scalar(format!("{side}/scale_embeddings"), Values::F32(vec![scale]));
        if is_decoder {
            // The layer and the heads whose weights are told as an alignment: the mean of all of the last layer.
            variables.scalar("decoder/alignment_layer".into(), Values::I16(-1));
            variables.scalar("decoder/alignment_heads".into(), Values::I16(0));
            ["alibi", "alibi_use_positive_positions", "scale_alibi", "start_from_zero_embedding"]
                .iter()
                .for_each(|flag| variables.flag(format!("decoder/{flag}"), false));
        } else {
            variables.scalar("encoder/embeddings_merge".into(), Values::I8(vec![0]));
        }
        if let Some(table) = position_table(config, positions, is_decoder, weights) {
            variables.floats(format!("{side}/position_encodings/encodings"), table);
        }
        for i in 0..n_layers {
            layer(&mut variables, shipped, config, side, i, positions);
        }
        if !is_post {
            norm(&mut variables, weights, &format!("{side}_norm"), &format!("{side}/layer_norm"));
        }
    }
    variables.matrix("decoder/embeddings/weight".into(), weights["target_embedding.weight"].clone());
    match weights.get("source_embedding.weight") {
        Some(table) => variables.matrix("encoder/embeddings_0/weight".into(), table.clone()),
        None => variables.alias("encoder/embeddings_0/weight", "decoder/embeddings/weight"),
    }
    match weights.get("output.projection.weight") {
        Some(weight) => variables.matrix("decoder/projection/weight".into(), transposed(weight)),
        None => variables.alias("decoder/projection/weight", "decoder/embeddings/weight"),
    }
    let bias = shipped.output_bias(&[PAD, BOS]);
    variables.floats("decoder/projection/bias".into(), Weight { shape: vec![bias.len()], values: bias });
    variables
}

/// The vectors that are added to embeddings, if any are.
fn position_table(
    config: &TransformerConfig,
    positions: &PositionConfig,
    is_decoder: bool,
    weights: &Weights,
) -> Option<Weight> {
    let d = config.d_model;
    match positions {
        PositionConfig::Rotary { .. } => None,
        PositionConfig::Learned { .. } => {
            let own = weights.get("decoder_position.learned.weight").filter(|_| is_decoder);
            own.or_else(|| weights.get("position.learned.weight")).cloned()
        }
        PositionConfig::Sinusoidal {} => {
            Some(Weight { shape: vec![N_POSITIONS, d], values: sinusoids(0, N_POSITIONS, d) })
        }
        // Without a table CTranslate2 would make one of its own.
        _ => Some(Weight { shape: vec![N_POSITIONS, d], values: vec![0.0; N_POSITIONS * d] }),
    }
}

fn layer(
    variables: &mut Variables,
    shipped: &Shipped,
    config: &TransformerConfig,
    side: &str,
    i: usize,
    positions: &PositionConfig,
) {
    let weights = &shipped.weights;
    let is_decoder = side == "decoder";
    let (from, to) = (format!("{side}.{}", shipped.layer_of(side, i)), format!("{side}/layer_{i}"));
    let [attention, residual] = self_attention_parts(is_decoder);
    let own = format!("{to}/self_attention");
    linear(variables, weights, &format!("{from}.{attention}.query_key_value"), &format!("{own}/linear_0"));
    linear(variables, weights, &format!("{from}.{attention}.output"), &format!("{own}/linear_1"));
    norm(variables, weights, &format!("{from}.{residual}.norm"), &format!("{own}/layer_norm"));
    if let PositionConfig::Rotary { base } = positions {
        variables.scalar(format!("{own}/rotary_dim"), Values::I32((config.d_model / config.n_heads) as i32));
        variables.flag(format!("{own}/rotary_interleave"), false);
        variables.scalar(format!("{own}/rotary_base"), Values::F32(vec![*base as f32]));
    }
    if is_decoder {
        let cross = format!("{to}/attention");
        for (part, place) in [("query", 0), ("key_value", 1), ("output", 2)] {
            linear(variables, weights, &format!("{from}.cross_attention.{part}"), &format!("{cross}/linear_{place}"));
        }
        norm(variables, weights, &format!("{from}.cross_residual.norm"), &format!("{cross}/layer_norm"));
    }
    norm(variables, weights, &format!("{from}.feed_forward_residual.norm"), &format!("{to}/ffn/layer_norm"));
    linear(variables, weights, &format!("{from}.feed_forward.outer"), &format!("{to}/ffn/linear_1"));
    let (inner, first) = (format!("{from}.feed_forward.inner"), format!("{to}/ffn/linear_0"));
    if config.activation != Activation::Swiglu {
        return linear(variables, weights, &inner, &first);
    }
    // The gate, and what goes through it.
    let (weight, bias) = parts(weights, &inner);
    for (half, name) in [(0, first.clone()), (1, format!("{first}_noact"))] {
        let [n, width] = [weight.shape[0] / 2, weight.shape[1]];
        let rows = weight.values[half * n * width..(half + 1) * n * width].to_vec();
        variables.matrix(format!("{name}/weight"), Weight { shape: vec![n, width], values: rows });
        let bias = bias.values[half * n..(half + 1) * n].to_vec();
        variables.floats(format!("{name}/bias"), Weight { shape: vec![n], values: bias });
    }
}

/// The matrix `[n_output, n_input]` and the bias of a linear layer.
fn parts(weights: &Weights, from: &str) -> (Weight, Weight) {
    let weight = transposed(&weights[&format!("{from}.weight")]);
    (weight, weights[&format!("{from}.bias")].clone())
}

fn linear(variables: &mut Variables, weights: &Weights, from: &str, to: &str) {
    let (weight, bias) = parts(weights, from);
    variables.matrix(format!("{to}/weight"), weight);
    variables.floats(format!("{to}/bias"), bias);
}

fn norm(variables: &mut Variables, weights: &Weights, from: &str, to: &str) {
    for part in ["gamma", "beta"] {
        // That of root mean squares has no shift.
        if let Some(weight) = weights.get(&format!("{from}.{part}")) {
            variables.floats(format!("{to}/{part}"), weight.clone());
        }
    }
}
