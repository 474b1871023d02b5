//! What a layer needs to know of the pass it takes part in: whether to drop, and whether somebody is watching.

use super::init::random_seed;
use super::position::Places;
use crate::kernels::dropout::Dropout;
use crate::ops::{self, Body, PreparedWeight, PreparedWeights};
use crate::random::{Purpose, Stream};
use burn::module::ParamId;
use burn::tensor::Tensor;
use std::sync::Arc;

/// One tensor seen during a pass.
#[derive(Clone, Debug, serde::Serialize)]
pub struct TraceEntry {
    /// Where and what, dotted: `decoder.0.cross_attention.weights`.
    pub name: String,
    /// The length of each axis.
    pub shape: Vec<usize>,
    /// The elements in row-major order.
    pub values: Vec<f32>,
}

/// Named tensors collected during passes, in the order in which they were computed.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct Trace {
    /// What was seen.
    pub entries: Vec<TraceEntry>,
    /// Which names are kept; all, if this is none.
    #[serde(skip)]
    wanted: Option<fn(&str) -> bool>,
}

impl Trace {
    /// A trace that keeps what `wanted` says yes to and never asks for the rest.
    pub fn of(wanted: fn(&str) -> bool) -> Self {
        Self { wanted: Some(wanted), ..Self::default() }
    }

    /// The last entry of that name.
    pub fn get(&self, name: &str) -> Option<&TraceEntry> {
        self.entries.iter().rev().find(|entry| entry.name == name)
    }
}

/// The encoder's input, kept apart from what it was made of, so that a gradient can be taken with respect to it.
#[derive(Debug, Default)]
pub struct Watch {
    /// `[batch, source_len, width]`, once the encoder has run.
    pub input: Option<Tensor<3>>,
}

/// Where the dropout masks of one forward pass come from.
#[derive(Clone, Copy, Debug)]
struct DropoutCounter {
    seed: u64,
    update: u64,
    part: u64,
    calls: u64,
}

/// One forward pass through a model: its dropout masks and, if asked for, its trace.
#[derive(Default)]
pub struct Pass<'a> {
    dropout: Option<DropoutCounter>,
    is_fused: bool,
    prepared: Option<Arc<PreparedWeights>>,
    replacement_rate: f64,
    trace: Option<&'a mut Trace>,
    watch: Option<&'a mut Watch>,
    scope: Vec<String>,
}

impl<'a> Pass<'a> {
    /// A pass without dropout, as in translating and scoring.
    pub fn inference() -> Self {
        Self::default()
    }

    /// One step of a search, with these forms of the matrices that it multiplies with.
    pub fn step_of(weights: &Arc<PreparedWeights>) -> Self {
        Self { is_fused: true, prepared: Some(weights.clone()), ..Self::default() }
    }

    /// A training pass: micro-batch `part` of update `update`.
    ///
    /// The masks are a function of the arguments and of the order of the layers, so that a resumed run drops the same units.
    pub fn training(seed: u64, update: u64, part: u64) -> Self {
        let dropout = Some(DropoutCounter { seed, update, part, calls: 0 });
        Self { dropout, is_fused: true, ..Self::default() }
    }

    /// What a layer of burn makes of its input: a training pass where gradients are wanted, its masks drawn from the device, else one
    /// without dropout.
    pub fn of<const D: usize>(input: &Tensor<D>) -> Self {
        match input.is_autodiff() {
            true => Self::training(random_seed(&input.device()), 0, 0),
            false => Self::inference(),
        }
    }

    /// The same pass, in which a decoder reads its own last word instead of the true one with probability `rate`.
    pub fn replacing_inputs(self, rate: f64) -> Self {
        Self { replacement_rate: rate, ..self }
    }

    /// The same pass, in which operations are fused where they can be, or made of burn's operations.
    pub fn fused(self, is_fused: bool) -> Self {
        Self { is_fused, ..self }
    }

    /// The form that operations take. Unless a pass says otherwise, they are fused in training only; a trace wants what they have inside,
    /// so that they are made of burn's operations then.
    pub fn body(&self) -> Body {
        if self.is_fused && !self.is_traced() { Body::Fused } else { Body::Written }
    }

    /// From now on, products are with these forms of the matrices that they have.
    pub fn use_prepared(&mut self, weights: &Arc<PreparedWeights>) {
        self.prepared = Some(weights.clone());
    }

    /// The same, if products are with such forms already: those of another model.
    pub fn exchange_prepared(&mut self, weights: &Arc<PreparedWeights>) {
        if self.prepared.is_some() {
            self.use_prepared(weights);
        }
    }

    /// The prepared form of a parameter, if this pass has it.
    pub fn prepared(&self, id: ParamId) -> Option<PreparedWeight> {
        self.prepared.as_ref().map(|weights| weights.get(id))
    }

    /// Whether a decoder reads some of its own words in this pass.
    pub fn replaces_inputs(&self) -> bool {
        self.dropout.is_some() && self.replacement_rate > 0.0
    }

    /// For each of `rows` sentences whether the decoder reads its own word at step `step`.
    pub fn replaced_inputs(&self, step: usize, rows: usize) -> Vec<bool> {
        let Some(counter) = &self.dropout else { return vec![false; rows] };
        let stream = Stream::new(counter.seed, Purpose::InputReplacement, &[counter.update, counter.part]);
        (0..rows).map(|row| stream.unit((step * rows + row) as u64) < self.replacement_rate).collect()
    }

    /// The positions of `len` tokens from the first on: in training a sorted sample of `0..n`, if there is a range, where `n` lies
    /// between `len` and `range`, each factor as likely as any other. A sequence that is longer than the range has its positions one
    /// after the other. The two stacks of a model have samples of their own.
    pub fn places(&self, range: Option<usize>, len: usize, stack: u64) -> Places {
        let following = Places::Following { offset: 0, len };
        let (Some(range), Some(counter)) = (range.filter(|range| len <= *range), &self.dropout) else {
            return following;
        };
        let stream = Stream::new(counter.seed, Purpose::Positions, &[counter.update, counter.part, stack]);
        let span = len as f64 * (range as f64 / len.max(1) as f64).powf(stream.unit(range as u64));
        Places::Drawn(stream.sample((span.round() as usize).clamp(len, range), len))
    }

    /// A pass without dropout that leaves its intermediate results in `trace`.
    pub fn traced(trace: &'a mut Trace) -> Self {
        Self { trace: Some(trace), ..Self::default() }
    }

    /// A pass without dropout that keeps the encoder's input in `watch`.
    pub fn watched(watch: &'a mut Watch) -> Self {
        Self { watch: Some(watch), ..Self::default() }
    }

    /// What every encoder calls on the vectors that it reads, in the order of the source words, before anything mixes them.
    pub fn watch_input(&mut self, input: Tensor<3>) -> Tensor<3> {
        let Some(watch) = &mut self.watch else { return input };
        let leaf = if input.is_autodiff() { input.detach().require_grad() } else { input };
        watch.input = Some(leaf.clone());
        leaf
    }

    /// Whether this pass drops units.
    pub fn is_training(&self) -> bool {
        self.dropout.is_some()
    }

    /// Whether somebody wants the intermediate results.
    pub fn is_traced(&self) -> bool {
        self.trace.is_some()
    }

    /// Runs `layer` with `name` in front of the names of all that it records.
    pub fn scoped<T>(&mut self, name: impl std::fmt::Display, layer: impl FnOnce(&mut Self) -> T) -> T {
        if self.trace.is_none() {
            return layer(self);
        }
        self.scope.push(name.to_string());
        let output = layer(self);
        self.scope.pop();
        output
    }

    /// Leaves `tensor` in the trace, if there is one.
    pub fn record<const D: usize>(&mut self, name: &str, tensor: impl FnOnce() -> Tensor<D>) {
        let Some(trace) = &mut self.trace else { return };
        let mut name_parts = self.scope.clone();
        name_parts.push(name.to_string());
        let name = name_parts.join(".");
        if trace.wanted.is_some_and(|wanted| !wanted(&name)) {
            return;
        }
        let tensor = tensor();
        let shape = tensor.dims().to_vec();
        let values = tensor.try_into_vec_as::<f32>().expect("a float tensor can be read as f32");
        trace.entries.push(TraceEntry { name, shape, values });
    }

    /// How many entries the trace has, if there is one.
    pub fn n_recorded(&self) -> usize {
        self.trace.as_ref().map_or(0, |trace| trace.entries.len())
    }

    /// Puts what `change` makes of the entries since `from` in their place.
    pub fn rework(&mut self, from: usize, change: impl FnOnce(Vec<TraceEntry>) -> Vec<TraceEntry>) {
        if let Some(trace) = &mut self.trace {
            let entries = trace.entries.split_off(from);
            trace.entries.extend(change(entries));
        }
    }

    /// Sets elements to zero with probability `rate` and scales the others by `1 / (1 - rate)`, in training passes only.
    ///
    /// burn's `Dropout` draws its numbers on one thread from a generator whose state cannot be saved; this one uses all cores
    /// and is a function of (seed, update, micro-batch, place in the model).
    ///
    /// # Reference
    /// Srivastava et al., Dropout, 2014.
    pub fn dropout<const D: usize>(&mut self, input: Tensor<D>, rate: f64) -> Tensor<D> {
        let body = self.body();
        match self.next_dropout(rate) {
            Some(dropout) => ops::dropout(input, dropout, body),
            None => input,
        }
    }

    /// The dropout of the next place in the model; none where nothing is dropped.
    pub fn next_dropout(&mut self, rate: f64) -> Option<Dropout> {
        let counter = self.dropout.as_mut().filter(|_| rate > 0.0)?;
        let stream = Stream::new(counter.seed, Purpose::Dropout, &[counter.update, counter.part, counter.calls]);
        counter.calls += 1;
        Some(Dropout::new(stream, rate))
    }
}
