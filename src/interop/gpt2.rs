//! GPT-2 and models of the same architecture, from Hugging Face's transformers.

use super::NEVER;
use super::hugging_face::{AddedToken, BytePairs, Folder, activation, check_len, take, transposed, yes};
use crate::data::tokenizer::SubwordConfig;
use crate::data::{BOS, EOS, PAD, TextConfig, TokenizerConfig, Tokenizers, UNK};
use crate::error::{Error, Result};
use crate::experiment::{Config, export_parts};
use crate::layers::norm::EPSILON;
use crate::layers::position::PositionConfig;
use crate::models::weights::{Weight, Weights};
use crate::models::{DecoderOnlyConfig, ModelConfig, TiedEmbeddings};
use serde::Deserialize;
use std::path::Path;

/// Special tokens, which stand before all others.
const N_SPECIALS: usize = 4;

/// What is read of `config.json`.
#[derive(Deserialize)]
struct Gpt2Config {
    vocab_size: usize,
    n_positions: usize,
    n_embd: usize,
    n_layer: usize,
    n_head: usize,
    #[serde(default)]
    n_inner: Option<usize>,
    activation_function: String,
    layer_norm_epsilon: f64,
    #[serde(default)]
    resid_pdrop: f64,
    #[serde(default)]
    embd_pdrop: f64,
    #[serde(default)]
    attn_pdrop: f64,
    #[serde(default)]
    eos_token_id: Option<usize>,
    #[serde(default = "yes")]
    tie_word_embeddings: bool,
    #[serde(default = "yes")]
    scale_attn_weights: bool,
    #[serde(default)]
    scale_attn_by_inverse_layer_idx: bool,
}

impl Gpt2Config {
    fn model(&self, folder: &Folder) -> Result<DecoderOnlyConfig> {
        let refuse = |key: &str, value: &dyn std::fmt::Display| {
            Err(Error::file(folder.file("config.json"), format!("has {key} = {value}, which this cannot do")))
        };
        if (self.layer_norm_epsilon - EPSILON).abs() > 1e-12 {
            return refuse("layer_norm_epsilon", &self.layer_norm_epsilon);
        }
        if !self.scale_attn_weights {
            return refuse("scale_attn_weights", &false);
        }
        if self.scale_attn_by_inverse_layer_idx {
            return refuse("scale_attn_by_inverse_layer_idx", &true);
        }
        let Some(activation) = activation(&self.activation_function) else {
            return refuse("activation_function", &self.activation_function);
        };
        Ok(DecoderOnlyConfig {
            d_model: self.n_embd,
            d_feed_forward: self.n_inner.unwrap_or(self.n_embd.saturating_mul(4)),
            n_heads: self.n_head,
            n_layers: self.n_layer,
            reads_source: false,
            scales_embeddings: false,
            dropout_rate: self.resid_pdrop,
            embedding_dropout_rate: Some(self.embd_pdrop),
            attention_dropout_rate: self.attn_pdrop,
            activation,
            positions: PositionConfig::Learned { max_len: self.n_positions },
            tied_embeddings: if self.tie_word_embeddings { TiedEmbeddings::TargetOutput } else { TiedEmbeddings::None },
            output_bias: self.tie_word_embeddings,
            ..DecoderOnlyConfig::default()
        })
    }
}

/// Writes GPT-2, as transformers saved it in `from`, as the model folder `out`. Returns the number of parameters.
///
/// Words get other numbers: the special tokens come first, `<|endoftext|>` as the end symbol, and all others after them in their
/// order. Start symbol, padding and the unknown word, which GPT-2 does not have, are never written.
///
/// Added tokens are found whole in texts, as transformers does; but the end symbol is not: an `<|endoftext|>` inside a
/// text is text.
///
/// # Errors
/// If a file is missing or is not what it should be, the model has a part that this program has not, or `out` holds something.
pub fn import_gpt2(from: &Path, out: &Path) -> Result<usize> {
    let folder = Folder::open(from)?;
    let theirs: Gpt2Config = folder.config("gpt2")?;
    let model = theirs.model(&folder)?;
    // Before lists that are as long as the config says.
    let (weights, file) = (named(folder.weights()?), folder.weights_file());
    check_len(&weights, "wte.weight", 0, ("vocab_size", theirs.vocab_size), &file)?;
    let BytePairs { mut tokens, merges, added } = folder.byte_pairs()?;
    let end = match theirs.eos_token_id.filter(|id| *id < theirs.vocab_size) {
        Some(id) => id,
        None => {
            let message = "has no eos_token_id inside the vocabulary, the token that stands between texts";
            return Err(Error::file(folder.file("config.json"), message));
        }
    };
    let added = without_end(added, end, theirs.vocab_size, &folder)?;
    // Their numbers in our order, without the end.
    let order: Vec<usize> = (0..theirs.vocab_size).filter(|id| *id != end).collect();
    let names = order.iter().map(|id| tokens.remove(id).unwrap_or_else(|| format!("<unused {id}>"))).collect();
    let settings = SubwordConfig { vocab_size: theirs.vocab_size - 1 + N_SPECIALS, ..SubwordConfig::default() };
    let tokenizers = Tokenizers::of_byte_pairs(names, merges, added, settings.clone())
        .map_err(|fault| Error::file(from, format!("has a tokenizer that cannot be used: {fault}")))?;
    let mut config = Config { model: ModelConfig::DecoderOnly(model.clone()), ..Config::default() };
    config.data.text = Some(TextConfig { context: theirs.n_positions, ..TextConfig::default() });
    config.tokenizer = (&TokenizerConfig::ByteBpe(settings)).into();
    config.training.label_smoothing = 0.0;
    config.model.validate()?;
    let weights = parameters(weights, &theirs, &model, &order, end, &file)?;
    let n = weights.values().map(|weight| weight.values.len()).sum();
    let origin = format!("GPT-2 as Hugging Face's transformers saved it, imported from {}", from.display());
    export_parts(out, &config, &tokenizers, weights, &origin)?;
    Ok(n)
}

/// The added tokens but the end, in the order of their numbers.
///
/// # Errors
/// If one has a rule that this program has not, or is none of the model's words.
fn without_end(mut added: Vec<AddedToken>, end: usize, n_words: usize, folder: &Folder) -> Result<Vec<String>> {
    added.retain(|added| added.id != end && !added.content.is_empty());
    added.sort_unstable_by_key(|added| added.id);
    if let Some(AddedToken { id, content, .. }) = added.iter().find(|added| added.id >= n_words) {
        let message = format!(
            "has the added token `{content}` with the number {id}, and the model has {n_words} words; remove it from \
             tokenizer.json (or added_tokens.json) to import the model without it"
        );
        return Err(Error::file(folder.path(), message));
    }
    if let Some((content, rule)) = added.iter().find_map(|added| Some((&added.content, added.special_rule()?))) {
        let message = format!(
            "has the added token `{content}` with {rule} = true, which is not supported here; set it to false to \
             import the model without it"
        );
        return Err(Error::file(folder.file("tokenizer.json"), message));
    }
    Ok(added.into_iter().map(|added| added.content).collect())
}

/// The parameters by the names that the base model gives them, without masks, which are none.
fn named(theirs: Weights) -> Weights {
    let kept = |(name, weight): (String, Weight)| {
        let name = name.strip_prefix("transformer.").map_or(name.clone(), str::to_string);
        let is_mask = name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias");
        (!is_mask).then_some((name, weight))
    };
    theirs.into_iter().filter_map(kept).collect()
}

/// The parameters under our names; the words in our order.
fn parameters(
    mut theirs: Weights,
    config: &Gpt2Config,
    model: &DecoderOnlyConfig,
    order: &[usize],
    end: usize,
    file: &Path,
) -> Result<Weights> {
    let (d, inner) = (model.d_model, model.d_feed_forward);
    let mut ours = Weights::new();
    let mut take = |from: &str, to: String, shape: &[usize]| -> Result<()> {
        ours.insert(to, take(&mut theirs, from, shape, file)?);
        Ok(())
    };
    take("wpe.weight", "position.learned.weight".into(), &[config.n_positions, d])?;
    for i in 0..config.n_layer {
        for (from, to, shape) in [
            ("ln_1", "attention_residual.norm", None),
            ("attn.c_attn", "attention.query_key_value", Some([d, 3 * d])),
            ("attn.c_proj", "attention.output", Some([d, d])),
            ("ln_2", "feed_forward_residual.norm", None),
            ("mlp.c_fc", "feed_forward.inner", Some([d, inner])),
            ("mlp.c_proj", "feed_forward.outer", Some([inner, d])),
        ] {
            let (from, to) = (format!("h.{i}.{from}"), format!("layers.{i}.{to}"));
            match shape {
                Some(shape) => {
                    take(&format!("{from}.weight"), format!("{to}.weight"), &shape)?;
                    take(&format!("{from}.bias"), format!("{to}.bias"), &shape[1..])?;
                }
                None => {
                    take(&format!("{from}.weight"), format!("{to}.gamma"), &[d])?;
                    take(&format!("{from}.bias"), format!("{to}.beta"), &[d])?;
                }
            }
        }
    }
    take("ln_f.weight", "norm.gamma".into(), &[d])?;
    take("ln_f.bias", "norm.beta".into(), &[d])?;
    take("wte.weight", "target_embedding.weight".into(), &[config.vocab_size, d])?;
    let table = ours.remove("target_embedding.weight").expect("it was just put there");
    let rows = in_our_order(&table, order, end);
    let mut bias = vec![0.0; rows.shape[0]];
    [PAD, BOS, UNK].iter().for_each(|special| bias[*special as usize] = NEVER);
    let bias = Weight { shape: vec![bias.len()], values: bias };
    if config.tie_word_embeddings {
        theirs.remove("lm_head.weight");
        ours.insert("output.bias".into(), bias);
    } else {
        let head = super::hugging_face::take(&mut theirs, "lm_head.weight", &[config.vocab_size, d], file)?;
        ours.insert("output.projection.weight".into(), transposed(&in_our_order(&head, order, end)));
        ours.insert("output.projection.bias".into(), bias);
    }
    ours.insert("target_embedding.weight".into(), rows);
    match theirs.keys().next() {
        Some(name) => Err(Error::file(file, format!("has a parameter {name}, which GPT-2 does not have"))),
        None => Ok(ours),
    }
}

/// A table with a row for each of our words; special tokens that they do not have are zero.
fn in_our_order(table: &Weight, order: &[usize], end: usize) -> Weight {
    let d = table.shape[1];
    let row = |id: usize| &table.values[id * d..(id + 1) * d];
    let mut values = vec![0.0; N_SPECIALS * d];
    values[EOS as usize * d..][..d].copy_from_slice(row(end));
    order.iter().for_each(|id| values.extend_from_slice(row(*id)));
    Weight { shape: vec![N_SPECIALS + order.len(), d], values }
}
