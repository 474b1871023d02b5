//! The loaders that burn-train is handed.

use super::config::TrainingConfig;
use super::lessons::{Lessons, Trainable, UpdatePart};
use super::together::own_parts;
use crate::data::batch::Plan;
use crate::error::Result;
use crate::ranks::Ranks;
use burn::data::dataloader::{DataLoader, DataLoaderIterator, Progress};
use burn::data::dataset::DatasetError;
use burn::tensor::Device;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// Where in the data training stands: the epoch, and the micro-batches of it that have been used. A loader of burn begins an
/// epoch at its beginning; training that goes on does not.
#[derive(Clone, Debug, Default)]
pub(super) struct Place(Arc<Mutex<(u64, usize)>>);

impl Place {
    /// The next epoch of the loader begins there.
    pub(super) fn set(&self, epoch: u64, position: usize) {
        *self.0.lock().expect("nobody panics with the lock") = (epoch, position);
    }

    fn get(&self) -> (u64, usize) {
        *self.0.lock().expect("nobody panics with the lock")
    }
}

/// The micro-batches of an epoch that a rank works on, from where training stands.
pub(super) struct PartLoader<M: Trainable> {
    lessons: Arc<dyn Lessons<M>>,
    training: TrainingConfig,
    seed: u64,
    device: Device,
    place: Place,
    /// The micro-batches of an epoch that are this loader's; nothing where all are.
    slice: Option<Range<usize>>,
    ranks: Arc<dyn Ranks>,
}

impl<M: Trainable> PartLoader<M> {
    /// All of them, on `device`, from `place` on.
    pub(super) fn new(
        lessons: Arc<dyn Lessons<M>>,
        training: &TrainingConfig,
        seed: u64,
        device: &Device,
        place: &Place,
        ranks: Arc<dyn Ranks>,
    ) -> Self {
        let (training, device, place) = (training.clone(), device.clone(), place.clone());
        Self { lessons, training, seed, device, place, slice: None, ranks }
    }

    fn with(&self, device: &Device, slice: Option<Range<usize>>) -> Self {
        let place = Place::default();
        let (epoch, position) = self.place.get();
        place.set(epoch, position);
        Self { slice, ..Self::new(self.lessons.clone(), &self.training, self.seed, device, &place, self.ranks.clone()) }
    }

    fn plan(&self, epoch: u64) -> Plan {
        let plan = self.lessons.plan(epoch);
        match self.slice.clone() {
            Some(slice) => plan.part(slice),
            None => plan,
        }
    }
}

impl<M: Trainable> DataLoader<UpdatePart<M::Batch>> for PartLoader<M> {
    fn iter<'a>(&'a self) -> Box<dyn DataLoaderIterator<UpdatePart<M::Batch>> + 'a> {
        let (epoch, position) = self.place.get();
        Box::new(Parts { loader: self, epoch, plan: self.plan(epoch), position, made: VecDeque::new() })
    }

    fn num_items(&self) -> usize {
        self.plan(self.place.get().0).len()
    }

    fn to_device(&self, device: &Device) -> Arc<dyn DataLoader<UpdatePart<M::Batch>>> {
        Arc::new(self.with(device, self.slice.clone()))
    }

    fn slice(&self, start: usize, end: usize) -> Arc<dyn DataLoader<UpdatePart<M::Batch>>> {
        Arc::new(self.with(&self.device, Some(start..end)))
    }
}

/// The parts of one update after the other that this rank works on; each knows the targets of those of them that belong to its
/// update.
struct Parts<'a, M: Trainable> {
    loader: &'a PartLoader<M>,
    epoch: u64,
    plan: Plan,
    /// Where the next update begins.
    position: usize,
    /// The rest of the update.
    made: VecDeque<UpdatePart<M::Batch>>,
}

impl<M: Trainable> Parts<'_, M> {
    fn make_update(&mut self) -> Result<()> {
        let PartLoader { lessons, training, seed, device, ranks, .. } = self.loader;
        let first = self.position;
        self.position = (first + training.accumulation).min(self.plan.len());
        let own = own_parts(&**ranks, self.position - first).map(|number| first + number);
        let batch = |position| {
            let numbers = self.plan.get(position)?;
            Some(lessons.batch(self.epoch, numbers, device).map(|batch| (position, batch)))
        };
        let batches: Vec<(usize, M::Batch)> = own.filter_map(batch).collect::<Result<_>>()?;
        let n_total = batches.iter().map(|(_, batch)| lessons.n_targets(batch)).sum();
        self.made = batches
            .into_iter()
            .map(|(position, batch)| UpdatePart {
                batch,
                n_total,
                smoothing: training.label_smoothing,
                seed: *seed,
                place: (self.epoch, position as u64),
                is_fused: training.fused,
                // Only the loop knows which update this will be: some are skipped.
                replacement_rate: 0.0,
            })
            .collect();
        Ok(())
    }
}

impl<M: Trainable> Iterator for Parts<'_, M> {
    type Item = Result<UpdatePart<M::Batch>, DatasetError>;

    fn next(&mut self) -> Option<Self::Item> {
        // Where there are more ranks than parts, one may have nothing of an update.
        while self.made.is_empty() && self.position < self.plan.len() {
            if let Err(error) = self.make_update() {
                return Some(Err(DatasetError::new(error)));
            }
        }
        self.made.pop_front().map(Ok)
    }
}

impl<M: Trainable> DataLoaderIterator<UpdatePart<M::Batch>> for Parts<'_, M> {
    fn progress(&self) -> Progress {
        Progress::new(self.position, self.plan.len(), Some("micro-batches".into()))
    }
}

/// One item.
pub(super) struct OneItem<T>(pub(super) T);

impl<T: Clone + Send + Sync + 'static> DataLoader<T> for OneItem<T> {
    fn iter<'a>(&'a self) -> Box<dyn DataLoaderIterator<T> + 'a> {
        Box::new(One(Some(self.0.clone())))
    }

    fn num_items(&self) -> usize {
        1
    }

    fn to_device(&self, _device: &Device) -> Arc<dyn DataLoader<T>> {
        // It goes where the model is that is examined.
        Arc::new(Self(self.0.clone()))
    }

    fn slice(&self, _start: usize, _end: usize) -> Arc<dyn DataLoader<T>> {
        // It cannot be cut.
        Arc::new(Self(self.0.clone()))
    }
}

struct One<T>(Option<T>);

impl<T> Iterator for One<T> {
    type Item = Result<T, DatasetError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.take().map(Ok)
    }
}

impl<T> DataLoaderIterator<T> for One<T> {
    fn progress(&self) -> Progress {
        Progress::new(usize::from(self.0.is_none()), 1, Some("validation".into()))
    }
}
