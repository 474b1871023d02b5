//! Products on a GPU: every way in which a factor can lie, tiles of every size with and without a rest, an inner axis in parts; and what is
//! large enough for burn's.

use crate::reliability::sampled;
use crate::support::{assert_close, flex, wgpu, wgpu_beside};
use burn::tensor::{Device, Tensor, TensorData};
use lookback::backend::gpu;
use lookback::models::weights::to_vec;

/// Sums of some hundred products of numbers between -0.5 and 0.5, by another order of adding.
const TOLERANCE: f64 = 1e-5;

/// Numbers without a pattern that a wrong place would show.
fn numbers<const D: usize>(shape: [usize; D], salt: usize, device: &Device) -> Tensor<D> {
    let n = shape.iter().product::<usize>();
    let values: Vec<f32> =
        (0..n).map(|i| ((i + salt) * 7919 + i * i * 31) % 1009).map(|i| i as f32 / 1009.0 - 0.5).collect();
    Tensor::from_data(TensorData::new(values, shape), device)
}

/// The matrix of that size: as it is, or the transpose of one that lies the other way round.
fn factor(shape: [usize; 3], is_transposed: bool, salt: usize, device: &Device) -> Tensor<3> {
    let [n_matrices, n_rows, n_columns] = shape;
    match is_transposed {
        true => numbers([n_matrices, n_columns, n_rows], salt, device).swap_dims(1, 2),
        false => numbers(shape, salt, device),
    }
}

/// The output, and the gradients of what is multiplied.
fn with_gradients<const N: usize>(
    device: &Device,
    make: impl Fn(&Device) -> [Tensor<3>; N],
    multiply: impl Fn([Tensor<3>; N]) -> Tensor<3>,
) -> Vec<Vec<f32>> {
    let factors = make(&device.clone().autodiff()).map(Tensor::require_grad);
    let output = multiply(factors.clone());
    let along = numbers(output.dims(), 3, &device.clone().autodiff());
    let gradients = (output.clone() * along).sum().backward();
    let of_factors = factors.map(|factor| to_vec(factor.grad(&gradients).expect("it has a gradient")));
    std::iter::once(to_vec(output.inner())).chain(of_factors).collect()
}

#[test]
fn a_gpu_multiplies_what_the_host_multiplies() {
    let Some(adapter) = wgpu_beside() else { return };
    // Matrices, rows, inner, columns: one number; less than a tile; tiles without a rest and with one, of all three sizes; an inner axis in
    // parts, with and without a rest; several matrices.
    let sizes = [
        [1, 1, 1, 1],
        [1, 5, 3, 2],
        [1, 32, 16, 32],
        [3, 37, 29, 41],
        [1, 64, 1024, 64],
        [2, 33, 777, 31],
        [1, 480, 48, 600],
        [1, 481, 17, 599],
        [1, 768, 32, 704],
        [130, 65, 20, 66],
        [1, 32, 300, 1500],
    ];
    for [n_matrices, m, k, n] in sampled(sizes, 3) {
        for [is_left_transposed, is_right_transposed] in [[false, false], [true, false], [false, true], [true, true]] {
            let make = |device: &Device| {
                let left = factor([n_matrices, m, k], is_left_transposed, 1, device);
                [left, factor([n_matrices, k, n], is_right_transposed, 5, device)]
            };
            let found = with_gradients(&adapter.device, make, |[left, right]| {
                gpu::product(&left, &right).expect("it is computed there")
            });
            let expected = with_gradients(&flex(), make, |[left, right]| left.matmul(right));
            for ((what, found), expected) in
                ["product", "of the left", "of the right"].iter().zip(&found).zip(&expected)
            {
                let which = [is_left_transposed, is_right_transposed];
                assert_close(&format!("{what}, {n_matrices} x {m} x {k} x {n}, {which:?}"), found, expected, TOLERANCE);
            }
        }
    }
    let [left, right] = [numbers([2, 3], 1, &flex()), numbers([3, 2], 1, &flex())];
    assert!(gpu::product(&left, &right).is_none(), "the host has products of its own");
}

/// Parts of larger tensors, axes in another order, one matrix for all, axes of one element.
#[test]
fn a_gpu_multiplies_factors_as_they_lie() {
    let Some(adapter) = wgpu_beside() else { return };
    type View = fn(Tensor<3>) -> Tensor<4>;
    type Case = (&'static str, [usize; 3], [usize; 3], View, View);
    let views: [Case; 7] = [
        (
            "parts",
            [2, 9, 40],
            [2, 40, 50],
            |x| x.narrow(1, 1, 7).unsqueeze_dim(1),
            |x| x.narrow(2, 3, 45).unsqueeze_dim(1),
        ),
        ("heads", [3, 20, 2 * 8], [3, 20, 2 * 8], heads, |x| heads(x).swap_dims(2, 3)),
        ("heads over heads", [3, 20, 2 * 8], [3, 20, 2 * 20], |x| heads(x).swap_dims(2, 3), heads),
        (
            "one for all",
            [1, 33, 17],
            [6, 17, 5],
            |x| x.unsqueeze_dim::<4>(0).expand([2, 3, 33, 17]),
            |x| x.reshape([2, 3, 17, 5]),
        ),
        ("single rows", [5, 4, 24], [5, 24, 9], |x| x.narrow(1, 2, 1).unsqueeze_dim(0), |x| x.unsqueeze_dim(0)),
        ("single numbers", [1, 1, 5], [5, 1, 1], |x| x.permute([2, 0, 1]).unsqueeze_dim(0), |x| x.unsqueeze_dim(0)),
        (
            "columns",
            [4, 3, 30],
            [4, 1, 6],
            |x| x.narrow(1, 1, 1).swap_dims(1, 2).unsqueeze_dim(0),
            |x| x.unsqueeze_dim(0),
        ),
    ];
    for (name, left_shape, right_shape, left_view, right_view) in views {
        let make = |device: &Device| [numbers(left_shape, 1, device), numbers(right_shape, 5, device)];
        let together = |x: Tensor<4>| x.reshape([0, 0, -1]);
        let found = with_gradients(&adapter.device, make, |[left, right]| {
            together(gpu::product(&left_view(left), &right_view(right)).expect("it is computed there"))
        });
        let expected =
            with_gradients(&flex(), make, |[left, right]| together(left_view(left).matmul(right_view(right))));
        for ((what, found), expected) in ["product", "of the left", "of the right"].iter().zip(&found).zip(&expected) {
            assert_close(&format!("{name}: {what}"), found, expected, TOLERANCE);
        }
    }
}

/// `[batch, len, 2 width]` to `[batch, 2, len, width]`.
fn heads(side_by_side: Tensor<3>) -> Tensor<4> {
    let [batch, len, width] = side_by_side.dims();
    side_by_side.reshape([batch, len, 2, width / 2]).swap_dims(1, 2)
}

/// The rows of a batch are one matrix; the bias is added where parts are added up, too.
#[test]
fn a_gpu_maps_rows_as_the_host_does() {
    let Some(adapter) = wgpu() else { return };
    let sizes = [[1, 1, 1, 1], [9, 1, 24, 40], [3, 7, 20, 33], [2, 16, 1024, 48], [4, 300, 12, 2000]];
    for [batch, len, d_input, d_output] in sampled(sizes, 2) {
        for is_transposed in [false, true] {
            for has_bias in [false, true] {
                let make = |device: &Device| {
                    let shape = if is_transposed { [1, d_output, d_input] } else { [1, d_input, d_output] };
                    let bias = numbers([1, 1, d_output], 9, device);
                    [numbers([batch, len, d_input], 1, device), numbers(shape, 5, device), bias]
                };
                let parts = |weight: Tensor<3>, bias: Tensor<3>| (weight.squeeze_dim::<2>(0), bias.reshape([d_output]));
                let found = with_gradients(&adapter.device, make, |[input, weight, bias]| {
                    let (weight, vector) = parts(weight, bias.clone());
                    let vector = has_bias.then_some(&vector);
                    let output = gpu::linear(&input, &weight, is_transposed, vector).expect("it is computed there");
                    if has_bias { output } else { output + bias * 0.0 }
                });
                let expected = with_gradients(&flex(), make, |[input, weight, bias]| {
                    let (weight, vector) = parts(weight, bias);
                    let weight = if is_transposed { weight.transpose() } else { weight };
                    let output = input.matmul(weight.unsqueeze());
                    let vector = vector.reshape([1, 1, d_output]);
                    if has_bias { output + vector } else { output + vector * 0.0 }
                });
                for (i, (found, expected)) in found.iter().zip(&expected).enumerate() {
                    let what = ["output", "of the input", "of the weight", "of the bias"][i];
                    let which = [is_transposed, has_bias];
                    let name = format!("{what}, {batch} x {len} x {d_input} x {d_output}, {which:?}");
                    assert_close(&name, found, expected, TOLERANCE);
                }
            }
        }
    }
}

/// One row of each sentence, and sentences whose rows lie between each other's: neither is one matrix as it lies.
#[test]
fn a_gpu_maps_rows_as_they_lie() {
    let Some(adapter) = wgpu() else { return };
    type View = fn(Tensor<3>) -> Tensor<3>;
    let views: [(_, View); 2] =
        [("one row of three", |x| x.narrow(1, 1, 1)), ("between each other's", |x| x.swap_dims(0, 1))];
    for (name, view) in views {
        let make = |device: &Device| [numbers([9, 3, 24], 1, device), numbers([1, 24, 40], 5, device)];
        let found = with_gradients(&adapter.device, make, |[input, weight]| {
            gpu::linear(&view(input), &weight.squeeze_dim::<2>(0), false, None).expect("it is computed there")
        });
        let expected = with_gradients(&flex(), make, |[input, weight]| view(input).matmul(weight));
        for ((what, found), expected) in ["output", "of the input", "of the weight"].iter().zip(&found).zip(&expected) {
            assert_close(&format!("{name}: {what}"), found, expected, TOLERANCE);
        }
    }
}
