//! Gradient times input: how much each source word had to do with each target word, for any model.
//!
//! Attention weights say where a decoder looked; this says what a small change of each source vector would have done. A model
//! without attention has only this.

use crate::data::batch::Padded;
use crate::data::tokenizer::{BOS, EOS};
use crate::layers::Pass;
use crate::models::weights::{PathStack, to_vec};
use crate::models::{Seq2Seq, weights};
use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Gradients, Int, Tensor, TensorData, activation};

/// The word tables that a source may be looked up in, the first that there is.
const SOURCE_TABLES: [&str; 2] = ["source_embedding.weight", "target_embedding.weight"];

/// Most logits of one pass; they are what takes memory.
const MAX_LOGITS: usize = 1 << 24;

/// `sum_d x_id * d log p(y_t | y_<t, x) / d x_id` for every target word (rows) and source token (columns, the end symbol last).
///
/// `source` has no end symbol; `target` has one if the model wrote it. A positive value: the word at that place spoke for
/// `y_t`; a negative one: against it.
///
/// Each place gets a row of its own at the end of the word table, so that a word that stands twice has two gradients, and no
/// model has to know of any of this.
///
/// # Reference
/// Shrikumar et al., Not Just a Black Box: Learning Important Features Through Propagating Activation Differences, 2016;
/// Denil et al., Extraction of Salient Sentences from Labelled Documents, 2014.
///
/// # Panics
/// If the model has no table of [`SOURCE_TABLES`], or is one that learns.
pub fn gradient_times_input<M: Module + Seq2Seq>(model: &M, source: &[u32], target: &[u32]) -> Vec<Vec<f32>> {
    let shapes = weights::shapes(model);
    let path = SOURCE_TABLES.into_iter().find(|path| shapes.contains_key(*path)).expect("a model has word vectors");
    let ids: Vec<u32> = source.iter().copied().chain([EOS]).collect();
    let n_words = shapes[path][0];
    let widest = shapes.values().map(|shape| shape[0]).max().unwrap_or(1) + ids.len();
    let mut attributions = Vec::with_capacity(target.len());
    while attributions.len() < target.len() {
        let first = attributions.len();
        let fitting = (MAX_LOGITS / widest / target.len()).clamp(1, target.len() - first);
        attributions.extend(attribute(model, (path, n_words), &ids, target, first..first + fitting));
    }
    attributions
}

/// The attributions of the target words `asked`: one sentence of a batch for each.
fn attribute<M: Module + Seq2Seq>(
    model: &M,
    (path, n_words): (&str, usize),
    source: &[u32],
    target: &[u32],
    asked: std::ops::Range<usize>,
) -> Vec<Vec<f32>> {
    let (n_asked, len) = (asked.len(), source.len());
    let inputs: Vec<u32> = [BOS].into_iter().chain(target.iter().copied()).take(asked.end).collect();
    let mut extender = Extender { path: PathStack::default(), table: path, words: source.repeat(n_asked) };
    let model = model.clone().map(&mut extender);
    let device = model.device();

    let places = (0..n_asked * len).map(|i| (n_words + i) as u32).collect::<Vec<_>>();
    let sources: Vec<Vec<u32>> = places.chunks(len).map(<[u32]>::to_vec).collect();
    let logits = model.forward(
        &Padded::new(&sources, 0, &device),
        &Padded::new(&vec![inputs.clone(); n_asked], 0, &device),
        &mut Pass::inference(),
    );
    let [_, _, width] = logits.dims();
    let rows = indices(asked.clone().enumerate().map(|(row, t)| row * inputs.len() + t));
    let logits = logits.reshape([n_asked * inputs.len(), width]).select(0, Tensor::from_data(rows, &device));
    // A tied output scores the added rows as if they were words.
    let width = if path == SOURCE_TABLES[1] { width.min(n_words) } else { width };
    let log_p = activation::log_softmax(logits.narrow(1, 0, width), 1);
    let chosen: Tensor<1, Int> = Tensor::from_data(indices(asked.map(|t| target[t] as usize)), &device);
    let gradients = log_p.gather(1, chosen.unsqueeze_dim(1)).sum().backward();

    let mut reader = Reader { path: PathStack::default(), table: path, gradients, n_words, found: Vec::new() };
    model.visit(&mut reader);
    reader.found.chunks(len).map(<[f32]>::to_vec).collect()
}

fn indices(values: impl Iterator<Item = usize>) -> TensorData {
    let values: Vec<i32> = values.map(|value| value as i32).collect();
    let len = values.len();
    TensorData::new(values, [len])
}

/// Moves a model to the device that keeps graphs, and adds rows to one of its tables, the only thing with a gradient.
struct Extender<'a> {
    path: PathStack,
    table: &'a str,
    words: Vec<u32>,
}

impl ModuleMapper for Extender<'_> {
    fn enter_module(&mut self, name: &str, container: &str) {
        self.path.enter(name, container);
    }
    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.exit();
    }
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let (id, mut tensor, mapper) = param.consume();
        let is_table = self.path.path() == self.table;
        if is_table {
            let words = indices(self.words.iter().map(|word| *word as usize));
            let words = Tensor::from_data(words, &tensor.device());
            tensor = Tensor::cat(vec![tensor.clone(), tensor.select(0, words)], 0);
        }
        Param::from_mapped_value(id, Tensor::from_inner(tensor).set_require_grad(is_table), mapper)
    }
}

/// Reads the added rows: gradient times value, summed over the width.
struct Reader<'a> {
    path: PathStack,
    table: &'a str,
    gradients: Gradients,
    n_words: usize,
    found: Vec<f32>,
}

impl ModuleVisitor for Reader<'_> {
    fn enter_module(&mut self, name: &str, container: &str) {
        self.path.enter(name, container);
    }
    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.exit();
    }
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if self.path.path() != self.table {
            return;
        }
        let table = param.val();
        let gradient = table.grad(&self.gradients).expect("every target word depends on the source");
        let products = gradient * table.inner();
        let n_places = products.dims()[0] - self.n_words;
        let products = products.narrow(0, self.n_words, n_places);
        self.found = to_vec(products.sum_dim(D - 1));
    }
}
