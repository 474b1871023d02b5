//! Data: generated tasks, corpora, tokenizers, fetching.

mod corpus;
mod fetch;
mod random;
mod tasks;
mod tokenizer;
