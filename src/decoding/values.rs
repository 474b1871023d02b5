//! Answers that are numbers: those of all steps at once.

use crate::data::batch::{Padded, plan_by_length};
use crate::data::{Scaling, Series};
use crate::layers::Pass;
use crate::models::Seq2Seq;
use crate::models::weights::to_vec;
use crate::pool::in_pool;
use crate::ranks::{Ranks, share};

/// What a model answers to each series, in the units of the data; `source` and `target` are the scales that it was trained with. A
/// series of no steps never enters the model. Batches are shared out among `ranks`.
pub fn predict_series<M: Seq2Seq>(
    model: &M,
    series: &[&Series],
    source: &Scaling,
    target: &Scaling,
    batch_tokens: usize,
    ranks: &dyn Ranks,
) -> Vec<Series> {
    let n_channels = target.n_channels();
    let mut found = vec![Series::new(n_channels, Vec::new()); series.len()];
    let real: Vec<usize> = (0..series.len()).filter(|i| series[*i].n_steps() > 0).collect();
    let lengths: Vec<(usize, usize)> = real.iter().map(|i| (series[*i].n_steps(), 0)).collect();
    let device = model.device();
    let batches: Vec<Vec<usize>> = plan_by_length(&lengths, batch_tokens)
        .into_iter()
        .map(|batch| batch.into_iter().map(|i| real[i]).collect())
        .collect();
    let answers = share(ranks, &batches, |chosen| {
        let read = Padded::series(chosen.iter().map(|i| series[*i]), source, &device);
        let answers = in_pool(&device, || {
            // As many answers as there are steps; of the target, nothing else is looked at.
            to_vec(model.forward(&read, &read, &mut Pass::inference().fused(true)))
        });
        let rows = answers.chunks_exact(read.len() * n_channels).zip(&read.lengths);
        rows.map(|(row, steps)| row[..steps * n_channels].to_vec()).collect::<Vec<_>>()
    });
    for (index, row) in batches.iter().flatten().zip(answers.iter().flatten()) {
        found[*index] = target.restore(row);
    }
    found
}
