//! Is attention to be believed? Source words are erased, and what becomes of the prediction is set against the weights and
//! against gradient x input.
//!
//! For each target word the source word with the most weight, the one with the least, and all others are replaced by `<unk>`
//! one at a time; the effect is by how much the log-probability of the target word falls. A faithful explanation gives much
//! weight to words whose loss has a large effect. Gradient x input is measured from the same `<unk>`: the sum over the width
//! of `d log p(y_t) / d x_j * (x_j - x_unk)`, which is the effect of erasing to first order.
//!
//! # Reference
//! Jain and Wallace, Attention is not Explanation, 2019; Wiegreffe and Pinter, Attention is not not Explanation, 2019;
//! DeYoung et al., ERASER, 2020, for comprehensiveness by erasing.

use crate::data::batch::Padded;
use crate::data::tokenizer::UNK;
use crate::layers::Pass;
use crate::models::Seq2Seq;
use crate::models::weights::to_vec;
use crate::report::attention::collect::Written;
use crate::report::attribution;
use burn::module::Module;
use burn::tensor::{Tensor, TensorData, activation};
use schemars::JsonSchema;
use serde::Serialize;

/// Tokens in one batch of erased or repeated sentences.
const BATCH_TOKENS: usize = 4096;

/// What each source word did for each target word, by one way of telling.
///
/// # Shapes
/// - values: `[target_len, n_words]`, row-major; the source's end symbol is not among the words
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Attribution {
    /// Source words.
    pub n_words: usize,
    /// Row-major, one row for each target word.
    pub values: Vec<f32>,
}

impl Attribution {
    /// The source words' part of attention weights whose last column is the end symbol.
    pub fn of_weights(weights: &[f32], n_columns: usize) -> Self {
        let n_words = n_columns - 1;
        Self { n_words, values: weights.chunks(n_columns).flat_map(|row| row[..n_words].to_vec()).collect() }
    }

    fn rows(&self) -> impl Iterator<Item = &[f32]> {
        self.values.chunks(self.n_words.max(1))
    }
}

/// What happens to a target when source words are erased.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Erasure {
    /// By how much the log-probability of each target word falls when a source word is erased, in nats.
    pub effect: Attribution,
    /// Whether the likeliest word is another one then; laid out as the effect.
    pub changed: Vec<bool>,
}

/// Log-probabilities of the target's words `[rows, target_len]` and the likeliest words, for several sources of one length.
fn predict<M: Seq2Seq>(model: &M, sources: &[Vec<u32>], pair: &Written) -> (Vec<f32>, Vec<u32>) {
    let device = model.device();
    let (mut log_p, mut best) = (Vec::new(), Vec::new());
    let n_rows = (BATCH_TOKENS / (pair.source.len() + 1).max(pair.target.len())).max(1);
    for part in sources.chunks(n_rows) {
        let source = Padded::sources(part, &device);
        let input = Padded::new(&vec![pair.input(); part.len()], 0, &device);
        let logits = model.forward(&source, &input, &mut Pass::inference().fused(true));
        best.extend(
            logits
                .clone()
                .argmax(2)
                .try_into_vec_as::<i32>()
                .expect("ids are whole numbers")
                .iter()
                .map(|id| *id as u32),
        );
        let picked = activation::log_softmax(logits, 2).gather(2, target_ids(pair, part.len(), &device));
        log_p.extend(to_vec(picked));
    }
    (log_p, best)
}

/// The target once for each of `n` rows, `[n, target_len, 1]`.
fn target_ids(pair: &Written, n: usize, device: &burn::tensor::Device) -> Tensor<3, burn::tensor::Int> {
    let ids: Vec<i32> = pair.target.iter().map(|id| *id as i32).collect();
    Tensor::from_data(TensorData::new(ids.repeat(n), [n, pair.target.len(), 1]), device)
}

/// Erases every source word in turn; the target is given.
pub fn erase<M: Seq2Seq>(model: &M, pair: &Written) -> Erasure {
    let (n_words, n_targets) = (pair.source.len(), pair.target.len());
    let mut sources = vec![pair.source.clone()];
    for j in 0..n_words {
        let mut erased = pair.source.clone();
        erased[j] = UNK;
        sources.push(erased);
    }
    let (log_p, best) = predict(model, &sources, pair);
    let at = |j: usize, t: usize| (j + 1) * n_targets + t;
    let places = || (0..n_targets).flat_map(|t| (0..n_words).map(move |j| (t, j)));
    Erasure {
        effect: Attribution { n_words, values: places().map(|(t, j)| log_p[t] - log_p[at(j, t)]).collect() },
        changed: places().map(|(t, j)| best[t] != best[at(j, t)]).collect(),
    }
}

/// Gradient x input of every target word, the input measured from `<unk>`; see [`attribution`].
pub fn gradient_times_input<M: Seq2Seq + Module>(model: &M, pair: &Written) -> Attribution {
    let n_words = pair.source.len();
    let rows = attribution::gradient_times_input(model, &pair.source, &pair.target);
    Attribution { n_words, values: rows.iter().flat_map(|row| &row[..n_words]).copied().collect() }
}

/// How well one way of telling agrees with erasing, over many target words.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Faithfulness {
    /// Mean fall of the log-probability, in nats, when the word with the largest value is erased.
    pub effect_of_most: f64,
    /// The same for the word with the smallest value.
    pub effect_of_least: f64,
    /// The same for any word.
    pub effect_of_any: f64,
    /// How often the likeliest target word changes when the word with the largest value is erased.
    pub changed_by_most: f64,
    /// The same for the word with the smallest value.
    pub changed_by_least: f64,
    /// The same for any word.
    pub changed_by_any: f64,
    /// How often the word with the largest value is the one whose loss has the largest effect.
    pub same_most: f64,
    /// Mean rank correlation (Spearman) of values and effects.
    pub rank_correlation: f64,
    /// Target words.
    pub n_targets: usize,
}

impl Faithfulness {
    /// Sums up pairs of an attribution and the erasure of the same sentence. Sources of one word say nothing and are left out.
    pub fn of<'a>(pairs: impl IntoIterator<Item = (&'a Attribution, &'a Erasure)>) -> Self {
        let mut sum = Self::default();
        for (told, erased) in pairs.into_iter().filter(|(told, _)| told.n_words > 1) {
            let changed = erased.changed.chunks(told.n_words);
            for ((values, effects), changed) in told.rows().zip(erased.effect.rows()).zip(changed) {
                let (most, least) = (place_of_largest(values), place_of_smallest(values));
                let share = |changed: bool| f64::from(u8::from(changed));
                let n = told.n_words as f64;
                sum.n_targets += 1;
                sum.effect_of_most += f64::from(effects[most]);
                sum.effect_of_least += f64::from(effects[least]);
                sum.effect_of_any += effects.iter().map(|effect| f64::from(*effect)).sum::<f64>() / n;
                sum.changed_by_most += share(changed[most]);
                sum.changed_by_least += share(changed[least]);
                sum.changed_by_any += changed.iter().map(|changed| share(*changed)).sum::<f64>() / n;
                sum.same_most += share(most == place_of_largest(effects));
                sum.rank_correlation += spearman(values, effects);
            }
        }
        let n = sum.n_targets.max(1) as f64;
        for value in [
            &mut sum.effect_of_most,
            &mut sum.effect_of_least,
            &mut sum.effect_of_any,
            &mut sum.changed_by_most,
            &mut sum.changed_by_least,
            &mut sum.changed_by_any,
            &mut sum.same_most,
            &mut sum.rank_correlation,
        ] {
            *value /= n;
        }
        sum
    }
}

fn place_of_largest(values: &[f32]) -> usize {
    (0..values.len()).reduce(|a, b| if values[b] > values[a] { b } else { a }).unwrap_or(0)
}

fn place_of_smallest(values: &[f32]) -> usize {
    (0..values.len()).reduce(|a, b| if values[b] < values[a] { b } else { a }).unwrap_or(0)
}

/// Spearman's rank correlation; equal values share the mean of their ranks; 0 where either side does not vary.
pub fn spearman(a: &[f32], b: &[f32]) -> f64 {
    let (a, b) = (ranks(a), ranks(b));
    let mean = (a.len() as f64 - 1.0) / 2.0;
    let sum = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| (x - mean) * (y - mean)).sum::<f64>();
    let spread = (sum(&a, &a) * sum(&b, &b)).sqrt();
    if spread == 0.0 { 0.0 } else { sum(&a, &b) / spread }
}

fn ranks(values: &[f32]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|i, j| values[*i].total_cmp(&values[*j]));
    let mut ranks = vec![0.0; values.len()];
    let mut start = 0;
    while start < order.len() {
        let equal = order[start..].iter().take_while(|i| values[**i] == values[order[start]]).count();
        for i in &order[start..start + equal] {
            ranks[*i] = start as f64 + (equal as f64 - 1.0) / 2.0;
        }
        start += equal;
    }
    ranks
}
