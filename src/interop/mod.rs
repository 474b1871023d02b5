//! Models of other programs as model folders of this one.

mod gpt2;
mod hugging_face;

pub use gpt2::import_gpt2;
