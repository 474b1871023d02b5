//! What training knows of a model and of what it learns from: two traits, and no model, file or tokenizer.

use super::loss::{Loss, LossSums, Unread};
use super::metrics::{Scalar, Shown, Stats};
use crate::data::batch::Plan;
use crate::error::Result;
use crate::layers::Pass;
use crate::ranks::Ranks;
use burn::module::Module;
use burn::optim::GradientsParams;
use burn::tensor::Device;
use burn_train::metric::Adaptor;
use burn_train::{InferenceStep, ItemLazy, TrainOutput, TrainStep};
use std::fmt::{self, Debug, Display};
use std::sync::Arc;

/// A model that can be trained: it has the loss of one part of an update.
///
/// The steps of burn-train that it needs besides are the same for every model: [`learn`] and [`HeldOut::examine`].
pub trait Trainable:
    TrainStep<Input = UpdatePart<Self::Batch>, Output = Stats>
    + InferenceStep<Input = HeldOut<Self>, Output = Measured>
    + Module
    + Display
    + 'static
{
    /// What it learns from at once.
    type Batch: Clone + Debug + Send + 'static;

    /// The loss of a part of an update, a mean over the [`UpdatePart::n_total`] targets of the whole update.
    fn loss(&self, part: &UpdatePart<Self::Batch>, pass: &mut Pass) -> Loss;
}

/// One micro-batch of an update.
#[derive(Clone, Debug)]
pub struct UpdatePart<B> {
    /// What is learnt from.
    pub batch: B,
    /// Target tokens of the whole update; of numbers, steps.
    pub n_total: usize,
    /// Label smoothing.
    pub smoothing: f64,
    /// Seed of dropout.
    pub seed: u64,
    /// The place of the micro-batch in the data, epoch and position: with the seed it decides which units are dropped.
    pub place: (u64, u64),
    /// Whether layers are fused where they can be.
    pub is_fused: bool,
    /// Probability that a recurrent decoder reads its own last word instead of the true one.
    pub replacement_rate: f64,
}

/// The gradient of a part of an update.
pub fn gradients<M: Trainable>(model: &M, part: &UpdatePart<M::Batch>) -> (GradientsParams, LossSums) {
    let (grads, sums) = unread_gradients(model, part);
    (grads, Unread::read_all(vec![sums], None).0)
}

/// The same, without waiting for the sums: on a device, reading waits for all that has been enqueued.
pub(super) fn unread_gradients<M: Trainable>(model: &M, part: &UpdatePart<M::Batch>) -> (GradientsParams, Unread) {
    let pass = Pass::training(part.seed, part.place.0, part.place.1).fused(part.is_fused);
    let mut pass = pass.replacing_inputs(part.replacement_rate);
    let loss = model.loss(part, &mut pass);
    (GradientsParams::from_grads(loss.mean.backward(), model), loss.sums)
}

/// What every [`Trainable`] does as a [`TrainStep`]: forward and backward.
pub fn learn<M: Trainable>(model: &M, part: &UpdatePart<M::Batch>) -> TrainOutput<Stats> {
    let (grads, sums) = gradients(model, part);
    TrainOutput { grads, item: Stats::new(sums) }
}

/// What a model learns from, and what it is examined with.
pub trait Lessons<M: Trainable>: Send + Sync {
    /// The micro-batches of an epoch, in training order, as numbers of what they hold.
    fn plan(&self, epoch: u64) -> Plan;

    /// One of them.
    ///
    /// # Errors
    /// If what it is read from is damaged.
    fn batch(&self, epoch: u64, numbers: &[u32], device: &Device) -> Result<M::Batch>;

    /// The targets in it, over which a loss is a mean: tokens, or steps.
    fn n_targets(&self, batch: &M::Batch) -> usize;

    /// The text of one of them, for whoever looks for a fault in it.
    fn text(&self, epoch: u64, numbers: &[u32]) -> String;

    /// How good a model is on what it has not learnt from. All ranks call this at once, and may share the work out; all are to
    /// return the same. A process by itself hands in [`Alone`](crate::ranks::Alone).
    fn measure(&self, model: &M, ranks: &dyn Ranks) -> Measured;

    /// What is shown of that beside the loss and what goes with it.
    fn metric(&self) -> Option<Scalar> {
        None
    }

    /// What is shown of the loss.
    fn shown(&self) -> Shown {
        Shown::of_words()
    }
}

/// The held-out data as one item: a score such as BLEU is no mean over batches.
pub struct HeldOut<M> {
    lessons: Arc<dyn Lessons<M>>,
    ranks: Arc<dyn Ranks>,
}

impl<M: Trainable> HeldOut<M> {
    /// That of `lessons`, with which all of `ranks` are examined.
    pub fn new(lessons: Arc<dyn Lessons<M>>, ranks: Arc<dyn Ranks>) -> Self {
        Self { lessons, ranks }
    }

    /// What every [`Trainable`] does as an [`InferenceStep`].
    pub fn examine(&self, model: &M) -> Measured {
        self.lessons.measure(model, &*self.ranks)
    }
}

impl<M> Clone for HeldOut<M> {
    fn clone(&self) -> Self {
        Self { lessons: self.lessons.clone(), ranks: self.ranks.clone() }
    }
}

impl<M> Debug for HeldOut<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HeldOut")
    }
}

/// What a validation comes to.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// The numbers.
    pub stats: Stats,
    /// What the model wrote, for people.
    pub sample: String,
}

impl ItemLazy for Measured {
    fn sync(self) -> Result<Self, burn::backend::ExecutionError> {
        Ok(self)
    }
}

impl Adaptor<Stats> for Measured {
    fn adapt(&self) -> Stats {
        self.stats.clone()
    }
}
