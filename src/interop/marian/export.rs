//! To a folder of MarianMT (norms behind the sublayers) or Pegasus (norms before them).

use super::{Kind, columns, parts};
use crate::data::tokenizer::{BOS, EOS, PAD, SPECIALS, UNK};
use crate::decoding::{DecodingConfig, EarlyStopping, StopRule};
use crate::error::Result;
use crate::interop::NEVER;
use crate::interop::hugging_face::{activation_name, json_file, transposed};
use crate::interop::shipped::{Files, Shipped, Texts, check_plain, tokens};
use crate::layers::norm::NormKind;
use crate::layers::position::PositionConfig;
use crate::models::transformer::NormPosition;
use crate::models::weights::{self, Weight, Weights};
use crate::models::{TiedEmbeddings, TransformerConfig};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};

/// The longest text that the table of positions there is made for.
const N_POSITIONS: usize = 1024;

/// The folder of a Transformer: its files, and how they are used.
///
/// # Errors
/// If the model has a part for which these have no place.
pub(in crate::interop) fn files(shipped: &Shipped, config: &TransformerConfig) -> Result<(Files, String)> {
    check(shipped, config)?;
    let form = Form::of(shipped, config);
    let about = HashMap::from([("format".to_string(), "pt".to_string())]);
    let parameters = weights::to_safetensors(&parameters(shipped, config, &form), &BTreeMap::new(), about)?;
    let mut files = vec![
        ("model.safetensors", parameters),
        ("config.json", json_file(&form.config(config))),
        ("generation_config.json", json_file(&generation(&shipped.config.decoding))),
    ];
    let (tokenizer_files, loading) = tokenizers(shipped);
    let has_tokenizer = !tokenizer_files.is_empty();
    files.extend(tokenizer_files);
    Ok((files, usage(&form, &loading, has_tokenizer, &shipped.config.decoding)))
}

/// Refuses what neither has a place for.
fn check(shipped: &Shipped, config: &TransformerConfig) -> Result<()> {
    check_plain(shipped, config)?;
    for (key, positions) in
        [("model.positions", &config.positions), ("model.decoder_positions", config.decoder_positions())]
    {
        if *positions != (PositionConfig::Sinusoidal {}) {
            return Err(shipped.refuse(key, positions.name(), "it has sinusoidal positions alone"));
        }
    }
    if config.norm != NormKind::Layer {
        return Err(shipped.refuse("model.norm", "rms", "it has layer normalization alone"));
    }
    if activation_name(config.activation).is_none() {
        return Err(shipped.refuse("model.activation", "swiglu", "it has relu, gelu, gelu-tanh and silu"));
    }
    Ok(())
}

/// Which of the two, and its vocabularies.
struct Form {
    is_marian: bool,
    n_source: usize,
    n_target: usize,
    /// Whether one table is that of source, target and output.
    is_one_table: bool,
    /// Whether the output's table is that of the target.
    is_tied: bool,
}

impl Form {
    fn of(shipped: &Shipped, config: &TransformerConfig) -> Self {
        let is_marian = config.norm_position == NormPosition::Post;
        let is_one_table = config.tied_embeddings == TiedEmbeddings::All;
        let sizes = [shipped.tokenizers.source(), shipped.tokenizers.target()].map(|side| side.vocab_size());
        // Pegasus has one size for all tables.
        let [n_source, n_target] = if is_marian { sizes } else { [sizes[0].max(sizes[1]); 2] };
        // It ties all tables or none.
        let is_tied = if is_marian { config.tied_embeddings != TiedEmbeddings::None } else { is_one_table };
        Self { is_marian, n_source, n_target, is_one_table, is_tied }
    }

    fn class(&self) -> &'static str {
        if self.is_marian { "MarianMTModel" } else { "PegasusForConditionalGeneration" }
    }

    fn config(&self, config: &TransformerConfig) -> Value {
        let mut value = json!({
            "model_type": if self.is_marian { "marian" } else { "pegasus" },
            "architectures": [self.class()],
            "is_encoder_decoder": true,
            "vocab_size": self.n_source,
            "d_model": config.d_model,
            "encoder_layers": config.n_encoder_layers,
            "decoder_layers": config.n_decoder_layers,
            "encoder_ffn_dim": config.d_feed_forward,
            "decoder_ffn_dim": config.d_feed_forward,
            "encoder_attention_heads": config.n_heads,
            "decoder_attention_heads": config.n_heads,
            "activation_function": activation_name(config.activation),
            "scale_embedding": config.scales_embeddings,
            "max_position_embeddings": N_POSITIONS,
            "dropout": config.dropout_rate,
            "attention_dropout": config.attention_dropout_rate,
            "activation_dropout": config.activation_dropout_rate,
            "tie_word_embeddings": self.is_tied,
            "pad_token_id": PAD,
            "bos_token_id": BOS,
            "eos_token_id": EOS,
            "decoder_start_token_id": BOS,
            "forced_eos_token_id": null,
        });
        if self.is_marian {
            value["decoder_vocab_size"] = self.n_target.into();
            value["share_encoder_decoder_embeddings"] = self.is_one_table.into();
        }
        value
    }
}

/// How transformers is to search.
fn generation(config: &DecodingConfig) -> Value {
    json!({
        "num_beams": config.beam_size,
        "length_penalty": config.length_penalty,
        "early_stopping": match config.early_stopping {
            EarlyStopping::Full(true) => json!(true),
            EarlyStopping::Full(false) => json!("never"),
            EarlyStopping::Rule(StopRule::PresentLength) => json!(false),
        },
        "max_length": N_POSITIONS,
        "do_sample": false,
        "pad_token_id": PAD,
        "bos_token_id": BOS,
        "eos_token_id": EOS,
        "decoder_start_token_id": BOS,
        // What never follows.
        "bad_words_ids": [[PAD], [BOS]],
    })
}

/// The parameters under their names, with the axis of `d_model` in their order.
fn parameters(shipped: &Shipped, config: &TransformerConfig, form: &Form) -> Weights {
    let ours = &shipped.weights;
    let (d, inner) = (config.d_model, config.d_feed_forward);
    let mut order = vec![0; d];
    columns(d).into_iter().enumerate().for_each(|(own, theirs)| order[theirs] = own);
    let vector = |name: String| {
        let weight = &ours[&name];
        Weight { shape: vec![d], values: order.iter().map(|own| weight.values[*own]).collect() }
    };
    // Rows of `d_model` numbers, and none but zeros for words that are not there.
    let rows = |weight: &Weight, n: usize| {
        let mut values: Vec<f32> = weight.values.chunks(d).flat_map(|row| order.iter().map(|own| row[*own])).collect();
        values.resize(n * d, 0.0);
        Weight { shape: vec![n, d], values }
    };
    let mut theirs = Weights::new();
    for (side, n_layers) in [("encoder", config.n_encoder_layers), ("decoder", config.n_decoder_layers)] {
        for part in (0..n_layers).flat_map(|i| parts(side, i, shipped.layer_of(side, i), [d, inner])) {
            let (weight, bias) = (format!("{}.weight", part.ours), format!("{}.bias", part.ours));
            match part.kind {
                Kind::FromModel(n) => {
                    let all = transposed(&ours[&weight]);
                    for (i, name) in part.theirs.iter().enumerate() {
                        let own = all.values[i * n * d..(i + 1) * n * d].to_vec();
                        theirs.insert(format!("{name}.weight"), rows(&Weight { shape: vec![n, d], values: own }, n));
                        let own = ours[&bias].values[i * n..(i + 1) * n].to_vec();
                        theirs.insert(format!("{name}.bias"), Weight { shape: vec![n], values: own });
                    }
                }
                Kind::ToModel(n) => {
                    let own = transposed(&ours[&weight]);
                    let values = order.iter().flat_map(|row| &own.values[row * n..(row + 1) * n]).copied().collect();
                    theirs.insert(format!("{}.weight", part.theirs[0]), Weight { shape: vec![d, n], values });
                    theirs.insert(format!("{}.bias", part.theirs[0]), vector(bias));
                }
                Kind::Norm => {
                    theirs.insert(format!("{}.weight", part.theirs[0]), vector(format!("{}.gamma", part.ours)));
                    theirs.insert(format!("{}.bias", part.theirs[0]), vector(format!("{}.beta", part.ours)));
                }
            }
        }
        if !form.is_marian {
            theirs.insert(format!("model.{side}.layer_norm.weight"), vector(format!("{side}_norm.gamma")));
            theirs.insert(format!("model.{side}.layer_norm.bias"), vector(format!("{side}_norm.beta")));
        }
    }
    let target = rows(&ours["target_embedding.weight"], form.n_target);
    if form.is_one_table {
        theirs.insert("model.shared.weight".into(), target);
    } else {
        let source = rows(&ours["source_embedding.weight"], form.n_source);
        if !form.is_marian {
            theirs.insert("model.shared.weight".into(), source.clone());
        }
        theirs.insert("model.encoder.embed_tokens.weight".into(), source);
        if !form.is_tied {
            let head = match ours.get("output.projection.weight") {
                Some(weight) => rows(&transposed(weight), form.n_target),
                None => target.clone(),
            };
            theirs.insert("lm_head.weight".into(), head);
        }
        theirs.insert("model.decoder.embed_tokens.weight".into(), target);
    }
    let mut bias = shipped.output_bias(&[]);
    bias.resize(form.n_target, NEVER);
    theirs.insert("final_logits_bias".into(), Weight { shape: vec![1, form.n_target], values: bias });
    theirs
}

/// The files of the tokenizers, and the lines of Python that load them.
fn tokenizers(shipped: &Shipped) -> (Files, String) {
    let special = |id: u32| SPECIALS[id as usize];
    let is_shared = shipped.tokenizers.is_shared();
    let mut about = json!({
        "pad_token": special(PAD), "bos_token": special(BOS), "eos_token": special(EOS), "unk_token": special(UNK),
        "model_max_length": shipped.config.decoding.max_source_len.min(N_POSITIONS),
    });
    match shipped.texts() {
        Texts::Library(mut files) => {
            let load = |side: &str, file: &str| {
                let names = "pad_token=\"<pad>\", eos_token=\"</s>\", unk_token=\"<unk>\"";
                format!("{side} = PreTrainedTokenizerFast(tokenizer_file=\"{file}\", {names})\n")
            };
            let loading = match files.len() {
                1 => load("source = target", "tokenizer.json"),
                _ => load("source", "tokenizer.json") + &load("target", "target_tokenizer.json"),
            };
            about["tokenizer_class"] = "PreTrainedTokenizerFast".into();
            files.push(("tokenizer_config.json", json_file(&about)));
            (files, format!("from transformers import PreTrainedTokenizerFast\n\n{loading}"))
        }
        Texts::Pieces(mut files) => {
            let words = |side| {
                let ids = tokens(side).enumerate().map(|(id, token)| (token.to_owned(), Value::from(id)));
                json_file(&ids.collect::<serde_json::Map<_, _>>().into())
            };
            about["tokenizer_class"] = "MarianTokenizer".into();
            about["separate_vocabs"] = (!is_shared).into();
            files.extend([
                ("vocab.json", words(shipped.tokenizers.source())),
                ("tokenizer_config.json", json_file(&about)),
            ]);
            if !is_shared {
                files.push(("target_vocab.json", words(shipped.tokenizers.target())));
            }
            let loading = "from transformers import MarianTokenizer\n\nsource = target = MarianTokenizer.from_pretrained(\".\")\n";
            (files, loading.into())
        }
        Texts::None(reason) => {
            let loading = format!(
                "\n# There is no tokenizer.json: {reason}.\n# `POST /tokenize` of `lookback serve` gives the ids of a text, without the end, \
                 which is 2.\n"
            );
            (Vec::new(), loading)
        }
    }
}

/// How the folder is used.
fn usage(form: &Form, loading: &str, has_tokenizer: bool, decoding: &DecodingConfig) -> String {
    let class = form.class();
    let (import, ids, shown) = match has_tokenizer {
        true => (
            "",
            "source(\"...\", return_tensors=\"pt\").input_ids",
            "target.decode(model.generate(ids)[0], skip_special_tokens=True)",
        ),
        false => (
            "import torch\n",
            "torch.tensor([[4, 5, 6, 2]])    # those of a text, and 2",
            "model.generate(ids)[0].tolist()",
        ),
    };
    let mut usage = format!(
        "```python\n{import}from transformers import {class}\n{loading}model = {class}.from_pretrained(\".\")\nids = {ids}\n\
         print({shown})\n```\n"
    );
    if decoding.beam_size > 1 && decoding.length_penalty_start != 0.0 && decoding.length_penalty != 0.0 {
        usage += &format!(
            "\nGreedy words are those of Lookback. A beam may find others: transformers divides the score of a hypothesis by \
             length^{alpha}, Lookback by (({start} + length) / {next})^{alpha}.\n",
            alpha = decoding.length_penalty,
            start = decoding.length_penalty_start,
            next = decoding.length_penalty_start + 1.0
        );
    }
    usage
}
