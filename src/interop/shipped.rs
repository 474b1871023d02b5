//! A trained model on its way into the format of another program.

use super::{NEVER, sentence_piece};
use crate::data::Tokenizers;
use crate::data::tokenizer::Tokenizer;
use crate::error::{Error, Result};
use crate::experiment::{Config, ExportOptions, Run, check_free, model_card};
use crate::files;
use crate::layers::mixer::Mixers;
use crate::models::weights::Weights;
use crate::models::{ModelConfig, TransformerConfig};
use std::path::{Path, PathBuf};

/// Files by name.
pub(super) type Files = Vec<(&'static str, Vec<u8>)>;

/// By what another program cuts texts into tokens.
pub(super) enum Texts {
    /// The library `tokenizers`: `tokenizer.json`, and `target_tokenizer.json` if the target has a vocabulary of its own.
    Library(Files),
    /// SentencePiece: `source.spm` and `target.spm`.
    Pieces(Files),
    /// Nothing, with the reason.
    None(String),
}

/// A model with what its folder says of it.
pub(super) struct Shipped<'a> {
    run: &'a Run,
    out: PathBuf,
    /// The program that it is for.
    program: &'static str,
    checkpoint: String,
    updates: u64,
    is_int8: bool,
    pub(super) config: Config,
    pub(super) tokenizers: Tokenizers,
    pub(super) weights: Weights,
}

impl<'a> Shipped<'a> {
    /// Reads a checkpoint of `run`.
    ///
    /// # Errors
    /// If there is none, or `out` holds something.
    pub(super) fn open(
        run: &'a Run,
        out: &Path,
        options: &ExportOptions,
        program: &'static str,
        warn: impl FnOnce(String),
    ) -> Result<Self> {
        check_free(out)?;
        let (checkpoint, parameters) = run.parameters(options.checkpoint.as_deref(), warn)?;
        Ok(Self {
            run,
            out: out.to_path_buf(),
            program,
            checkpoint,
            updates: parameters.updates,
            is_int8: options.int8,
            config: run.config()?,
            tokenizers: run.tokenizers()?,
            weights: parameters.weights,
        })
    }

    /// The config of a Transformer with encoder and decoder.
    ///
    /// # Errors
    /// If the model is another.
    pub(super) fn transformer(&self) -> Result<&TransformerConfig> {
        match &self.config.model {
            ModelConfig::Transformer(config) => Ok(config),
            _ => {
                let message = format!("is a model of a kind (model.kind) that is not written for {}", self.program);
                Err(Error::file(self.run.path(), message))
            }
        }
    }

    /// That the program has no place for a value of the config.
    pub(super) fn refuse(&self, key: &str, value: &str, rest: &str) -> Error {
        let message = format!("has {key} = {value}, for which {} has no place; {rest}", self.program);
        Error::file(self.run.path(), message)
    }

    /// The layer whose parameters are those of the layer `i` of a side; layers may be shared.
    pub(super) fn layer_of(&self, side: &str, i: usize) -> usize {
        let n_made = (0..).take_while(|made| self.has_layer(side, *made)).count();
        i % n_made.max(1)
    }

    fn has_layer(&self, side: &str, i: usize) -> bool {
        self.weights.contains_key(&format!("{side}.{i}.feed_forward.inner.weight"))
    }

    /// The bias of the logits, zeros where the model has none; `never` are words that are never written.
    pub(super) fn output_bias(&self, never: &[u32]) -> Vec<f32> {
        let own = self.weights.get("output.projection.bias").or_else(|| self.weights.get("output.bias"));
        let n_words = self.weights["target_embedding.weight"].shape[0];
        let mut bias = own.map_or_else(|| vec![0.0; n_words], |own| own.values.clone());
        never.iter().for_each(|word| bias[*word as usize] = NEVER);
        bias
    }

    /// The files by which other programs cut texts.
    pub(super) fn texts(&self) -> Texts {
        if let Some([source, target]) = self.tokenizers.cutters() {
            let files = [("source.spm", sentence_piece::write(source)), ("target.spm", sentence_piece::write(target))];
            return Texts::Pieces(files.into());
        }
        let is_text = matches!(self.config.model, ModelConfig::DecoderOnly(_));
        match self.tokenizers.for_hugging_face(is_text) {
            Ok((source, None)) => Texts::Library(vec![("tokenizer.json", source)]),
            Ok((source, Some(target))) => {
                Texts::Library(vec![("tokenizer.json", source), ("target_tokenizer.json", target)])
            }
            Err(reason) => Texts::None(reason),
        }
    }

    /// Writes the folder with a model card, which has the `usage`. Returns the bytes written.
    pub(super) fn write(&self, mut files: Files, usage: &str) -> Result<u64> {
        let n = self.weights.values().map(|weight| weight.values.len()).sum();
        let card = model_card(self.run, &self.checkpoint, self.updates, self.is_int8, n, usage)?;
        files.push(("README.md", card.into_bytes()));
        files::replace_folder(&self.out, &files)?;
        Ok(files.iter().map(|(_, bytes)| bytes.len() as u64).sum())
    }
}

/// The names, in a layer, of what attends to its own side and of the sum behind that.
pub(super) fn self_attention_parts(is_decoder: bool) -> [&'static str; 2] {
    if is_decoder { ["self_attention", "self_residual"] } else { ["attention", "attention_residual"] }
}

/// All tokens of a side by id.
pub(super) fn tokens(side: &Tokenizer) -> impl Iterator<Item = &str> {
    (0..side.vocab_size() as u32).map(|id| side.token(id))
}

/// Refuses mixers other than attention; `key` is where they stand.
pub(super) fn check_mixers(shipped: &Shipped, key: &str, mixers: &Mixers) -> Result<()> {
    for mixer in mixers.all() {
        if !mixer.is_attention() {
            return Err(shipped.refuse(key, &mixer.kind.name(), "it has attention alone"));
        }
        if let Some(width) = mixer.convolution {
            return Err(shipped.refuse(&format!("{key}.convolution"), &width.to_string(), "it has none"));
        }
    }
    Ok(())
}

/// Refuses Transformers that are not built as in the paper: other mixers than attention, grouped heads.
pub(super) fn check_plain(shipped: &Shipped, config: &TransformerConfig) -> Result<()> {
    check_mixers(shipped, "the encoder's mixer", config.encoder_mixers())?;
    check_mixers(shipped, "the decoder's mixer", config.decoder_mixers())?;
    if config.n_key_value_heads() != config.n_heads {
        let n = config.n_key_value_heads().to_string();
        return Err(shipped.refuse(
            "model.n_key_value_heads",
            &n,
            "a head of keys and values for each of queries is needed",
        ));
    }
    Ok(())
}
