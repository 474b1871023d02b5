//! Training data that were tokenized once, in a folder of their own:
//!
//! ```text
//! prepared/
//!   manifest.json      what it was made of, and what there is; with its own checksum
//!   tokenizer.json     the vocabularies
//!   000000.shard ...   token ids, see data::shards
//!   valid.jsonl        what was held out of the training data, if anything was: a pair or a line as JSON
//!   test.jsonl
//! ```

mod content;
mod make;
mod manifest;
mod open;
mod passes;
mod source;
mod tokenize;

pub use make::{PrepareOptions, Prepared, SHARD_TOKENS, prepare};
pub(super) use open::{OpenedPairs, OpenedText, held_out, pairs, text};
pub use source::Preparing;

/// The file of the vocabularies.
const TOKENIZER: &str = "tokenizer.json";
