//! From a folder of MarianMT or OPUS-MT.

use super::generation::GenerationConfig;
use super::taker::Taker;
use super::{Kind, columns, parts};
use crate::data::tokenizer::SubwordConfig;
use crate::data::{BOS, PAD, TokenizerConfig, Tokenizers};
use crate::decoding::{DecodingConfig, EarlyStopping, StopRule};
use crate::error::{Error, Result};
use crate::experiment::{Config, export_parts};
use crate::interop::NEVER;
use crate::interop::hugging_face::{Folder, activation, check_len, in_our_order, transposed, yes};
use crate::interop::sentence_piece;
use crate::models::transformer::NormPosition;
use crate::models::weights::{Weight, Weights};
use crate::models::{ModelConfig, TiedEmbeddings, TransformerConfig};
use serde::Deserialize;
use std::collections::HashMap;
use std::path::Path;

const END: &str = "</s>";
const UNKNOWN: &str = "<unk>";

/// What is read of `config.json`.
#[derive(Deserialize)]
struct MarianConfig {
    vocab_size: usize,
    #[serde(default)]
    decoder_vocab_size: Option<usize>,
    d_model: usize,
    encoder_layers: usize,
    decoder_layers: usize,
    encoder_ffn_dim: usize,
    decoder_ffn_dim: usize,
    encoder_attention_heads: usize,
    decoder_attention_heads: usize,
    activation_function: String,
    max_position_embeddings: usize,
    pad_token_id: usize,
    eos_token_id: usize,
    decoder_start_token_id: usize,
    #[serde(default)]
    scale_embedding: bool,
    #[serde(default = "yes")]
    share_encoder_decoder_embeddings: bool,
    #[serde(default = "yes")]
    tie_word_embeddings: bool,
    #[serde(default)]
    dropout: f64,
    #[serde(default)]
    attention_dropout: f64,
    #[serde(default)]
    activation_dropout: f64,
    // Of the program that OPUS-MT was converted with.
    #[serde(default)]
    normalize_before: bool,
    #[serde(default)]
    normalize_embedding: bool,
    #[serde(default)]
    add_final_layer_norm: bool,
}

impl MarianConfig {
    fn model(&self, folder: &Folder) -> Result<TransformerConfig> {
        let refuse = |key: &str, value: &dyn std::fmt::Display| {
            Err(Error::file(folder.file("config.json"), format!("has {key} = {value}, which is not supported here")))
        };
        for (key, is_set) in [
            ("normalize_before", self.normalize_before),
            ("normalize_embedding", self.normalize_embedding),
            ("add_final_layer_norm", self.add_final_layer_norm),
        ] {
            if is_set {
                return refuse(key, &true);
            }
        }
        for (encoder, decoder, key) in [
            (self.encoder_ffn_dim, self.decoder_ffn_dim, "decoder_ffn_dim"),
            (self.encoder_attention_heads, self.decoder_attention_heads, "decoder_attention_heads"),
        ] {
            if encoder != decoder {
                return refuse(key, &format!("{decoder}, other than the encoder's {encoder}"));
            }
        }
        let n_target = self.n_target();
        if self.share_encoder_decoder_embeddings && n_target != self.vocab_size {
            return refuse("decoder_vocab_size", &format!("{n_target} beside one table for both sides"));
        }
        for (key, id) in [
            ("pad_token_id", self.pad_token_id),
            ("eos_token_id", self.eos_token_id),
            ("decoder_start_token_id", self.decoder_start_token_id),
        ] {
            if id >= self.vocab_size.min(n_target) {
                return refuse(key, &format!("{id}, beyond the vocabulary"));
            }
        }
        let Some(activation) = activation(&self.activation_function) else {
            return refuse("activation_function", &self.activation_function);
        };
        let tied_embeddings = match (self.tie_word_embeddings, self.share_encoder_decoder_embeddings) {
            (true, true) => TiedEmbeddings::All,
            (true, false) => TiedEmbeddings::TargetOutput,
            (false, false) => TiedEmbeddings::None,
            (false, true) => return refuse("tie_word_embeddings", &"false beside one table for both sides"),
        };
        Ok(TransformerConfig {
            d_model: self.d_model,
            d_feed_forward: self.encoder_ffn_dim,
            n_heads: self.encoder_attention_heads,
            n_encoder_layers: self.encoder_layers,
            n_decoder_layers: self.decoder_layers,
            dropout_rate: self.dropout,
            attention_dropout_rate: self.attention_dropout,
            activation_dropout_rate: self.activation_dropout,
            norm_position: NormPosition::Post,
            activation,
            tied_embeddings,
            scales_embeddings: self.scale_embedding,
            output_bias: self.tie_word_embeddings,
            ..TransformerConfig::default()
        })
    }

    fn n_target(&self) -> usize {
        self.decoder_vocab_size.unwrap_or(self.vocab_size)
    }

    /// The tables of source and target by name; of one for both sides that of the target.
    fn tables(&self) -> [Option<&'static str>; 2] {
        match self.share_encoder_decoder_embeddings {
            true => [None, Some("model.shared.weight")],
            false => [Some("model.encoder.embed_tokens.weight"), Some("model.decoder.embed_tokens.weight")],
        }
    }

    /// Refuses sizes that are not those of the tables.
    fn check_tables(&self, weights: &Weights, file: &Path) -> Result<()> {
        let target = if self.decoder_vocab_size.is_some() { "decoder_vocab_size" } else { "vocab_size" };
        let sizes = [("vocab_size", self.vocab_size), (target, self.n_target())];
        for (name, size) in self.tables().into_iter().zip(sizes) {
            let Some(name) = name else { continue };
            check_len(weights, name, 0, size, file)?;
            check_len(weights, name, 1, ("d_model", self.d_model), file)?;
        }
        Ok(())
    }

    /// How transformers would search.
    fn decoding(&self, own: &GenerationConfig) -> DecodingConfig {
        // Its length counts the start symbol, which is not written, and an end that is forced.
        let n_symbols = 1 + usize::from(own.forced_eos_token_id.is_some());
        DecodingConfig {
            beam_size: own.num_beams.unwrap_or(1).max(1),
            length_penalty: own.length_penalty.unwrap_or(1.0),
            length_penalty_start: 0.0,
            early_stopping: match &own.early_stopping {
                Some(value) if *value == true => EarlyStopping::Full(true),
                Some(value) if *value == "never" => EarlyStopping::Full(false),
                _ => EarlyStopping::Rule(StopRule::PresentLength),
            },
            max_len_factor: Some(0.0),
            max_len_extra: Some(
                own.max_length.unwrap_or(self.max_position_embeddings).saturating_sub(n_symbols).max(1),
            ),
            max_source_len: self.max_position_embeddings,
            ..DecodingConfig::default()
        }
    }
}

/// The words of one side.
struct Words {
    /// Their numbers in our order: padding, start, end, unknown, and all others.
    order: Vec<usize>,
    /// The tokens of all others.
    tokens: Vec<String>,
}

impl Words {
    /// `file` is a table of numbers by token; the model has `n` words.
    fn read(folder: &Folder, file: &str, config: &MarianConfig, n: usize) -> Result<Self> {
        let path = folder.file(file);
        let fault = |error: serde_json::Error| Error::file(&path, format!("is no such file: {error}"));
        let vocabulary: HashMap<String, usize> = serde_json::from_value(folder.json(file)?).map_err(fault)?;
        let id = |token: &str| {
            let found = vocabulary.get(token).copied().filter(|id| *id < n);
            found.ok_or_else(|| {
                Error::file(&path, format!("has no token {token} with a number below {n}, the vocabulary's size"))
            })
        };
        if id(END)? != config.eos_token_id {
            let message =
                format!("has {END} as {}, and config.json as eos_token_id = {}", id(END)?, config.eos_token_id);
            return Err(Error::file(&path, message));
        }
        let specials = [config.pad_token_id, config.decoder_start_token_id, config.eos_token_id, id(UNKNOWN)?];
        let mut by_id: HashMap<usize, &String> = HashMap::new();
        for (token, id) in &vocabulary {
            if let Some(other) = by_id.insert(*id, token) {
                return Err(Error::file(&path, format!("has `{token}` and `{other}` with the same number, {id}")));
            }
        }
        if let Some((id, token)) = by_id.iter().find(|(id, _)| **id >= n) {
            return Err(Error::file(&path, format!("has `{token}` with the number {id}, and the model has {n} words")));
        }
        let others: Vec<usize> = (0..n).filter(|id| !specials.contains(id)).collect();
        let token = |id: &usize| by_id.get(id).map_or_else(|| format!("<unused {id}>"), |token| (*token).clone());
        let tokens = others.iter().map(token).collect();
        Ok(Self { order: specials.into_iter().chain(others).collect(), tokens })
    }
}

/// Writes a MarianMT or OPUS-MT model, as transformers saved it in `from`, as the model folder `out`. Returns the number of
/// parameters.
///
/// Words get other numbers: padding, the symbol that the decoder starts with, end and unknown word come first, all others follow in
/// their order. The sinusoids of Marian have all sines before all cosines, ours in turns: the axis of `d_model` is put into that
/// order in every parameter, which changes nothing else. Beam, length penalty and lengths are those of
/// `generation_config.json`; where it has `renormalize_logits`, padding takes no part of the probabilities.
///
/// # Errors
/// If a file is missing or is not what it should be, the model has a part that this program has not, or `out` holds something.
pub fn import_marian(from: &Path, out: &Path) -> Result<usize> {
    let folder = Folder::open(from)?;
    let theirs: MarianConfig = folder.config("marian")?;
    let model = theirs.model(&folder)?;
    let generation = GenerationConfig::read(&folder, &[theirs.pad_token_id, theirs.decoder_start_token_id])?;
    // Before lists that are as long as the config says.
    let (weights, file) = (folder.weights()?, folder.weights_file());
    theirs.check_tables(&weights, &file)?;
    let cutters =
        [sentence_piece::read(&folder.file("source.spm"))?, sentence_piece::read(&folder.file("target.spm"))?];
    let source = Words::read(&folder, "vocab.json", &theirs, theirs.vocab_size)?;
    let is_shared = !folder.file("target_vocab.json").is_file();
    if !is_shared && theirs.share_encoder_decoder_embeddings {
        let message = "stands beside share_encoder_decoder_embeddings = true: one table cannot have two vocabularies";
        return Err(Error::file(folder.file("target_vocab.json"), message));
    }
    let target = if is_shared { "vocab.json" } else { "target_vocab.json" };
    let target = Words::read(&folder, target, &theirs, theirs.n_target())?;
    let n_words = source.order.len().max(target.order.len());
    let settings = SubwordConfig { vocab_size: n_words, shared: is_shared, ..SubwordConfig::default() };
    let [source_cutter, target_cutter] = cutters;
    let sides = [(source.tokens, source_cutter), (target.tokens, target_cutter)];
    let tokenizers = Tokenizers::of_sentence_pieces(sides, settings.clone())
        .map_err(|fault| Error::file(from, format!("has a tokenizer that cannot be used: {fault}")))?;
    let mut config = Config { model: ModelConfig::Transformer(model.clone()), ..Config::default() };
    config.tokenizer = (&TokenizerConfig::SentencePiece(settings)).into();
    config.decoding = theirs.decoding(&generation);
    config.model.validate()?;
    config.decoding.validate()?;
    let mut weights = parameters(weights, &file, &theirs, &model, [&source.order, &target.order])?;
    if generation.leaves_out_padding() {
        let bias = if theirs.tie_word_embeddings { "output.bias" } else { "output.projection.bias" };
        weights.get_mut(bias).expect("every import has one").values[PAD as usize] = NEVER;
    }
    let n = weights.values().map(|weight| weight.values.len()).sum();
    let origin = format!("MarianMT as Hugging Face's transformers saved it, imported from {}", from.display());
    export_parts(out, &config, &tokenizers, weights, &origin)?;
    Ok(n)
}

/// The parameters under our names; the words of source and target in our order.
fn parameters(
    mut theirs: Weights,
    file: &Path,
    config: &MarianConfig,
    model: &TransformerConfig,
    [source, target]: [&[usize]; 2],
) -> Result<Weights> {
    let (d, inner) = (model.d_model, model.d_feed_forward);
    // Positions that are computed here.
    theirs.retain(|name, _| !name.ends_with(".embed_positions.weight"));
    let mut taker = Taker::new(theirs, columns(d), file);
    let mut ours = Weights::new();
    for (side, n_layers) in [("encoder", config.encoder_layers), ("decoder", config.decoder_layers)] {
        for part in (0..n_layers).flat_map(|i| parts(side, i, i, [d, inner])) {
            match part.kind {
                Kind::FromModel(n) => taker.take_from_model(&part.theirs, n, &part.ours, &mut ours)?,
                Kind::ToModel(n) => taker.take_to_model(&part.theirs[0], n, &part.ours, &mut ours)?,
                Kind::Norm => taker.norm(&part.theirs[0], &part.ours, &mut ours)?,
            }
        }
    }
    let n_target = config.n_target();
    // Copies of a table that some versions write.
    let mut copies = match config.share_encoder_decoder_embeddings {
        true => vec!["model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"],
        false => vec!["model.shared.weight"],
    };
    let tables = config.tables();
    if let Some(name) = tables[0] {
        ours.insert("source_embedding.weight".into(), taker.table(name, config.vocab_size, source)?);
    }
    if let Some(name) = tables[1] {
        ours.insert("target_embedding.weight".into(), taker.table(name, n_target, target)?);
    }
    let theirs = taker.take("final_logits_bias", &[1, n_target])?;
    let mut bias = in_our_order(&Weight { shape: vec![n_target], ..theirs }, target);
    // It follows nothing; where padding is the start, as usual, it would be scored as padding.
    bias.values[BOS as usize] = NEVER;
    if config.tie_word_embeddings {
        copies.push("lm_head.weight");
        ours.insert("output.bias".into(), bias);
    } else {
        let head = taker.table("lm_head.weight", n_target, target)?;
        ours.insert("output.projection.weight".into(), transposed(&head));
        ours.insert("output.projection.bias".into(), bias);
    }
    copies.into_iter().for_each(|name| taker.forget(name));
    match taker.rest() {
        Some(name) => Err(Error::file(file, format!("has a parameter {name}, which config.json does not describe"))),
        None => Ok(ours),
    }
}
