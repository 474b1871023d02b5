//! Models of other programs as model folders of this one, and models of this one as folders of other programs.

mod bert;
mod ctranslate2;
mod gpt2;
mod hugging_face;
mod language_model;
mod marian;
mod sentence_piece;
mod shipped;
mod transformers;

pub use bert::import_bert;
pub use ctranslate2::export_ctranslate2;
pub use gpt2::import_gpt2;
pub use marian::import_marian;
pub use transformers::export_hugging_face;

/// The score of a word that is never written: a softmax leaves nothing of it, and no sum with it is infinite.
const NEVER: f32 = -1e9;
