//! What the encoder did, from its trace.

use super::rows::{Attention, attentions};
use super::vectors::{State, StateLayer, change, norm};
use super::{Encoder, Mechanism, Tokens};
use crate::layers::{Trace, TraceEntry};

/// The vectors of a traced sequence: `[1, len, width]`.
pub(super) fn sequence(trace: &Trace, name: &str) -> Vec<Vec<f32>> {
    let Some(entry) = trace.get(name) else { return Vec::new() };
    let width = *entry.shape.last().expect("a sequence has axes");
    entry.values.chunks(width.max(1)).map(<[f32]>::to_vec).collect()
}

/// The factor by which a recurrence multiplies what it has: a linear one's, or the gate of a cell.
pub(super) fn recurrence_factor<'a>(trace: &'a Trace, place: &str) -> Option<&'a TraceEntry> {
    trace.get(&format!("{place}.kept")).or_else(|| trace.get(&format!("{place}.gate")))
}

/// States, self-attention and, without attention, the one context.
pub(super) fn encoder(trace: &Trace, mechanism: &Mechanism, source: &Tokens) -> Encoder {
    let mut layers = Vec::new();
    let mut below = sequence(trace, "encoder.embedded");
    while let states @ [_, ..] = &sequence(trace, &format!("encoder.{}.states", layers.len()))[..] {
        let mut states = states.to_vec();
        if mechanism.reads_backwards {
            // The end symbol is read last all the same.
            let words = states.len() - 1;
            states[..words].reverse();
        }
        let kept = kept(trace, layers.len(), mechanism);
        let of_token = |i: usize| State {
            kept: kept.iter().map(|direction| direction[i]).collect(),
            ..state(i, &states, &below, mechanism, source)
        };
        layers.push(StateLayer { layer: layers.len() + 1, states: (0..states.len()).map(of_token).collect() });
        below = states;
    }
    let rows = |attention: &Attention| attention.rows(source, |i| (i + 1, source[i].clone()));
    let attention = attentions(trace).iter().flat_map(rows).collect();
    let context = trace.get("encoder.context").filter(|_| !mechanism.has_attention);
    Encoder { layers, attention, context: context.map(|entry| entry.values.clone()) }
}

/// The state at token `i`, beside what came before it in each direction of reading, or beside the layer below.
fn state(i: usize, states: &[Vec<f32>], below: &[Vec<f32>], mechanism: &Mechanism, source: &[String]) -> State {
    let vector = &states[i];
    let changes = match mechanism.n_directions {
        0 => vec![change("the layer below", &below[i], vector)],
        n => {
            let width = vector.len() / n;
            let directions = (0..n).map(|direction| {
                let part = |j: usize| &states[j][direction * width..][..width];
                match before(i, states.len(), direction == 1, mechanism.reads_backwards) {
                    Some(j) => change(&source[j], part(j), part(i)),
                    None => change("start", &vec![0.0; width], part(i)),
                }
            });
            directions.collect()
        }
    };
    State { token: source[i].clone(), vector: vector.clone(), norm: norm(vector), kept: Vec::new(), changes }
}

/// For each direction in which a layer's recurrence reads, the mean factor of its state at each token.
fn kept(trace: &Trace, layer: usize, mechanism: &Mechanism) -> Vec<Vec<f32>> {
    let scope = if mechanism.reads_backwards { "reversed" } else { "recurrence" };
    let of = |direction: &str| {
        let entry = recurrence_factor(trace, &format!("encoder.{layer}.{scope}.{direction}"))?;
        // `[1, len, width]`, or `[1, heads, len, width]`.
        let [.., len, width] = entry.shape[..] else { return None };
        let n_heads = entry.values.len() / (len * width).max(1);
        let mean = |i: usize| {
            let heads = (0..n_heads).flat_map(|head| &entry.values[(head * len + i) * width..][..width]);
            heads.sum::<f32>() / (n_heads * width) as f32
        };
        let mut means: Vec<f32> = (0..len).map(mean).collect();
        if mechanism.reads_backwards {
            means[..len - 1].reverse();
        }
        Some(means)
    };
    ["forward", "backward"].into_iter().filter_map(of).collect()
}

/// The place that was read before place `i` of `len`, whose last is the end symbol.
fn before(i: usize, len: usize, is_second: bool, reads_backwards: bool) -> Option<usize> {
    let order = |i: usize| if reads_backwards && i + 1 < len { len - 2 - i } else { i };
    let at = order(i);
    let previous = if is_second { Some(at + 1).filter(|at| *at < len) } else { at.checked_sub(1) };
    previous.map(order)
}
