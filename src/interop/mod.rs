//! Models of other programs as model folders of this one.

mod bert;
mod gpt2;
mod hugging_face;

pub use bert::import_bert;
pub use gpt2::import_gpt2;
