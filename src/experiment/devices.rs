//! Training on several devices of one machine.

use super::Config;
use super::options::TrainOptions;
use super::train::train;
use crate::backend::{Adapter, Backend};
use crate::error::{Error, Result};
use crate::ranks::{Ended, Local, Ranks, within_process};
use crate::training::Outcome;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

/// Trains on several devices of this machine, a thread for each, which share the parts of every update: as [`train`] on one of
/// them with as many times the `accumulation`, to the last bit; but between CUDA devices gradients are added up by burn's all-reduce,
/// in the order that it likes. On one device it is [`train`].
///
/// # Errors
/// As [`train`].
pub fn train_on(config: &Config, adapters: &[Adapter], options: &TrainOptions) -> Result<Outcome> {
    if let [adapter] = adapters {
        return train(config, adapter, options);
    }
    let devices = || adapters.iter().map(|adapter| adapter.device.clone()).collect();
    let reduces = adapters.iter().all(|adapter| adapter.backend == Backend::Cuda);
    let ranks = within_process(adapters.len()).into_iter();
    let ranks = ranks.map(|ranks| if reduces { ranks.with_devices(devices()) } else { ranks });
    let ended = std::thread::scope(|scope| {
        let run = |(ranks, adapter): (Local, &Adapter)| {
            let ranks: Arc<dyn Ranks> = Arc::new(ranks);
            let options = TrainOptions { ranks: ranks.clone(), ..options.clone() };
            let result = catch_unwind(AssertUnwindSafe(|| train(config, adapter, &options)));
            if !matches!(result, Ok(Ok(_))) {
                // The others must not wait for this one.
                ranks.give_up();
            }
            result
        };
        let mut all = ranks.zip(adapters);
        let first = all.next();
        let others: Vec<_> = all.map(|own| scope.spawn(move || run(own))).collect();
        let ended = first.map(run).into_iter();
        ended.chain(others.into_iter().map(|other| other.join().unwrap_or_else(Err))).collect::<Vec<_>>()
    });
    // The rank that ended first has the reason.
    let mut outcome = Err(Error::message("there is no device to train on"));
    for result in ended.into_iter().rev() {
        match result {
            Ok(result) => outcome = result,
            Err(panic) if panic.is::<Ended>() => {}
            Err(panic) => resume_unwind(panic),
        }
    }
    outcome
}
