//! Maps as files for other programs: CSV and safetensors.

use super::{AttentionMap, SentenceMaps};
use crate::error::Result;
use crate::models::weights::{Weight, Weights, to_safetensors};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

/// One line for each weight (or share, of what a recurrence keeps), with the tokens beside it; layers and heads count from 1,
/// positions from 0.
///
/// What a position cannot see, such as the decoder its future, is left out. Texts have a last column with the token
/// that a row predicts.
pub fn csv(sentences: &[(&SentenceMaps, Vec<AttentionMap>)]) -> String {
    let mut text = String::from("sentence,part,layer,head,row,column,row_token,column_token,weight");
    text += if sentences.iter().any(|(sentence, _)| sentence.is_text()) { ",predicted\n" } else { "\n" };
    for (sentence, maps) in sentences {
        for map in maps {
            let quoted = |tokens: Vec<&str>| tokens.into_iter().map(quoted).collect::<Vec<_>>();
            let (rows, columns) = (quoted(sentence.rows(map.part)), quoted(sentence.columns(map.part)));
            let number = |number: Option<usize>| number.map(|number| number.to_string()).unwrap_or_default();
            let place = format!("{},{},{},{}", sentence.number, map.part.name(), number(map.layer), number(map.head));
            for (i, row_token) in rows.iter().enumerate() {
                let predicted =
                    if sentence.is_text() { format!(",{}", self::quoted(&sentence.target[i])) } else { String::new() };
                let row = map.row(i);
                for j in map.seen(i) {
                    let weight = row[j];
                    let _ = writeln!(text, "{place},{i},{j},{row_token},{},{weight}{predicted}", columns[j]);
                }
            }
        }
    }
    text
}

/// A field of a CSV file.
pub(crate) fn quoted(field: &str) -> String {
    format!("\"{}\"", field.replace('"', "\"\""))
}

/// Every map as a tensor `[rows, columns]` named `SENTENCE.PART.LAYER.HEAD`, as far as it has them, such as `1.cross.2.4`.
///
/// The metadata hold the labels as JSON: `1.cross.rows` and `1.cross.columns`, and so for every part; of a text also
/// `1.predicted`, the token that each row predicts.
///
/// # Errors
/// If the file would be too large for its format.
pub fn safetensors(sentences: &[(&SentenceMaps, Vec<AttentionMap>)]) -> Result<Vec<u8>> {
    let mut tensors = Weights::new();
    let mut metadata = HashMap::from([("format".to_string(), "lookback attention maps".to_string())]);
    for (sentence, maps) in sentences {
        let n = sentence.number;
        for map in maps {
            let part = map.part;
            let labels = |labels: Vec<&str>| serde_json::to_string(&labels).expect("labels are plain text");
            metadata.insert(format!("{n}.{}.rows", part.name()), labels(sentence.rows(part)));
            metadata.insert(format!("{n}.{}.columns", part.name()), labels(sentence.columns(part)));
            let weight = Weight { shape: vec![map.n_rows, map.n_columns], values: map.weights.clone() };
            tensors.insert(format!("{n}.{}", map.name()), weight);
        }
        if sentence.is_text() {
            let predicted = serde_json::to_string(&sentence.target).expect("labels are plain text");
            metadata.insert(format!("{n}.predicted"), predicted);
        }
        metadata.insert(format!("{n}.source"), sentence.source_text.clone());
        metadata.insert(format!("{n}.target"), sentence.target_text.clone());
    }
    to_safetensors(&tensors, &BTreeMap::new(), metadata)
}
