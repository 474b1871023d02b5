//! Model files of SentencePiece.

use crate::data::tokenizer::{Cutter, Normalizer};
use crate::error::{Error, Result};
use prost::Message;
use std::path::Path;

/// The parts that are read of `sentencepiece_model.proto`, by their numbers there.
#[derive(Message)]
struct ModelProto {
    #[prost(message, repeated, tag = "1")]
    pieces: Vec<Piece>,
    #[prost(message, optional, tag = "2")]
    trainer: Option<TrainerSpec>,
    #[prost(message, optional, tag = "3")]
    normalizer: Option<NormalizerSpec>,
    #[prost(message, optional, tag = "5")]
    denormalizer: Option<NormalizerSpec>,
}

#[derive(Message)]
struct Piece {
    #[prost(string, tag = "1")]
    piece: String,
    #[prost(float, tag = "2")]
    score: f32,
    #[prost(int32, optional, tag = "3")]
    kind: Option<i32>,
}

#[derive(Message)]
struct TrainerSpec {
    #[prost(int32, optional, tag = "3")]
    model_type: Option<i32>,
    #[prost(bool, optional, tag = "24")]
    treat_whitespace_as_suffix: Option<bool>,
    #[prost(bool, optional, tag = "35")]
    byte_fallback: Option<bool>,
}

#[derive(Message)]
struct NormalizerSpec {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(bytes = "vec", tag = "2")]
    precompiled_charsmap: Vec<u8>,
    #[prost(bool, optional, tag = "3")]
    add_dummy_prefix: Option<bool>,
    #[prost(bool, optional, tag = "4")]
    remove_extra_whitespaces: Option<bool>,
    #[prost(bool, optional, tag = "5")]
    escape_whitespaces: Option<bool>,
}

/// Kinds of pieces: those that text is cut into, the unknown one, and marks that stand in no text.
const NORMAL: i32 = 1;
const UNKNOWN: i32 = 2;
const CONTROL: i32 = 3;
/// Kinds of models.
const UNIGRAM: i32 = 1;

/// A model file that cuts texts in the same way.
pub(super) fn write(cutter: &Cutter) -> Vec<u8> {
    let special = |piece: &str, kind| Piece { piece: piece.to_owned(), score: 0.0, kind: Some(kind) };
    let specials = [special("<unk>", UNKNOWN), special("<s>", CONTROL), special("</s>", CONTROL)];
    let normal = |(piece, score): &(String, f32)| Piece { piece: piece.clone(), score: *score, kind: Some(NORMAL) };
    let model = ModelProto {
        pieces: specials.into_iter().chain(cutter.pieces.iter().map(normal)).collect(),
        trainer: Some(TrainerSpec { model_type: Some(UNIGRAM), ..TrainerSpec::default() }),
        normalizer: Some(NormalizerSpec {
            name: "imported".to_owned(),
            precompiled_charsmap: cutter.normalizer.table(),
            add_dummy_prefix: Some(cutter.normalizer.adds_space),
            remove_extra_whitespaces: Some(cutter.normalizer.trims_spaces),
            escape_whitespaces: Some(true),
        }),
        denormalizer: None,
    };
    model.encode_to_vec()
}

/// What a model file cuts texts with.
///
/// # Errors
/// If it is no model file, or one of a kind that is not supported.
pub(super) fn read(path: &Path) -> Result<Cutter> {
    let fault = |fault: String| Error::file(path, fault);
    let bytes = std::fs::read(path).map_err(Error::io(path))?;
    let model = ModelProto::decode(&bytes[..]).map_err(|error| fault(format!("is no SentencePiece model: {error}")))?;
    let refuse = |what: &str| Err(fault(format!("is a SentencePiece model {what}, which is not supported here")));
    let trainer = model.trainer.unwrap_or_default();
    if trainer.model_type.unwrap_or(UNIGRAM) != UNIGRAM {
        return refuse("of another kind than unigram (model_type)");
    }
    if trainer.byte_fallback == Some(true) {
        return refuse("with byte_fallback");
    }
    if trainer.treat_whitespace_as_suffix == Some(true) {
        return refuse("with treat_whitespace_as_suffix");
    }
    if model.denormalizer.is_some_and(|spec| !spec.precompiled_charsmap.is_empty()) {
        return refuse("with a denormalizer");
    }
    let spec = model.normalizer.unwrap_or_default();
    if spec.escape_whitespaces == Some(false) {
        return refuse("without escape_whitespaces");
    }
    let mut pieces = Vec::new();
    for Piece { piece, score, kind } in model.pieces {
        match kind.unwrap_or(NORMAL) {
            NORMAL => pieces.push((piece, score)),
            UNKNOWN | CONTROL => {}
            kind => {
                return refuse(&format!("whose piece `{piece}` is of kind {kind} (user-defined, unused or a byte)"));
            }
        }
    }
    if pieces.is_empty() {
        return Err(fault("is no SentencePiece model: it has no pieces".into()));
    }
    let [adds_space, trims_spaces] =
        [spec.add_dummy_prefix, spec.remove_extra_whitespaces].map(|is_set| is_set.unwrap_or(true));
    let normalizer = Normalizer::new(&spec.precompiled_charsmap, adds_space, trims_spaces).map_err(fault)?;
    Ok(Cutter { pieces, normalizer })
}
