//! The loss of answers that are numbers: their squared error.

use super::loss::{Loss, LossSums};
use crate::data::batch::TargetValues;
use crate::scoring::ErrorSums;
use burn::tensor::{Tensor, TensorData};

/// The squared error of scaled numbers, a mean over the channels of each step, summed over the steps that are not padding; its
/// mean is over the `n_total` steps of the whole update.
///
/// # Shapes
/// - predictions: `[batch, len, channels]`, scaled
pub fn squared_error(predictions: Tensor<3>, targets: &TargetValues, n_total: usize) -> Loss {
    let [batch, len, n_channels] = predictions.dims();
    let device = predictions.device();
    let truth = TensorData::new(targets.scaled.clone(), [batch, len, n_channels]);
    let is_real = targets.lengths.iter().flat_map(|n| (0..len).map(move |step| if step < *n { 1.0f32 } else { 0.0 }));
    let is_real = TensorData::new(is_real.collect::<Vec<f32>>(), [batch, len, 1]);
    let errors = (predictions - Tensor::from_data(truth, &device)) * Tensor::from_data(is_real, &device);
    // Axis by axis: a sum over everything at once may depend on how threads share it.
    let of_rows = (errors.clone() * errors.clone()).sum_dim(2).sum_dim(1);
    let mean = of_rows.sum().div_scalar((n_total * n_channels) as f64);
    let (targets, width) = (targets.clone(), len * n_channels);
    Loss::on_device(mean, errors.detach().flatten(0, 2), move |errors| sums(errors, &targets, width))
}

/// The sums of scaled `errors`, in rows of `width`, those of [`ErrorSums`] in the units of the data.
fn sums(errors: &[f32], targets: &TargetValues, width: usize) -> LossSums {
    let n_channels = targets.units.len();
    let mut scaled = 0.0;
    let mut found = ErrorSums::default();
    for (row, n_steps) in errors.chunks_exact(width).zip(&targets.lengths) {
        for (error, unit) in row[..n_steps * n_channels].iter().zip(targets.units.iter().cycle()) {
            scaled += f64::from(*error).powi(2);
            found.add(f64::from(*error) * unit);
        }
    }
    LossSums {
        smoothed: scaled / n_channels as f64,
        n_tokens: targets.lengths.iter().sum(),
        errors: Some(found),
        ..LossSums::default()
    }
}
