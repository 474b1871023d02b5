//! Transformers as models of CTranslate2, an engine in C++ with kernels of 8 bits.

use super::shipped::{Shipped, Texts, check_plain};
use crate::data::tokenizer::{BOS, PAD, SPECIALS, Tokenizer};
use crate::error::Result;
use crate::layers::feed_forward::Activation;
use crate::layers::norm::EPSILON;
use crate::layers::position::{PositionConfig, sinusoids};
use crate::models::TransformerConfig;
use crate::models::transformer::NormPosition;
use crate::models::weights::{Weight, Weights};
use crate::training::ExportOptions;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;

/// The version of the format, and that of the description of Transformers in it.
const BINARY_VERSION: u32 = 6;
const REVISION: u32 = 7;
/// The score that is added to that of a word which never follows.
const NEVER: f32 = -1e9;
/// Positions that are written out where the scheme has no end.
const N_POSITIONS: usize = 2048;

/// A variable of the file.
struct Variable {
    shape: Vec<usize>,
    values: Values,
}

enum Values {
    F32(Vec<f32>),
    I8(Vec<i8>),
    I16(i16),
    I32(i32),
}

impl Values {
    /// The number of the kind, in the order of `include/ctranslate2/types.h`.
    fn kind(&self) -> u8 {
        match self {
            Self::F32(_) => 0,
            Self::I8(_) => 1,
            Self::I16(_) => 2,
            Self::I32(_) => 3,
        }
    }

    fn bytes(&self) -> Vec<u8> {
        match self {
            Self::F32(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
            Self::I8(values) => values.iter().map(|value| *value as u8).collect(),
            Self::I16(value) => value.to_le_bytes().to_vec(),
            Self::I32(value) => value.to_le_bytes().to_vec(),
        }
    }
}

/// The variables of a model by name, and names that stand for another.
struct Variables {
    all: BTreeMap<String, Variable>,
    aliases: Vec<(String, String)>,
    /// Whether matrices are written in 8 bits.
    int8: bool,
}

impl Variables {
    fn scalar(&mut self, name: String, values: Values) {
        self.all.insert(name, Variable { shape: Vec::new(), values });
    }

    fn flag(&mut self, name: String, is_set: bool) {
        self.scalar(name, Values::I8(vec![i8::from(is_set)]));
    }

    fn floats(&mut self, name: String, weight: Weight) {
        self.all.insert(name, Variable { shape: weight.shape, values: Values::F32(weight.values) });
    }

    /// A matrix `[n_output, n_input]`, or a table with a row for each word. In 8 bits each row has a scale, by which the numbers were
    /// multiplied.
    fn matrix(&mut self, name: String, weight: Weight) {
        if !self.int8 {
            return self.floats(name, weight);
        }
        let n_columns = weight.shape[1];
        let mut scales = Vec::with_capacity(weight.shape[0]);
        let mut values = Vec::with_capacity(weight.values.len());
        for row in weight.values.chunks(n_columns) {
            let largest = row.iter().fold(0.0f32, |largest, value| largest.max(value.abs()));
            let scale = if largest == 0.0 { 1.0 } else { 127.0 / largest };
            scales.push(scale);
            values.extend(row.iter().map(|value| (value * scale).round_ties_even() as i8));
        }
        let n = scales.len();
        self.all.insert(format!("{name}_scale"), Variable { shape: vec![n], values: Values::F32(scales) });
        self.all.insert(name, Variable { shape: weight.shape, values: Values::I8(values) });
    }

    /// The file `model.bin`.
    fn to_bytes(&self) -> Vec<u8> {
        let mut file = Vec::new();
        let number = |file: &mut Vec<u8>, n: usize| {
            file.extend(u32::try_from(n).expect("fewer than 4 billion numbers and bytes").to_le_bytes());
        };
        let text = |file: &mut Vec<u8>, text: &str| {
            file.extend((text.len() as u16 + 1).to_le_bytes());
            file.extend(text.as_bytes());
            file.push(0);
        };
        number(&mut file, BINARY_VERSION as usize);
        text(&mut file, "TransformerSpec");
        number(&mut file, REVISION as usize);
        number(&mut file, self.all.len());
        for (name, variable) in &self.all {
            text(&mut file, name);
            file.push(variable.shape.len() as u8);
            variable.shape.iter().for_each(|n| number(&mut file, *n));
            file.push(variable.values.kind());
            let bytes = variable.values.bytes();
            number(&mut file, bytes.len());
            file.extend(bytes);
        }
        number(&mut file, self.aliases.len());
        for (alias, name) in &self.aliases {
            text(&mut file, alias);
            text(&mut file, name);
        }
        file
    }
}

/// Writes the Transformer of `run` as a model folder of CTranslate2 into `out`, which must not exist yet or be empty. Returns the
/// bytes written.
///
/// Padding and the start symbol get a score by which they are never written; everything else is as it is here.
///
/// # Errors
/// If the run has no whole checkpoint, the model has a part for which CTranslate2 has no place, or `out` holds something.
pub fn export_ctranslate2(
    run: &crate::training::Run,
    out: &Path,
    options: &ExportOptions,
    warn: impl FnOnce(String),
) -> Result<u64> {
    let shipped = Shipped::open(run, out, options, "CTranslate2", warn)?;
    let config = shipped.transformer()?;
    check(&shipped, config)?;
    let variables = variables(&shipped, config, options.int8);
    let file =
        |value: serde_json::Value| (serde_json::to_string_pretty(&value).expect("plain data") + "\n").into_bytes();
    let about = json!({
        "add_source_bos": false,
        "add_source_eos": true,
        "bos_token": SPECIALS[BOS as usize],
        "decoder_start_token": SPECIALS[BOS as usize],
        "eos_token": SPECIALS[2],
        "layer_norm_epsilon": EPSILON,
        "unk_token": SPECIALS[3],
    });
    let words = |tokenizer: &Tokenizer| {
        let all = 0..tokenizer.vocab_size() as u32;
        file(all.map(|id| tokenizer.token(id)).collect())
    };
    let mut files = vec![("model.bin", variables.to_bytes()), ("config.json", file(about))];
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
                     text.\nwords = json.load(open(\"{words}\"))\n"
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

/// Refuses what CTranslate2 has no place for.
fn check(shipped: &Shipped, config: &TransformerConfig) -> Result<()> {
    check_plain(shipped, config)?;
    for (key, positions) in
        [("model.positions", &config.positions), ("model.decoder_positions", config.decoder_positions())]
    {
        let name = match positions {
            PositionConfig::Sinusoidal {}
            | PositionConfig::Learned { .. }
            | PositionConfig::Rotary { .. }
            | PositionConfig::None {} => continue,
            PositionConfig::Alibi {} => "alibi",
            PositionConfig::HardAlibi { .. } => "hard-alibi",
            PositionConfig::T5 { .. } => "t5",
            PositionConfig::Shaw { .. } => "shaw",
        };
        return Err(shipped.refuse(key, name, "there are sinusoidal, learned, rotary and none"));
    }
    Ok(())
}

fn variables(shipped: &Shipped, config: &TransformerConfig, int8: bool) -> Variables {
    let weights = &shipped.weights;
    let mut variables = Variables { all: BTreeMap::new(), aliases: Vec::new(), int8 };
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
        let scale = if config.scales_embeddings { (config.d_model as f32).sqrt() } else { 1.0 };
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
        None => variables.aliases.push(("encoder/embeddings_0/weight".into(), "decoder/embeddings/weight".into())),
    }
    let n_words = weights["target_embedding.weight"].shape[0];
    match weights.get("output.projection.weight") {
        Some(weight) => variables.matrix("decoder/projection/weight".into(), super::hugging_face::transposed(weight)),
        None => variables.aliases.push(("decoder/projection/weight".into(), "decoder/embeddings/weight".into())),
    }
    let bias = weights.get("output.projection.bias").or_else(|| weights.get("output.bias"));
    let mut bias = bias.cloned().unwrap_or_else(|| Weight { shape: vec![n_words], values: vec![0.0; n_words] });
    [PAD, BOS].iter().for_each(|word| bias.values[*word as usize] = NEVER);
    variables.floats("decoder/projection/bias".into(), bias);
    variables.aliases.sort();
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
    let (attention, residual) =
        if is_decoder { ("self_attention", "self_residual") } else { ("attention", "attention_residual") };
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
    let weight = super::hugging_face::transposed(&weights[&format!("{from}.weight")]);
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
