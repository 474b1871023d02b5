//! Layers that work on each position alone.

use super::super::Leaves;
use super::{Sizes, flat};
use burn::tensor::{Int, Tensor, TensorData};
use lookback::kernels::activation::Activation;
use lookback::kernels::dropout::Dropout;
use lookback::ops::{self, Body, Weight};
use lookback::random::{Purpose, Stream};

pub(super) fn linear(leaves: &mut Leaves, sizes: &Sizes, body: Body) -> Vec<Tensor<1>> {
    let input = leaves.leaf("input", [sizes.batch, sizes.len, sizes.width], 2.0);
    let shape = if sizes.is_transposed { [sizes.inner, sizes.width] } else { [sizes.width, sizes.inner] };
    let matrix = leaves.leaf("weight", shape, 2.0);
    let bias = sizes.has_bias.then(|| leaves.leaf("bias", [sizes.inner], 2.0));
    let weight = Weight { is_transposed: sizes.is_transposed, ..Weight::plain(matrix) };
    vec![flat(ops::linear(input, weight, bias, body))]
}

pub(super) fn feed_forward(leaves: &mut Leaves, sizes: &Sizes, body: Body) -> Vec<Tensor<1>> {
    use Activation::{Gelu, GeluTanh, Relu, Silu, Swiglu};
    let activation = sizes.one_of(&[Relu, Gelu, GeluTanh, Silu, Swiglu]);
    let (d_model, d_inner) = (sizes.width, sizes.inner);
    let input = leaves.leaf("input", [sizes.batch, sizes.len, d_model], 4.0);
    let packed = activation.n_packed() * d_inner;
    let inner = (Weight::plain(leaves.leaf("inner", [d_model, packed], 1.0)), leaves.leaf("inner bias", [packed], 1.0));
    let outer =
        (Weight::plain(leaves.leaf("outer", [d_inner, d_model], 1.0)), leaves.leaf("outer bias", [d_model], 1.0));
    vec![flat(ops::feed_forward(input, [inner, outer], activation, sizes.dropout(), body))]
}

pub(super) fn dropout(leaves: &mut Leaves, sizes: &Sizes, body: Body) -> Vec<Tensor<1>> {
    let input = leaves.leaf("input", [sizes.batch, sizes.len, sizes.width], 2.0);
    let dropout = Dropout::new(Stream::new(1, Purpose::Dropout, &[2]), 0.4);
    vec![flat(ops::dropout(input, dropout, body))]
}

pub(super) fn add_dropped(leaves: &mut Leaves, sizes: &Sizes, body: Body) -> Vec<Tensor<1>> {
    let shape = [sizes.batch, sizes.len, sizes.width];
    let (around, through) = (leaves.leaf("around", shape, 2.0), leaves.leaf("through", shape, 2.0));
    vec![flat(ops::add_dropped(around, through, sizes.dropout(), body))]
}

pub(super) fn layer_norm(leaves: &mut Leaves, sizes: &Sizes, body: Body) -> Vec<Tensor<1>> {
    // Of one or two numbers, the gradient is rounding alone.
    let width = sizes.width + 4;
    let input = leaves.leaf("input", [sizes.batch, sizes.len, width], 2.0);
    let (gamma, beta) = (leaves.leaf("gamma", [width], 2.0), leaves.leaf("beta", [width], 2.0));
    vec![flat(ops::layer_norm(input, gamma, beta, 1e-5, body))]
}

pub(super) fn rms_norm(leaves: &mut Leaves, sizes: &Sizes, body: Body) -> Vec<Tensor<1>> {
    let width = sizes.width + 4;
    let input = leaves.leaf("input", [sizes.batch, sizes.len, width], 2.0);
    vec![flat(ops::rms_norm(input, leaves.leaf("gamma", [width], 2.0), 1e-5, body))]
}

/// What goes around a layer, what has gone through it, a scale and a shift.
fn summands(leaves: &mut Leaves, sizes: &Sizes) -> ([Tensor<3>; 2], Tensor<1>, Tensor<1>) {
    let width = sizes.width + 4;
    let shape = [sizes.batch, sizes.len, width];
    let both = [leaves.leaf("around", shape, 2.0), leaves.leaf("through", shape, 2.0)];
    (both, leaves.leaf("gamma", [width], 2.0), leaves.leaf("beta", [width], 2.0))
}

pub(super) fn layer_norm_of_sum(leaves: &mut Leaves, sizes: &Sizes, body: Body) -> Vec<Tensor<1>> {
    let (both, gamma, beta) = summands(leaves, sizes);
    vec![flat(ops::norm_of_sum(both, sizes.dropout(), gamma, Some(beta), 1e-5, body))]
}

pub(super) fn layer_norm_with_sum(leaves: &mut Leaves, sizes: &Sizes, body: Body) -> Vec<Tensor<1>> {
    let (both, gamma, beta) = summands(leaves, sizes);
    ops::norm_with_sum(both, sizes.dropout(), gamma, Some(beta), 1e-5, body).map(flat).to_vec()
}

pub(super) fn rms_norm_with_sum(leaves: &mut Leaves, sizes: &Sizes, body: Body) -> Vec<Tensor<1>> {
    let (both, gamma, _) = summands(leaves, sizes);
    ops::norm_with_sum(both, sizes.dropout(), gamma, None, 1e-5, body).map(flat).to_vec()
}

pub(super) fn embedding(leaves: &mut Leaves, sizes: &Sizes, body: Body) -> Vec<Tensor<1>> {
    let (batch, len, n_words) = (sizes.batch, sizes.len, sizes.inner);
    let ids: Vec<i32> = (0..batch * len).map(|i| (i * 7 % n_words) as i32).collect();
    let ids = Tensor::<2, Int>::from_data(TensorData::new(ids, [batch, len]), leaves.device);
    let table = leaves.leaf("table", [n_words, sizes.width], 2.0);
    vec![flat(ops::embedding(ids, table, if sizes.has_bias { 1.5 } else { 1.0 }, body))]
}

pub(super) fn rotate(leaves: &mut Leaves, sizes: &Sizes, body: Body) -> Vec<Tensor<1>> {
    let (half, n_heads) = (sizes.d_head, sizes.n_key_value_heads + sizes.group);
    let packed = leaves.leaf("packed", [sizes.batch, sizes.len, n_heads * 2 * half], 2.0);
    let table = |value: fn(f32) -> f32| {
        let values: Vec<f32> = (0..sizes.len * half).map(|i| value(i as f32 * 0.3)).collect();
        Tensor::from_data(TensorData::new(values, [1, 1, sizes.len, half]), leaves.device)
    };
    let n_turned = if sizes.has_bias { n_heads } else { sizes.group };
    vec![flat(ops::rotate(packed, table(f32::cos), table(f32::sin), n_turned, body))]
}
