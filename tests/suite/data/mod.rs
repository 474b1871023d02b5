//! Data: generated tasks, corpora, tokenizers, fetching.

mod corpus;
mod fetch;
mod held_out;
mod random;
mod tasks;
mod text;
mod tokenizer;
