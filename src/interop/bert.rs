//! BERT for masked words, and models of the same architecture, from Hugging Face's transformers.

use super::hugging_face::{AddedToken, Folder, activation, check_len, in_our_order, take, transposed, yes};
use crate::data::tokenizer::SubwordConfig;
use crate::data::{BOS, EOS, PAD, TextConfig, TokenizerConfig, Tokenizers, UNK};
use crate::error::{Error, Result};
use crate::experiment::{Config, export_parts};
use crate::layers::position::PositionConfig;
use crate::models::transformer::NormPosition;
use crate::models::weights::{Weight, Weights};
use crate::models::{Answers, EncoderOnlyConfig, ModelConfig};
use serde::Deserialize;
use std::collections::HashMap;
use std::path::Path;

/// Their special tokens by the number of ours.
const SPECIALS: [(u32, &str); 4] = [(PAD, "[PAD]"), (BOS, "[CLS]"), (EOS, "[SEP]"), (UNK, "[UNK]")];
const MASK: &str = "[MASK]";
/// Their table of words.
const WORDS: &str = "bert.embeddings.word_embeddings.weight";

/// What is read of `config.json`.
#[derive(Deserialize)]
struct BertConfig {
    vocab_size: usize,
    hidden_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    intermediate_size: usize,
    hidden_act: String,
    #[serde(default)]
    hidden_dropout_prob: f64,
    #[serde(default)]
    attention_probs_dropout_prob: f64,
    max_position_embeddings: usize,
    #[serde(default = "two")]
    type_vocab_size: usize,
    layer_norm_eps: f64,
    #[serde(default)]
    position_embedding_type: Option<String>,
    #[serde(default)]
    is_decoder: bool,
    #[serde(default = "yes")]
    tie_word_embeddings: bool,
}

fn two() -> usize {
    2
}

impl BertConfig {
    fn model(&self, folder: &Folder) -> Result<EncoderOnlyConfig> {
        let refuse = |key: &str, value: &dyn std::fmt::Display| {
            Err(Error::file(folder.file("config.json"), format!("has {key} = {value}, which is not supported here")))
        };
        if let Some(kind) = self.position_embedding_type.as_deref().filter(|kind| *kind != "absolute") {
            return refuse("position_embedding_type", &kind);
        }
        if self.is_decoder {
            return refuse("is_decoder", &true);
        }
        if self.max_position_embeddings < 2 {
            return refuse("max_position_embeddings", &self.max_position_embeddings);
        }
        let Some(activation) = activation(&self.hidden_act) else {
            return refuse("hidden_act", &self.hidden_act);
        };
        Ok(EncoderOnlyConfig {
            output: Answers::MaskedWords,
            scales_embeddings: false,
            normalizes_embeddings: true,
            transforms_output: true,
            tied_embeddings: self.tie_word_embeddings,
            d_model: self.hidden_size,
            d_feed_forward: self.intermediate_size,
            n_heads: self.num_attention_heads,
            n_layers: self.num_hidden_layers,
            dropout_rate: self.hidden_dropout_prob,
            attention_dropout_rate: self.attention_probs_dropout_prob,
            norm_position: NormPosition::Post,
            norm_epsilon: self.layer_norm_eps,
            activation,
            positions: PositionConfig::Learned { max_len: self.max_position_embeddings },
            ..EncoderOnlyConfig::default()
        })
    }

    /// Refuses parameters without the part that tells masked words, and sizes that are not theirs.
    fn check_sizes(&self, weights: &Weights, file: &Path) -> Result<()> {
        if !weights.keys().any(|name| name.starts_with("cls.predictions.")) {
            let message = "has no part that tells masked words (cls.predictions): save it as BertForMaskedLM";
            return Err(Error::file(file, message));
        }
        check_len(weights, WORDS, 0, ("vocab_size", self.vocab_size), file)?;
        let (n, n_layers) = (weights.len(), self.num_hidden_layers);
        if n_layers > n {
            let message = format!("has {n} parameters, too few for num_hidden_layers = {n_layers} of config.json");
            return Err(Error::file(file, message));
        }
        Ok(())
    }
}

/// The tokens of word pieces by id, and whether letters are turned to lower case.
struct WordPieces {
    /// Those that were added too.
    tokens: HashMap<usize, String>,
    added: Vec<AddedToken>,
    lowercase: bool,
}

impl WordPieces {
    /// From `tokenizer.json`, or from `vocab.txt`, `added_tokens.json` and `tokenizer_config.json`.
    fn read(folder: &Folder) -> Result<Self> {
        if folder.file("tokenizer.json").is_file() { Self::of_json(folder) } else { Self::of_lines(folder) }
    }

    fn new(mut tokens: HashMap<usize, String>, added: Vec<AddedToken>, lowercase: bool) -> Self {
        tokens.extend(added.iter().map(|added| (added.id, added.content.clone())));
        Self { tokens, added, lowercase }
    }

    fn of_json(folder: &Folder) -> Result<Self> {
        let file = folder.file("tokenizer.json");
        let fault = |fault: &str| Error::file(&file, format!("has no word pieces as BERT has them: {fault}"));
        let whole: serde_json::Value = folder.json("tokenizer.json")?;
        let (model, normalizer) = (&whole["model"], &whole["normalizer"]);
        if model["type"] != "WordPiece" || model["continuing_subword_prefix"] != "##" {
            return Err(fault("model.type or its prefix is another"));
        }
        if whole["pre_tokenizer"]["type"] != "BertPreTokenizer" || normalizer["type"] != "BertNormalizer" {
            return Err(fault("text is cleaned or cut in another way"));
        }
        let is_usual = |key: &str| normalizer[key] == true;
        if !is_usual("clean_text") || !is_usual("handle_chinese_chars") {
            return Err(fault("normalizer leaves out what BERT's does"));
        }
        let lowercase = is_usual("lowercase");
        if normalizer["strip_accents"].as_bool().is_some_and(|strips| strips != lowercase) {
            return Err(fault("normalizer.strip_accents is not as lowercase is"));
        }
        let vocabulary: HashMap<String, usize> =
            serde_json::from_value(model["vocab"].clone()).map_err(|error| fault(&error.to_string()))?;
        let tokens = vocabulary.into_iter().map(|(token, id)| (id, token)).collect();
        Ok(Self::new(tokens, folder.added_tokens_of(&whole)?, lowercase))
    }

    fn of_lines(folder: &Folder) -> Result<Self> {
        let lines = crate::data::read_lines(folder.file("vocab.txt"))?;
        let settings: serde_json::Value = match folder.file("tokenizer_config.json").is_file() {
            true => folder.json("tokenizer_config.json")?,
            false => serde_json::Value::Null,
        };
        let lowercase = settings["do_lower_case"].as_bool().unwrap_or(true);
        let file = folder.file("tokenizer_config.json");
        if settings["strip_accents"].as_bool().is_some_and(|strips| strips != lowercase) {
            let message =
                "has strip_accents that is not as do_lower_case is, and this takes accents off lower-cased text alone";
            return Err(Error::file(file, message));
        }
        if settings["tokenize_chinese_chars"] == false {
            return Err(Error::file(
                file,
                "has tokenize_chinese_chars = false, and this always cuts Chinese characters apart",
            ));
        }
        Ok(Self::new(lines.into_iter().enumerate().collect(), folder.added_tokens()?, lowercase))
    }

    /// Refuses added tokens, which transformers finds whole in texts.
    fn check_added(&self, folder: &Folder) -> Result<()> {
        let is_special = |token: &str| token == MASK || SPECIALS.iter().any(|(_, name)| *name == token);
        let Some(added) = self.added.iter().find(|added| !is_special(&added.content)) else { return Ok(()) };
        let message = format!(
            "has the added token `{}`, and only [PAD], [UNK], [CLS], [SEP] and [MASK] are supported; remove it from \
             tokenizer.json (or added_tokens.json beside vocab.txt) to import the model without it",
            added.content
        );
        Err(Error::file(folder.path(), message))
    }

    fn id(&self, token: &str, folder: &Folder) -> Result<usize> {
        let found = self.tokens.iter().find(|(_, own)| *own == token).map(|(id, _)| *id);
        found.ok_or_else(|| {
            let message = format!(
                "has no token {token} in its vocabulary, which BERT for masked words needs; look at tokenizer.json or vocab.txt"
            );
            Error::file(folder.path(), message)
        })
    }
}

/// Writes BERT, as transformers saved `BertForMaskedLM` in `from`, as the model folder `out`. Returns the number of parameters.
///
/// Words get other numbers: `[PAD]`, `[CLS]`, `[SEP]` and `[UNK]` are the special tokens, which come first, and all others follow in
/// their order. The embedding of the first kind of token (`token_type_ids = 0`), which stands in every sum, is added to the
/// positions. What BERT has for other tasks (`pooler`, `seq_relationship`) is left out.
///
/// # Errors
/// If a file is missing or is not what it should be, the model has a part that this program has not, or `out` holds something.
pub fn import_bert(from: &Path, out: &Path) -> Result<usize> {
    let folder = Folder::open(from)?;
    let theirs: BertConfig = folder.config("bert")?;
    let model = theirs.model(&folder)?;
    // Before lists that are as long as the config says.
    let (weights, file) = (folder.weights()?, folder.weights_file());
    theirs.check_sizes(&weights, &file)?;
    let mut pieces = WordPieces::read(&folder)?;
    pieces.id(MASK, &folder)?;
    let specials = SPECIALS.iter().map(|(_, name)| pieces.id(name, &folder)).collect::<Result<Vec<usize>>>()?;
    pieces.check_added(&folder)?;
    if let Some(id) = pieces.tokens.keys().find(|id| **id >= theirs.vocab_size) {
        let message = format!("has a token with the number {id}, and the model has {} words", theirs.vocab_size);
        return Err(Error::file(folder.path(), message));
    }
    // Their numbers in our order.
    let others = (0..theirs.vocab_size).filter(|id| !specials.contains(id));
    let order: Vec<usize> = specials.iter().copied().chain(others).collect();
    let name = |id: &usize| pieces.tokens.remove(id).unwrap_or_else(|| format!("[unused {id}]"));
    let names = order[specials.len()..].iter().map(name).collect();
    let settings =
        SubwordConfig { vocab_size: theirs.vocab_size, lowercase: pieces.lowercase, ..SubwordConfig::default() };
    let tokenizers = Tokenizers::of_word_pieces(names, settings.clone())
        .map_err(|fault| Error::file(from, format!("has a tokenizer that cannot be used: {fault}")))?;
    let mut config = Config { model: ModelConfig::EncoderOnly(model.clone()), ..Config::default() };
    config.data.text = Some(TextConfig { context: theirs.max_position_embeddings - 1, ..TextConfig::default() });
    config.tokenizer = (&TokenizerConfig::WordPiece(settings)).into();
    config.training.label_smoothing = 0.0;
    config.model.validate()?;
    let weights = parameters(weights, &theirs, &order, &file)?;
    let n = weights.values().map(|weight| weight.values.len()).sum();
    let origin = format!("BERT as Hugging Face's transformers saved it, imported from {}", from.display());
    export_parts(out, &config, &tokenizers, weights, &origin)?;
    Ok(n)
}

/// The parameters under our names; the words in our order.
fn parameters(theirs: Weights, config: &BertConfig, order: &[usize], file: &Path) -> Result<Weights> {
    let named = |(name, weight): (String, Weight)| {
        // Names of the first checkpoints, and parts that tell no word.
        let name = name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias");
        let is_other = ["bert.pooler.", "cls.seq_relationship.", "bert.embeddings.position_ids"];
        (!is_other.iter().any(|other| name.starts_with(other))).then_some((name, weight))
    };
    let mut theirs: Weights = theirs.into_iter().filter_map(named).collect();
    let (d, inner, n_words) = (config.hidden_size, config.intermediate_size, config.vocab_size);
    let mut ours = Weights::new();
    let mut get = |name: &str, shape: &[usize]| take(&mut theirs, name, shape, file);
    let mut norms = vec![("bert.embeddings.LayerNorm".to_string(), "embedding_norm".to_string())];
    let mut linears = Vec::new();
    for i in 0..config.num_hidden_layers {
        let (from, to) = (format!("bert.encoder.layer.{i}"), format!("layers.{i}"));
        let parts = ["query", "key", "value"].map(|part| format!("{from}.attention.self.{part}"));
        linears.push((parts.to_vec(), format!("{to}.attention.query_key_value"), [d, d]));
        for (theirs, own, shape) in [
            ("attention.output.dense", "attention.output", [d, d]),
            ("intermediate.dense", "feed_forward.inner", [inner, d]),
            ("output.dense", "feed_forward.outer", [d, inner]),
        ] {
            linears.push((vec![format!("{from}.{theirs}")], format!("{to}.{own}"), shape));
        }
        norms.push((format!("{from}.attention.output.LayerNorm"), format!("{to}.attention_residual.norm")));
        norms.push((format!("{from}.output.LayerNorm"), format!("{to}.feed_forward_residual.norm")));
    }
    linears.push((vec!["cls.predictions.transform.dense".into()], "transform.inner".into(), [d, d]));
    norms.push(("cls.predictions.transform.LayerNorm".into(), "transform.norm".into()));
    for (from, to) in norms {
        ours.insert(format!("{to}.gamma"), get(&format!("{from}.weight"), &[d])?);
        ours.insert(format!("{to}.beta"), get(&format!("{from}.bias"), &[d])?);
    }
    for (from, to, shape) in linears {
        // Matrices of theirs have a row for each output: side by side in ours is one below the other in theirs.
        let mut rows = Weight { shape: vec![shape[0] * from.len(), shape[1]], values: Vec::new() };
        let mut bias = Weight { shape: vec![shape[0] * from.len()], values: Vec::new() };
        for part in from {
            rows.values.extend(get(&format!("{part}.weight"), &shape)?.values);
            bias.values.extend(get(&format!("{part}.bias"), &shape[..1])?.values);
        }
        ours.insert(format!("{to}.weight"), transposed(&rows));
        ours.insert(format!("{to}.bias"), bias);
    }
    let mut positions = get("bert.embeddings.position_embeddings.weight", &[config.max_position_embeddings, d])?;
    let kinds = get("bert.embeddings.token_type_embeddings.weight", &[config.type_vocab_size, d])?;
    positions.values.iter_mut().enumerate().for_each(|(i, value)| *value += kinds.values[i % d]);
    ours.insert("position.learned.weight".into(), positions);
    let table = in_our_order(&get(WORDS, &[n_words, d])?, order);
    let bias = in_our_order(&get("cls.predictions.bias", &[n_words])?, order);
    if config.tie_word_embeddings {
        ours.insert("output.bias".into(), bias);
    } else {
        let head = get("cls.predictions.decoder.weight", &[n_words, d])?;
        ours.insert("output.projection.weight".into(), transposed(&in_our_order(&head, order)));
        ours.insert("output.projection.bias".into(), bias);
    }
    ours.insert("source_embedding.weight".into(), table);
    // Copies of the table and of the bias that some versions write.
    theirs.retain(|name, _| !name.starts_with("cls.predictions.decoder."));
    match theirs.keys().next() {
        Some(name) => Err(Error::file(file, format!("has a parameter {name}, which config.json does not describe"))),
        None => Ok(ours),
    }
}
