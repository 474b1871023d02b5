//! From a trace to rows of attention.
//!
//! Whatever leaves `NAME.weights` in a trace is an attention; what it leaves beside it (`query`, `keys`, `values`, `scores`,
//! `context`, `center`) is taken where it is there.

use super::{AttentionMemory, AttentionRow, Tokens};
use crate::layers::{Trace, TraceEntry};

/// One attention of a trace of one sentence.
pub(super) struct Attention<'a> {
    trace: &'a Trace,
    /// `decoder.0.cross_attention`.
    pub name: &'a str,
    weights: &'a TraceEntry,
}

/// Whether an attention looks at its own sequence.
pub(super) fn is_self(name: &str) -> bool {
    name.ends_with("self_attention")
}

/// All attentions of a trace, in the order in which they were computed.
pub(super) fn attentions(trace: &Trace) -> Vec<Attention<'_>> {
    let named = trace.entries.iter().filter_map(|entry| Some((entry.name.strip_suffix(".weights")?, entry)));
    named.map(|(name, weights)| Attention { trace, name, weights }).collect()
}

impl Attention<'_> {
    /// The layer, from 1: the number in the name.
    pub fn layer(&self) -> usize {
        self.name.split('.').find_map(|part| part.parse::<usize>().ok()).map_or(1, |layer| layer + 1)
    }

    fn entry(&self, what: &str) -> Option<&TraceEntry> {
        self.trace.get(&format!("{}.{what}", self.name))
    }

    /// `[.., queries, keys]`: the heads are what stands before.
    fn n_queries(&self) -> usize {
        let shape = &self.weights.shape;
        shape[shape.len() - 2]
    }

    fn n_keys(&self) -> usize {
        *self.weights.shape.last().expect("weights have axes")
    }

    fn n_heads(&self) -> usize {
        self.weights.values.len() / (self.n_queries() * self.n_keys()).max(1)
    }

    /// The part of an entry that belongs to one head and query.
    fn part(&self, what: &str, head: usize, query: usize) -> Vec<f32> {
        let Some(entry) = self.entry(what) else { return Vec::new() };
        let width = entry.values.len() / (self.n_heads() * self.n_queries());
        entry.values[(head * self.n_queries() + query) * width..][..width].to_vec()
    }

    /// One row for each head and query. `source` names the keys; `target` says step and name of each query.
    pub fn rows(&self, source: &Tokens, target: impl Fn(usize) -> (usize, String)) -> Vec<AttentionRow> {
        let cells = (0..self.n_heads()).flat_map(|head| (0..self.n_queries()).map(move |query| (head, query)));
        let row = |(head, query)| {
            let weights = self.part("weights", head, query);
            let (step, target) = target(query);
            let center = self.part("center", head, query).first().copied();
            AttentionRow {
                name: self.name.to_owned(),
                layer: self.layer(),
                head: head + 1,
                step,
                source: source.clone(),
                target,
                query: self.part("query", head, query),
                scores: self.part("scores", head, query),
                context: self.part("context", head, query),
                window: center.and_then(|_| window(&weights)),
                center,
                weights,
            }
        };
        cells.map(row).collect()
    }

    /// Keys and values of each head; heads that share a pair have the same.
    pub fn memories(&self) -> Vec<AttentionMemory> {
        let n_heads = self.n_heads();
        let of = |what: &str, head: usize| {
            let Some(entry) = self.entry(what) else { return Vec::new() };
            let [.., n_keys, width] = entry.shape[..] else { return Vec::new() };
            if n_keys * width == 0 {
                return Vec::new();
            }
            let n_pairs = entry.values.len() / (n_keys * width);
            let pair = head * n_pairs / n_heads;
            entry.values[pair * n_keys * width..][..n_keys * width].chunks(width).map(<[f32]>::to_vec).collect()
        };
        let memory = |head| AttentionMemory {
            name: self.name.to_owned(),
            layer: self.layer(),
            head: head + 1,
            keys: of("keys", head),
            values: of("values", head),
        };
        (0..n_heads).map(memory).collect()
    }
}

/// First and last position with a weight, counted from 1.
fn window(weights: &[f32]) -> Option<[usize; 2]> {
    let is_seen = |weight: &f32| *weight > 0.0;
    Some([weights.iter().position(is_seen)? + 1, weights.iter().rposition(is_seen)? + 1])
}
