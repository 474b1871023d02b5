//! How the models of this crate learn: the interface of training, for all of them.

use crate::data::batch::Batch;
use crate::layers::Pass;
use crate::models::Model;
use crate::training::loss::{Loss, real_targets, smoothed_cross_entropy};
use crate::training::squared_error::squared_error;
use crate::training::{HeldOut, Measured, Stats, Trainable, UpdatePart, learn};
use burn_train::{InferenceStep, TrainOutput, TrainStep};

impl Trainable for Model {
    type Batch = Batch;

    fn loss(&self, part: &UpdatePart<Batch>, pass: &mut Pass) -> Loss {
        batch_loss(self, &part.batch, part.smoothing, part.n_total, pass)
    }
}

impl TrainStep for Model {
    type Input = UpdatePart<Batch>;
    type Output = Stats;

    fn step(&self, part: UpdatePart<Batch>) -> TrainOutput<Stats> {
        learn(self, &part)
    }
}

impl InferenceStep for Model {
    type Input = HeldOut<Self>;
    type Output = Measured;

    fn step(&self, held_out: HeldOut<Self>) -> Measured {
        held_out.examine(self)
    }
}

/// The loss of what `model` makes of a batch: [`squared_error`] of numbers; else [`smoothed_cross_entropy`], made together with the
/// logits where no word of its own is read.
pub fn batch_loss(model: &Model, batch: &Batch, smoothing: f64, n_total: usize, pass: &mut Pass) -> Loss {
    if let Some(targets) = &batch.target_values {
        return squared_error(model.forward_batch(batch, pass), targets, n_total);
    }
    if pass.replaces_inputs() {
        let logits = model.forward_batch(batch, pass);
        return smoothed_cross_entropy(logits, &batch.target_ids, smoothing, n_total);
    }
    let targets = real_targets(&batch.target_ids, smoothing, n_total);
    Loss::of_rows(model.scores(batch, pass).cross_entropy(targets, pass), &batch.target_ids)
}
