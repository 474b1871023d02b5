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
    let model = model.clone().train().no_grad();
    let source: Vec<u32> = source.iter().copied().chain([EOS]).collect();
    let unknown = encoder_input(&model, &vec![UNK; source.len()]);
    let mut attributions = Vec::with_capacity(target.len());
    while attributions.len() < target.len() {
        let first = attributions.len();
        let n_asked = (BATCH_TOKENS / source.len().max(target.len())).clamp(1, target.len() - first);
        attributions.extend(attribute(&model, &source, target, first..first + n_asked, &unknown));
    }
    attributions
}

/// The attributions of the target words `asked`.
fn attribute<M: Seq2Seq>(
    model: &M,
    source: &[u32],
    target: &[u32],
    asked: std::ops::Range<usize>,
    unknown: &Tensor<3>,
) -> Vec<Vec<f32>> {
    let device = model.device();
    let input: Vec<u32> = [BOS].into_iter().chain(target.iter().copied()).take(asked.end).collect();
    let padded = |ids: &[u32]| Padded::new(&vec![ids.to_vec(); asked.len()], 0, &device);
    let mut watch = Watch::default();
    let logits = model.forward(&padded(source), &padded(&input), &mut Pass::watched(&mut watch));
    let width = logits.dims()[2];
    // Row r is asked for its own target word only.
    let rows = indices(asked.clone().enumerate().map(|(row, t)| row * input.len() + t), &device);
    let logits = logits.reshape([asked.len() * input.len(), width]).select(0, rows);
    let words = indices(asked.map(|t| target[t] as usize), &device);
    let gradients = activation::log_softmax(logits, 1).gather(1, words.unsqueeze_dim(1)).sum().backward();
    let read = watch.input.expect("every encoder shows its input");
    let gradient = read.grad(&gradients).expect("every target word depends on the source");
    let products = gradient * (read.inner() - unknown.clone());
    to_vec(products.sum_dim(2)).chunks(source.len()).map(<[f32]>::to_vec).collect()
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
