//! Answers that are numbers: those of all steps at once.

use crate::data::batch::{Padded, plan_by_length};
use crate::data::{Scaling, Series};
use crate::layers::Pass;
use crate::models::Seq2Seq;
use crate::models::weights::to_vec;
use crate::pool::in_pool;

/// What a model answers to each series, in the units of the data; `source` and `target` are the scales that it was trained with. A
/// series of no steps never enters the model.
pub fn predict_series<M: Seq2Seq>(
    model: &M,
    series: &[&Series],
    source: &Scaling,
    target: &Scaling,
    batch_tokens: usize,
) -> Vec<Series> {
    let n_channels = target.n_channels();
    let mut found = vec![Series::new(n_channels, Vec::new()); series.len()];
    let real: Vec<usize> = (0..series.len()).filter(|i| series[*i].n_steps() > 0).collect();
    let lengths: Vec<(usize, usize)> = real.iter().map(|i| (series[*i].n_steps(), 0)).collect();
    let device = model.device();
    for batch in plan_by_length(&lengths, batch_tokens) {
        let chosen: Vec<usize> = batch.into_iter().map(|i| real[i]).collect();
        let read = Padded::series(chosen.iter().map(|i| series[*i]), source, &device);
        let answers = in_pool(&device, || {
            // As many answers as there are steps; of the target, nothing else is looked at.
            to_vec(model.forward(&read, &read, &mut Pass::inference().fused(true)))
        });
        let rows = answers.chunks_exact(read.len() * n_channels);
        for ((row, steps), index) in rows.zip(&read.lengths).zip(chosen) {
            found[index] = target.restore(&row[..steps * n_channels]);
        }
    }
    found
}
