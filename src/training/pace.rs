//! How long an update takes, before training begins.

use super::config::TrainingConfig;
use super::lessons::{Lessons, Trainable, UpdatePart};
use super::loader::{PartLoader, Place};
use super::optimizer::Adam;
use super::parts;
use crate::error::{Error, Result};
use crate::pool::in_pool;
use crate::ranks::Alone;
use burn::data::dataloader::DataLoader;
use burn::tensor::Device;
use std::sync::Arc;
use std::time::Instant;

/// Updates that are timed at most.
const MOST: u32 = 3;
/// Seconds after which no other is.
const ENOUGH: f64 = 2.0;

/// The seconds that an update of `model` takes on `device`, where it lies: a mean over the first batches, after one update that is not
/// counted, in which a GPU compiles its kernels.
///
/// # Errors
/// If the data cannot be read.
pub fn seconds_of_update<M: Trainable>(
    model: M,
    device: &Device,
    lessons: Arc<dyn Lessons<M>>,
    training: &TrainingConfig,
    seed: u64,
) -> Result<f64> {
    let is_host = crate::backend::is_host(device);
    let device = device.clone().autodiff();
    let loader = PartLoader::new(lessons, training, seed, &device, &Place::default(), Arc::new(Alone));
    let mut parts = loader.iter();
    let mut adam = Adam::new(training.optimizer.clone());
    let mut model = Some(model.train());
    let mut update = || -> Result<()> {
        if parts.progress().items_processed == parts.progress().items_total {
            // An epoch may have a single update.
            parts = loader.iter();
        }
        let of_update: Vec<UpdatePart<M::Batch>> = parts
            .by_ref()
            .take(training.accumulation)
            .collect::<Result<_, _>>()
            .map_err(|error| Error::message(format!("the data cannot be read: {error}")))?;
        let mut own = model.take().expect("updates do not overlap");
        let (gradient, ..) = parts::of_all(&mut own, of_update, &device, is_host);
        let adam = &mut adam;
        let updated = in_pool(&device, move || adam.step(own, gradient, 1.0, training.learning_rate));
        model = Some(updated);
        Ok(())
    };
    let settle = || device.sync().map_err(|error| Error::message(format!("the device does not answer: {error:?}")));
    update()?;
    settle()?;
    let start = Instant::now();
    let mut n = 0;
    while n < MOST && start.elapsed().as_secs_f64() < ENOUGH {
        update()?;
        n += 1;
    }
    settle()?;
    Ok(start.elapsed().as_secs_f64() / f64::from(n))
}
