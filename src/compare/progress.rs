//! How far a comparison is, over all its runs and measurements.

use crate::error::{Error, Result};
use crate::training::{Observer, Progress as TrainingProgress};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// What is shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// The part of the work that is done, from 0 to 1.
    pub done: f64,
    /// What is being done.
    pub what: String,
    /// About how many seconds are left; none before there is anything to go by.
    pub seconds_left: Option<f64>,
}

/// Where a status goes. Called several times a second.
pub type Show<'a> = dyn Fn(&Status) + Send + Sync + 'a;

/// Keeps count of the work of a comparison, in units of about equal time.
pub struct Progress<'a> {
    show: &'a Show<'a>,
    observer: Arc<dyn Observer>,
    total: f64,
    done: f64,
    /// Work that was found done and took no time.
    skipped: f64,
    /// Work that will be found done, which counts for nothing in the time that is left.
    foreseen: f64,
    /// Work of which an earlier process has done the beginning.
    resumed: f64,
    /// How many processes share the work, this one among them.
    processes: usize,
    start: Instant,
}

impl<'a> Progress<'a> {
    /// Nothing done of `total`, of which `foreseen` will be found done; the rest is shared by `processes`, this one among them.
    pub fn new(total: f64, foreseen: f64, processes: usize, show: &'a Show<'a>, observer: Arc<dyn Observer>) -> Self {
        Self {
            show,
            observer,
            total: total.max(1e-9),
            done: 0.0,
            skipped: 0.0,
            foreseen,
            resumed: 0.0,
            processes: processes.max(1),
            start: Instant::now(),
        }
    }

    /// Who asked for the comparison.
    pub fn observer(&self) -> &Arc<dyn Observer> {
        &self.observer
    }

    /// `part` is done of what is being done, of which `resumed` was done before.
    fn status(&self, what: &str, part: f64, resumed: f64) -> Status {
        let made = self.done + part - self.skipped - self.resumed - resumed;
        let elsewhere = self.elsewhere(made);
        let done = self.done + part + elsewhere;
        let seconds = self.start.elapsed().as_secs_f64();
        let left = (self.left() - part - elsewhere).max(0.0);
        let seconds_left = (made > 0.0 && seconds > 2.0).then(|| seconds / (made * self.processes as f64) * left);
        Status { done: (done / self.total).min(1.0), what: what.to_string(), seconds_left }
    }

    /// About what the other processes have done that was not yet found done: each as much as this one, which has `made` so much.
    fn elsewhere(&self, made: f64) -> f64 {
        let found = (self.skipped - self.foreseen).max(0.0);
        ((self.processes - 1) as f64 * made - found).clamp(0.0, self.left().max(0.0))
    }

    /// The work that has yet to be done; what will be found done is not.
    pub fn left(&self) -> f64 {
        self.total - self.done - (self.foreseen - self.skipped).max(0.0)
    }

    /// Shows what is being done now, of which `part` is done.
    pub fn at(&self, what: &str, part: f64) {
        (self.show)(&self.status(what, part, 0.0));
    }

    /// So much more is done; what `is_found` done took no time.
    pub fn finish(&mut self, work: f64, is_found: bool) {
        self.done += work;
        if is_found {
            self.skipped += work;
        }
    }

    /// So much was found done.
    pub fn skip(&mut self, work: f64) {
        self.finish(work, true);
    }

    /// Runs `train` and shows how far it is; it is handed who is to hear of its progress.
    pub fn watch<T>(&mut self, what: &str, work: f64, train: impl FnOnce(Arc<dyn Observer>) -> T) -> T {
        let is_over = AtomicBool::new(false);
        let watcher = Arc::new(Watcher { training: Mutex::default(), observer: self.observer.clone() });
        let this = &*self;
        let mut resumed = 0.0;
        let result = std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut is_new = true;
                while !is_over.load(Ordering::Relaxed) {
                    let progress = watcher.training.lock().expect("nobody panics with the lock").clone();
                    if let Some(progress) = progress {
                        let part = work * progress.lock().expect("no thread panics with the lock").part();
                        // A run that goes on does so where it was left.
                        if std::mem::take(&mut is_new) {
                            resumed = part;
                        }
                        (this.show)(&this.status(what, part, resumed));
                    }
                    std::thread::sleep(Duration::from_millis(200));
                }
            });
            let result = train(watcher.clone() as Arc<dyn Observer>);
            is_over.store(true, Ordering::Relaxed);
            result
        });
        self.done += work;
        self.resumed += resumed;
        result
    }
}

/// Hears how far a training is; warnings go on to whoever asked for the comparison, who may stop it.
#[derive(Debug)]
struct Watcher {
    training: Mutex<Option<Arc<Mutex<TrainingProgress>>>>,
    observer: Arc<dyn Observer>,
}

impl Observer for Watcher {
    fn warn(&self, line: &str) {
        self.observer.warn(line);
    }

    fn begin(&self, progress: &Arc<Mutex<TrainingProgress>>) {
        *self.training.lock().expect("nobody panics with the lock") = Some(progress.clone());
    }

    fn should_stop(&self) -> bool {
        self.observer.should_stop()
    }
}

/// Stops the comparison if whoever asked for it says so.
///
/// # Errors
/// Then.
pub fn check_stop(observer: &dyn Observer) -> Result<()> {
    if observer.should_stop() {
        return Err(Error::Interrupted(
            "interrupted; what is finished is saved, the same command goes on from there".into(),
        ));
    }
    Ok(())
}
