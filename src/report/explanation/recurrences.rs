//! What the recurrences of a step have kept, from its trace.

use super::encoder::recurrence_factor;
use crate::layers::{Trace, TraceEntry};
use schemars::JsonSchema;
use serde::Serialize;

/// One layer's recurrence at one step.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct RecurrenceStep {
    /// The layer.
    pub layer: usize,
    /// The factor by which each element of the state is multiplied before something new is added, `a_t`: from 0, all is forgotten,
    /// to 1, all is kept. One number for each element of a vector, or of a head's keys, or one for each head. Empty for vanilla cells
    /// and for rules that forget nothing.
    pub kept: Vec<f32>,
    /// The part of what the memory has for the key that is replaced, `b_t` of the delta rules; one number for each head.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub replaced: Vec<f32>,
    /// What the layer shows of its state.
    pub state: Vec<f32>,
}

impl RecurrenceStep {
    /// Mean, least and most of what is kept.
    pub fn kept_range(&self) -> Option<[f32; 3]> {
        range(&self.kept)
    }

    /// The same of what is replaced.
    pub fn replaced_range(&self) -> Option<[f32; 3]> {
        range(&self.replaced)
    }
}

fn range(values: &[f32]) -> Option<[f32; 3]> {
    let mean = values.iter().sum::<f32>() / values.len() as f32;
    let least = values.iter().copied().reduce(f32::min)?;
    let most = values.iter().copied().reduce(f32::max)?;
    Some([mean, least, most])
}

/// The recurrences of a decoder's step, from the first layer on.
pub(super) fn recurrences(trace: &Trace) -> Vec<RecurrenceStep> {
    let of = |entry: &TraceEntry| {
        let place = entry.name.strip_suffix(".states").filter(|place| place.ends_with(".recurrence"))?;
        let layer = place.strip_prefix("decoder.")?.split('.').next()?.parse::<usize>().ok()?;
        let place = format!("{place}.forward");
        let values = |found: Option<&TraceEntry>| found.map(|entry| entry.values.clone()).unwrap_or_default();
        let (kept, replaced) =
            (values(recurrence_factor(trace, &place)), values(trace.get(&format!("{place}.replaced"))));
        Some(RecurrenceStep { layer: layer + 1, kept, replaced, state: entry.values.clone() })
    };
    trace.entries.iter().filter_map(of).collect()
}
