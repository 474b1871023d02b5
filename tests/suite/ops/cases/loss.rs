//! What is learnt from.

use super::super::Leaves;
use super::Sizes;
use burn::tensor::{Device, Tensor, TensorData};
use lookback::kernels::cross_entropy::Weighting;
use lookback::ops::{self, Body, Rows, Targets, Weight};

fn targets(sizes: &Sizes, vocab_size: usize) -> Targets {
    let word = |i: usize| (i % 3 != 1).then_some((i * 5 % vocab_size) as u32);
    let smoothing = if sizes.has_bias { 0.1 } else { 0.0 };
    Targets { words: (0..sizes.batch * sizes.len).map(word).collect(), weighting: Weighting { smoothing, scale: 0.5 } }
}

/// The sums over all rows: smoothed loss, cross-entropy, rows that are correct.
fn sums(rows: Rows, device: &Device) -> Tensor<1> {
    match rows {
        Rows::OnDevice(sums) => sums,
        Rows::Known(rows) => {
            let mut sums = [0.0; 3];
            for row in rows.into_iter().flatten() {
                let parts = [row.smoothed, row.cross_entropy, f64::from(u8::from(row.is_correct))];
                sums.iter_mut().zip(parts).for_each(|(sum, part)| *sum += part);
            }
            Tensor::from_data(TensorData::from(sums.map(|sum| sum as f32)), device)
        }
    }
}

pub(super) fn cross_entropy(leaves: &mut Leaves, sizes: &Sizes, body: Body) -> Vec<Tensor<1>> {
    let vocab_size = sizes.inner + 1;
    let logits = leaves.leaf("logits", [sizes.batch, sizes.len, vocab_size], 6.0);
    let found = ops::cross_entropy(logits, targets(sizes, vocab_size), body);
    vec![found.loss, sums(found.rows, leaves.device)]
}

pub(super) fn projected_cross_entropy(leaves: &mut Leaves, sizes: &Sizes, body: Body) -> Vec<Tensor<1>> {
    let (d, vocab_size) = (sizes.width, sizes.inner + 1);
    let input = leaves.leaf("input", [sizes.batch, sizes.len, d], 2.0);
    let shape = if sizes.is_transposed { [vocab_size, d] } else { [d, vocab_size] };
    let weight = Weight { is_transposed: sizes.is_transposed, ..Weight::plain(leaves.leaf("weight", shape, 1.0)) };
    let bias = sizes.has_bias.then(|| leaves.leaf("bias", [vocab_size], 2.0));
    let found = ops::projected_cross_entropy(input, weight, bias, targets(sizes, vocab_size), body);
    vec![found.loss, sums(found.rows, leaves.device)]
}
