//! Gradient times input: how much each source token had to do with each target word, for any model.
//!
//! Attention weights say where a decoder looked; this says what a small change of each source vector would have done. A model
//! without attention has only this.

use crate::data::batch::Padded;
use crate::data::tokenizer::{BOS, EOS, UNK};
use crate::layers::{Pass, Watch};
use crate::models::Seq2Seq;
use crate::models::weights::to_vec;
use burn::module::Module;
use burn::tensor::{Device, Int, Tensor, TensorData, activation};

/// Tokens in one batch of repeated sentences.
const BATCH_TOKENS: usize = 4096;

/// `sum_d (x_id - u_id) d log p(y_t | y_<t, x) / d x_id` for every target word (rows) and source token (columns, the end symbol
/// last), where `u` is the vector of `<unk>` at the same place.
///
/// To first order this is by how much the log-probability of `y_t` would fall, in nats, if the token were not known. `source`
/// has no end symbol; `target` has one if the model wrote it.
///
/// The sentence stands in a batch once for each target word, so that one backward pass gives the gradients of many.
///
/// # Reference
/// Shrikumar et al., Not Just a Black Box: Learning Important Features Through Propagating Activation Differences, 2016.
pub fn gradient_times_input<M: Module + Seq2Seq>(model: &M, source: &[u32], target: &[u32]) -> Vec<Vec<f32>> {
    let places: Vec<usize> = (0..target.len()).collect();
    let log_p = |logits: Tensor<2>, part: &[usize]| {
        let words = indices(part.iter().map(|t| target[*t] as usize), &logits.device());
        activation::log_softmax(logits, 1).gather(1, words.unsqueeze_dim(1)).sum()
    };
    let source = with_end(source);
    attributions(model, Given { source: &source, before: &[BOS], target }, &places, log_p, |_, _| ())
}

fn with_end(source: &[u32]) -> Vec<u32> {
    source.iter().copied().chain([EOS]).collect()
}

/// A target word and the word that it is set against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contrast {
    /// The word's place in the target, counted from 0.
    pub place: usize,
    /// The other word.
    pub other: u32,
}

/// [`gradient_times_input`] of the log-odds `log p(y_t) - log p(other)` for the places `asked`, which is the difference of the
/// two logits. `progress` is told how many places are done, and of how many.
///
/// The probability of a word that is sure no longer changes with anything: its gradient is zero. The log-odds have no upper
/// end, and their gradient says why this word is better than that.
///
/// # Reference
/// Yin and Neubig, Interpreting Language Models with Contrastive Explanations, 2022, section 3.
pub fn contrasts_times_input<M: Module + Seq2Seq>(
    model: &M,
    source: &[u32],
    target: &[u32],
    asked: &[Contrast],
    progress: impl FnMut(usize, usize),
) -> Vec<Vec<f32>> {
    let source = with_end(source);
    log_odds(model, Given { source: &source, before: &[BOS], target }, asked, progress)
}

/// The same for a text without a source: for each place of `target`, which follows `beginning`, the columns are the tokens before
/// it, those of the beginning first.
pub fn contrasts_times_text<M: Module + Seq2Seq>(
    model: &M,
    beginning: &[u32],
    target: &[u32],
    asked: &[Contrast],
    progress: impl FnMut(usize, usize),
) -> Vec<Vec<f32>> {
    let given = Given { source: &[], before: beginning, target };
    let mut found = log_odds(model, given, asked, progress);
    for (row, contrast) in found.iter_mut().zip(asked) {
        // What comes later has no influence.
        row.truncate(beginning.len() + contrast.place);
    }
    found
}

/// What a model is given.
#[derive(Clone, Copy)]
struct Given<'a> {
    /// What its encoder reads, end symbol included; nothing for a text without a source.
    source: &'a [u32],
    /// What the decoder reads before the target; never empty.
    before: &'a [u32],
    target: &'a [u32],
}

impl Given<'_> {
    /// What the decoder reads up to the word before the target place `place`.
    fn input(&self, place: usize) -> Vec<u32> {
        self.before.iter().chain(self.target).copied().take(self.before.len() + place).collect()
    }

    /// The number of tokens whose influence on the target position `place` and those before it is computed.
    fn n_watched(&self, place: usize) -> usize {
        if self.source.is_empty() { self.before.len() + place } else { self.source.len() }
    }
}

/// Gradient times input of the log-odds of the words at the positions `asked`.
fn log_odds<M: Module + Seq2Seq>(
    model: &M,
    given: Given,
    asked: &[Contrast],
    progress: impl FnMut(usize, usize),
) -> Vec<Vec<f32>> {
    let mut others = vec![0; given.target.len()];
    asked.iter().for_each(|contrast| others[contrast.place] = contrast.other as usize);
    let log_odds = |logits: Tensor<2>, part: &[usize]| {
        let word = indices(part.iter().map(|t| given.target[*t] as usize), &logits.device());
        let other = indices(part.iter().map(|t| others[*t]), &logits.device());
        let logit = |ids: Tensor<1, Int>| logits.clone().gather(1, ids.unsqueeze_dim(1)).sum();
        logit(word) - logit(other)
    };
    let places: Vec<usize> = asked.iter().map(|contrast| contrast.place).collect();
    attributions(model, given, &places, log_odds, progress)
}

/// Gradient times input for the target places `places`, in ascending order, of what `quantity` makes of their logits (one row
/// for each place).
fn attributions<M: Module + Seq2Seq>(
    model: &M,
    given: Given,
    places: &[usize],
    quantity: impl Fn(Tensor<2>, &[usize]) -> Tensor<1>,
    mut progress: impl FnMut(usize, usize),
) -> Vec<Vec<f32>> {
    let Some(last) = places.last() else { return Vec::new() };
    let model = model.clone().train().no_grad();
    let unknown = encoder_input(&model, &vec![UNK; given.n_watched(*last)]);
    let mut found = Vec::with_capacity(places.len());
    while found.len() < places.len() {
        progress(found.len(), places.len());
        let left = &places[found.len()..];
        // As many as fit beside each other: the input of all of them ends with the last.
        let fits = |n: usize| n * given.source.len().max(given.before.len() + left[n - 1]) <= BATCH_TOKENS;
        let n = (1..=left.len()).take_while(|n| *n == 1 || fits(*n)).last().unwrap_or(1);
        found.extend(attribute(&model, given, &left[..n], &unknown, &quantity));
    }
    found
}

/// The attributions of the target places `part`, the last of them the furthest.
fn attribute<M: Seq2Seq>(
    model: &M,
    given: Given,
    part: &[usize],
    unknown: &Tensor<3>,
    quantity: impl Fn(Tensor<2>, &[usize]) -> Tensor<1>,
) -> Vec<Vec<f32>> {
    let device = model.device();
    let last = part.last().copied().unwrap_or(0);
    let input = given.input(last);
    let (len, n_watched) = (input.len(), given.n_watched(last));
    let padded = |ids: &[u32]| Padded::new(&vec![ids.to_vec(); part.len()], 0, &device);
    let mut watch = Watch::default();
    let logits = model.forward(&padded(given.source), &padded(&input), &mut Pass::watched(&mut watch).fused(true));
    let width = logits.dims()[2];
    // Row r has a gradient for its own target word only.
    let n_before = given.before.len();
    let rows = indices(part.iter().enumerate().map(|(row, t)| row * len + n_before - 1 + t), &device);
    let logits = logits.reshape([part.len() * len, width]).select(0, rows);
    let gradients = quantity(logits, part).backward();
    let read = watch.input.expect("every encoder shows its input");
    let gradient = read.grad(&gradients).expect("every target word depends on the source");
    let products = gradient * (read.inner() - unknown.clone().narrow(1, 0, n_watched));
    to_vec(products.sum_dim(2)).chunks(n_watched).map(<[f32]>::to_vec).collect()
}

/// What the encoder reads for a sentence: `[1, source_len, width]`.
fn encoder_input<M: Seq2Seq>(model: &M, source: &[u32]) -> Tensor<3> {
    let mut watch = Watch::default();
    model.encode(&Padded::new(&[source.to_vec()], 0, &model.device()), &mut Pass::watched(&mut watch));
    watch.input.expect("every encoder shows its input").inner()
}

fn indices(values: impl Iterator<Item = usize>, device: &Device) -> Tensor<1, Int> {
    let values: Vec<i32> = values.map(|value| value as i32).collect();
    let len = values.len();
    Tensor::from_data(TensorData::new(values, [len]), device)
}
