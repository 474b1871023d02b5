//! Data: generated tasks, corpora, tokenizers, fetching.

mod corpus;
mod fetch;
mod held_out;
mod masking;
mod plan;
mod random;
mod series;
mod tasks;
mod text;
mod tokenizer;
