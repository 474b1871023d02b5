//! What a trace says of one attention over source and target, told apart.
//!
//! A word of the target looks at the source and at the target so far in one attention, with one softmax. Whoever looks at the
//! model wants to see both: the entry of every word over all words becomes one over the source, named as the attention to the
//! source of a model that has two, and one over the target. Their weights sum to one together.

use crate::layers::TraceEntry;

/// The entries of layers over a sequence whose first `n_source` words are the source; `n_source_rows` of the queries are.
pub(super) fn apart(entries: Vec<TraceEntry>, n_source: usize, n_source_rows: usize) -> Vec<TraceEntry> {
    entries.into_iter().flat_map(|entry| parts(entry, n_source, n_source_rows)).collect()
}

fn parts(entry: TraceEntry, n_source: usize, n_source_rows: usize) -> Vec<TraceEntry> {
    let Some((place, what)) = entry.name.rsplit_once('.') else { return vec![entry] };
    // The factors of a recurrence are multiplied along the whole sequence.
    if what == "kept" || what == "replaced" {
        return vec![entry];
    }
    let Some(layer) = place.strip_suffix(".self_attention") else {
        // Of all other entries the words of the source have been seen when it was read.
        return vec![match entry.shape.len() {
            3 => cut(&entry, entry.name.clone(), 1, n_source_rows..entry.shape[1]),
            _ => entry,
        }];
    };
    let (to_source, to_target) = (format!("{layer}.cross_attention.{what}"), entry.name.clone());
    let (rows, columns) = (entry.shape[2], entry.shape[3]);
    match what {
        "weights" | "scores" => {
            let seen = cut(&entry, entry.name.clone(), 2, n_source_rows..rows);
            vec![cut(&seen, to_source, 3, 0..n_source), cut(&seen, to_target, 3, n_source..columns)]
        }
        "keys" | "values" => vec![cut(&entry, to_source, 2, 0..n_source), cut(&entry, to_target, 2, n_source..rows)],
        // The query is asked, and the context is of both.
        "query" | "context" => [to_source, to_target].map(|name| cut(&entry, name, 2, n_source_rows..rows)).into(),
        _ => vec![entry],
    }
}

/// The part `range` of an axis, under another name.
fn cut(entry: &TraceEntry, name: String, axis: usize, range: std::ops::Range<usize>) -> TraceEntry {
    let inner: usize = entry.shape[axis + 1..].iter().product();
    let block = entry.shape[axis] * inner;
    let values = entry.values.chunks(block.max(1)).flat_map(|block| &block[range.start * inner..range.end * inner]);
    let mut shape = entry.shape.clone();
    shape[axis] = range.len();
    TraceEntry { name, values: values.copied().collect(), shape }
}
