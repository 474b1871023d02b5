//! Looking inside: maps and numbers by hand, drawings, pages, and the laws of traced passes. Here is what the modules share.

mod ablation;
mod alignment;
mod attention;
mod drawing;
mod examples;
mod explain;
mod explain_pages;
mod faithfulness;
mod formulas;
mod memory;
mod pages;
mod states;

use lookback::report::attention::{AttentionMap, Part, SentenceMaps};

/// A map of one head.
pub fn map(part: Part, place: [usize; 2], n_columns: usize, weights: &[f32]) -> AttentionMap {
    AttentionMap {
        part,
        layer: Some(place[0]),
        head: Some(place[1]),
        n_rows: weights.len() / n_columns,
        n_columns,
        weights: weights.to_vec(),
        is_causal: false,
    }
}

/// Two source words, one target word, two heads.
pub fn sentence() -> SentenceMaps {
    let words = |words: &[&str]| words.iter().map(|word| word.to_string()).collect::<Vec<_>>();
    SentenceMaps {
        number: 3,
        source_text: "ein <Hund>".into(),
        target_text: "dog".into(),
        source: words(&["ein", "<Hund>", "</s>"]),
        input: words(&["<s>", "dog"]),
        target: words(&["dog", "</s>"]),
        probabilities: vec![0.75, 0.5],
        maps: vec![
            map(Part::Cross, [1, 1], 3, &[0.25, 0.75, 0.0, 0.0, 0.0, 1.0]),
            map(Part::Cross, [1, 2], 3, &[0.75, 0.25, 0.0, 0.5, 0.0, 0.5]),
            map(Part::Decoder, [1, 1], 2, &[1.0, 0.0, 0.5, 0.5]),
        ],
    }
}
