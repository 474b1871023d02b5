//! Dropout, sums and norms of vectors.

use super::function::{Backprop, Function, Gradient, Input, Output, apply};
use super::pieces::{Start, mapped, new_pieces, sum_of_rows, task_rows};
use super::simd::{Dropout, sum};
use burn::tensor::Tensor;

/// `x` with elements dropped.
#[derive(Debug)]
struct Drop(Dropout);

/// `x` with elements dropped.
pub fn dropout<const D: usize>(input: Tensor<D>, dropout: Dropout) -> Tensor<D> {
    apply(Drop(dropout), vec![input.into_dispatch()])
}

fn dropped(values: &[f32], dropout: &Dropout) -> Vec<f32> {
    mapped(
        values,
        1,
        #[inline(always)]
        |start, piece| dropout.apply(start, piece),
    )
}

impl Function for Drop {
    fn forward(&self, inputs: &[Input]) -> Output {
        let values = dropped(inputs[0].values, &self.0);
        Output { shape: inputs[0].shape.to_vec(), values, saved: Vec::new() }
    }

    fn backward(&self, of: Backprop) -> Vec<Gradient> {
        vec![Gradient::when(of.wanted[0], || dropped(of.gradient, &self.0))]
    }
}

/// `x + dropout(y)`.
#[derive(Debug)]
struct AddDropped(Option<Dropout>);

/// `x + dropout(y)`.
pub fn add_dropped<const D: usize>(x: Tensor<D>, y: Tensor<D>, dropout: Option<Dropout>) -> Tensor<D> {
    apply(AddDropped(dropout), vec![x.into_dispatch(), y.into_dispatch()])
}

impl Function for AddDropped {
    fn forward(&self, inputs: &[Input]) -> Output {
        let (x, y) = (inputs[0].values, inputs[1].values);
        let values = mapped(
            x,
            1,
            #[inline(always)]
            |start, piece| match &self.0 {
                Some(dropout) => dropout.each(
                    start,
                    piece,
                    #[inline(always)]
                    |i, value, factor| *value += y[start + i] * factor,
                ),
                None => piece.iter_mut().zip(&y[start..]).for_each(|(value, y)| *value += y),
            },
        );
        Output { shape: inputs[0].shape.to_vec(), values, saved: Vec::new() }
    }

    fn backward(&self, of: Backprop) -> Vec<Gradient> {
        let of_y = match &self.0 {
            _ if !of.wanted[1] => Gradient::None,
            Some(dropout) => Gradient::New(dropped(of.gradient, dropout)),
            None => Gradient::Same,
        };
        vec![Gradient::Same, of_y]
    }
}

/// `gamma (x - mean) / sqrt(var + epsilon) + beta` along the last axis.
#[derive(Debug)]
struct LayerNorm {
    epsilon: f32,
}

/// `gamma (x - mean) / sqrt(var + epsilon) + beta` along the last axis.
///
/// # Shapes
/// - input, output: `[.., width]`
/// - gamma, beta: `[width]`
pub fn layer_norm<const D: usize>(input: Tensor<D>, gamma: Tensor<1>, beta: Tensor<1>, epsilon: f64) -> Tensor<D> {
    let inputs = vec![input.into_dispatch(), gamma.into_dispatch(), beta.into_dispatch()];
    apply(LayerNorm { epsilon: epsilon as f32 }, inputs)
}

/// The mean of a row, and one over its deviation.
#[inline(always)]
fn moments(row: &[f32], epsilon: f32) -> (f32, f32) {
    let n = row.len() as f32;
    let mean = sum(
        [row],
        #[inline(always)]
        |[value]| value,
    ) / n;
    let variance = sum(
        [row],
        #[inline(always)]
        |[value]| (value - mean) * (value - mean),
    ) / n;
    (mean, 1.0 / (variance + epsilon).sqrt())
}

impl Function for LayerNorm {
    fn forward(&self, inputs: &[Input]) -> Output {
        let [x, gamma, beta] = inputs else { unreachable!("three inputs") };
        let width = gamma.values.len();
        let values = mapped(
            x.values,
            width,
            #[inline(always)]
            |_, piece| {
                for row in piece.chunks_exact_mut(width) {
                    let (mean, scale) = moments(row, self.epsilon);
                    for (value, (gamma, beta)) in row.iter_mut().zip(gamma.values.iter().zip(beta.values)) {
                        *value = (*value - mean) * scale * gamma + beta;
                    }
                }
            },
        );
        Output { shape: x.shape.to_vec(), values, saved: Vec::new() }
    }

    fn backward(&self, of: Backprop) -> Vec<Gradient> {
        let [x, gamma, _] = of.inputs else { unreachable!("three inputs") };
        let width = gamma.values.len();
        let rows = task_rows(width) * width;
        // Pieces of fixed size, added in order: the sum does not depend on the number of threads.
        let (of_x, of_gamma) = new_pieces(
            Start::Zeros(x.values.len()),
            rows,
            #[inline(always)]
            |start, out| {
                let (x, gradient) = (&x.values[start..][..out.len()], &of.gradient[start..][..out.len()]);
                backward_rows(out, x, gradient, gamma.values, self.epsilon)
            },
        );
        let of_gamma = || sum_of_rows(&of_gamma.concat(), width);
        vec![
            Gradient::New(of_x),
            Gradient::when(of.wanted[1], of_gamma),
            Gradient::when(of.wanted[2], || sum_of_rows(of.gradient, width)),
        ]
    }
}

/// The gradients of some rows, and their part of that of gamma.
#[inline(always)]
fn backward_rows(out: &mut [f32], x: &[f32], gradient: &[f32], gamma: &[f32], epsilon: f32) -> Vec<f32> {
    let width = gamma.len();
    let n = width as f32;
    let mut of_gamma = vec![0.0; width];
    for (out, (x, gradient)) in out.chunks_exact_mut(width).zip(x.chunks_exact(width).zip(gradient.chunks_exact(width)))
    {
        let (mean, scale) = moments(x, epsilon);
        let of_normal = sum(
            [gradient, gamma],
            #[inline(always)]
            |[g, gamma]| g * gamma,
        ) / n;
        let along = sum(
            [gradient, gamma, x],
            #[inline(always)]
            |[g, gamma, x]| g * gamma * (x - mean),
        ) * scale
            / n;
        let parameters = gamma.iter().zip(of_gamma.iter_mut());
        for ((out, (x, gradient)), (gamma, of_gamma)) in out.iter_mut().zip(x.iter().zip(gradient)).zip(parameters) {
            let normal = (x - mean) * scale;
            *of_gamma += gradient * normal;
            *out = scale * (gradient * gamma - of_normal - normal * along);
        }
    }
    of_gamma
}
