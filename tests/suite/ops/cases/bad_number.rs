//! Numbers that are none, and infinite ones.

use super::recurrent::CELLS;
use burn::tensor::{Device, Tensor, TensorData};
use lookback::kernels::activation::Activation;
use lookback::kernels::cell::CellKind;
use lookback::kernels::cross_entropy::Weighting;
use lookback::kernels::matrix_memory::{MemoryConfig, Rule};
use lookback::kernels::recurrence::Reading;
use lookback::layers::Mask;
use lookback::models::weights::to_vec;
use lookback::ops::steps::CellState;
use lookback::ops::{self, Body, HeadSizes, MemoryParameters, Projected, Targets, Weight};

/// The outputs of operations for an input in which one number is `bad`.
pub fn with_bad_number(bad: f32, body: Body, device: &Device) -> Vec<(&'static str, Vec<f32>)> {
    let input = |shape: [usize; 3]| {
        let mut values: Vec<f32> = (0..shape.iter().product()).map(|i| 0.1 * (i % 7) as f32 + 0.1).collect();
        values[0] = bad;
        Tensor::<3>::from_data(TensorData::new(values, shape), device)
    };
    let ones = |shape: [usize; 2]| Tensor::<2>::ones(shape, device);
    let zeros = |len: usize| Tensor::<1>::zeros([len], device);
    let heads = HeadSizes { n_heads: 1, n_key_value_heads: 1, d_head: 2 };
    let mut found = vec![
        ("linear", to_vec(ops::linear(input([1, 2, 3]), Weight::plain(ones([3, 4])), None, body))),
        ("attention, one query", {
            let key_value = input([1, 3, 4]) * 0.0 + 1.0;
            to_vec(ops::attention(
                Projected::Apart(input([1, 1, 2]), key_value),
                None,
                heads,
                &Mask::none(),
                None,
                body,
            ))
        }),
        ("attention, many queries", {
            let mask = Mask::causal(5, device);
            to_vec(ops::attention(Projected::Packed(input([1, 5, 6])), None, heads, &mask, None, body))
        }),
        ("maxout", {
            let parts = [input([1, 1, 2]), Tensor::ones([1, 1, 2], device), Tensor::ones([1, 1, 2], device)];
            to_vec(ops::deep_output(parts, Weight::plain(ones([6, 4])), zeros(4), None, body))
        }),
    ];
    found.push(("layer norm", to_vec(ops::layer_norm(input([1, 2, 5]), zeros(5) + 1.0, zeros(5), 1e-5, body))));
    found.push(("root mean square", to_vec(ops::rms_norm(input([1, 2, 5]), zeros(5) + 1.0, 1e-5, body))));
    let targets = Targets { words: vec![Some(1), Some(2)], weighting: Weighting { smoothing: 0.1, scale: 1.0 } };
    found.push(("cross-entropy", to_vec(ops::cross_entropy(input([1, 2, 3]), targets, body).loss)));
    // Gates that are infinite are open or closed, which is right.
    for kind in CELLS.into_iter().filter(|_| bad.is_nan()) {
        let part = |len: usize| input([1, 2, len]).reshape([2, len]);
        let state = CellState { hidden: ones([2, 3]), memory: (kind == CellKind::Lstm).then(|| ones([2, 3])) };
        let bias = (kind == CellKind::Gru).then(|| zeros(3));
        let width = 3 * kind.n_gates();
        let after = ops::cell_step(kind, part(width), Tensor::ones([2, width], device), state, bias, body);
        found.push(("cell", to_vec(after.hidden)));
    }
    for activation in [Activation::Relu, Activation::Gelu, Activation::GeluTanh, Activation::Silu, Activation::Swiglu] {
        let inner = (Weight::plain(ones([2, 3 * activation.n_packed()])), zeros(3 * activation.n_packed()));
        let outer = (Weight::plain(ones([3, 2])), zeros(2));
        found.push((
            "feed-forward",
            to_vec(ops::feed_forward(input([1, 2, 2]), [inner, outer], activation, None, body)),
        ));
    }
    for rule in [Rule::Linear, Rule::GatedLinear, Rule::Delta, Rule::GatedDelta] {
        // One for each head, or for each element of a key.
        let n_rates = if rule == Rule::GatedLinear { 4 } else { 2 * rule.n_rates() };
        let parameters = MemoryParameters {
            rates: (n_rates > 0).then(|| Tensor::ones([1, 3, n_rates], device)),
            decay: (rule == Rule::GatedDelta).then(|| zeros(2)),
            norm: (rule != Rule::Linear).then(|| Tensor::ones([2], device)),
        };
        let config = MemoryConfig { rule, n_heads: 2, most_replaced: 1.0, epsilon: 1e-5 };
        let packed = input([1, 3, 4 * rule.n_packed()]);
        let (read, _) = ops::matrix_memory(config, packed, parameters, None, Reading::default(), body);
        found.push(("matrix memory", to_vec(read)));
    }
    found
}
