//! The selected part of an explanation.

use super::Explanation;
use crate::error::{Error, Result};
use crate::report::attention::select::listed;
use std::collections::BTreeSet;

/// A step, a layer and a head, counted from 1; what is not given is all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// The step of the decoder.
    pub step: Option<usize>,
    /// The layer.
    pub layer: Option<usize>,
    /// The head.
    pub head: Option<usize>,
}

impl Selection {
    /// Whether a layer or a head is selected.
    pub fn is_of_heads(&self) -> bool {
        self.layer.is_some() || self.head.is_some()
    }

    /// Whether `step` is selected.
    pub fn has_step(&self, step: usize) -> bool {
        self.step.is_none_or(|chosen| chosen == step)
    }

    /// Whether the head `head` of layer `layer` is selected.
    pub fn has_head(&self, layer: usize, head: usize) -> bool {
        self.layer.is_none_or(|chosen| chosen == layer) && self.head.is_none_or(|chosen| chosen == head)
    }

    /// Checks that the selected parts exist.
    ///
    /// # Errors
    /// If it is not; the message says what is.
    pub fn check(&self, explanation: &Explanation) -> Result<()> {
        let n_steps = explanation.target.len();
        if let Some(step) = self.step.filter(|step| !(1..=n_steps).contains(step)) {
            let what = if explanation.mechanism.is_text { "text" } else { "translation" };
            let message = format!("--step {step}: this {what} has {}", range("step", n_steps));
            return Err(Error::message(message));
        }
        if !self.is_of_heads() {
            return Ok(());
        }
        let rows = explanation.steps.iter().flat_map(|step| step.attention.iter().chain(&step.self_attention));
        let rows = rows.chain(&explanation.encoder.attention);
        let there: BTreeSet<(usize, usize)> = rows.map(|row| (row.layer, row.head)).collect();
        if there.is_empty() {
            let flag = if self.layer.is_some() { "--layer" } else { "--head" };
            return Err(Error::message(format!("{flag}: this model has no attention, so there is none to choose")));
        }
        // Beside layers with attention there may be others.
        let layers: BTreeSet<usize> = there.iter().map(|(layer, _)| *layer).collect();
        let of_layer = there.iter().filter(|(layer, _)| self.layer.is_none_or(|chosen| chosen == *layer));
        let heads: BTreeSet<usize> = of_layer.map(|(_, head)| *head).collect();
        for (flag, chosen, there) in [("layer", self.layer, layers), ("head", self.head, heads)] {
            if let Some(chosen) = chosen.filter(|chosen| !there.contains(chosen)) {
                let message = format!("--{flag} {chosen}: this model has attention in {}", listed(flag, &there));
                return Err(Error::message(message));
            }
        }
        Ok(())
    }
}

/// `7 steps, 1 to 7`.
fn range(what: &str, n: usize) -> String {
    if n == 1 { format!("one {what}, 1") } else { format!("{n} {what}s, 1 to {n}") }
}

impl Explanation {
    /// This explanation with only the selected steps and rows.
    pub fn select(mut self, selection: &Selection) -> Self {
        self.steps.retain(|step| selection.has_step(step.step));
        let keep = |row: &super::AttentionRow| selection.has_head(row.layer, row.head);
        for step in &mut self.steps {
            step.attention.retain(keep);
            step.self_attention.retain(keep);
        }
        self.encoder.attention.retain(keep);
        self.memories.retain(|memory| selection.has_head(memory.layer, memory.head));
        self
    }
}
