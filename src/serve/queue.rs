//! The queue of requests between the connections and the thread of the models.

use super::fault::Fault;
use super::models::Models;
use crate::decoding::{Hypothesis, NextToken, Request, SamplingConfig};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

/// The sentences of one request that are to be translated.
pub(super) struct Translation {
    /// The run and the number of hypotheses: what these are the same for is decoded together.
    pub(super) key: (usize, usize),
    pub(super) requests: Vec<Request>,
    /// The hypotheses of the first sentences.
    pub(super) found: Vec<Vec<Hypothesis>>,
    pub(super) reply: oneshot::Sender<Result<Vec<Vec<Hypothesis>>, Fault>>,
    place: Place,
}

/// A text that a language model is to continue.
pub(super) struct WritingJob {
    pub(super) run: usize,
    /// Which of the request's texts this is.
    pub(super) index: usize,
    pub(super) prompt: Vec<u32>,
    pub(super) max_tokens: usize,
    /// How tokens are sampled; without it the most likely is taken.
    pub(super) sampling: Option<SamplingConfig>,
    pub(super) seed: u64,
    /// The number of most likely tokens returned with each.
    pub(super) n_likeliest: usize,
    /// Whether the tokens of the prompt, except the first, are returned before those that follow.
    pub(super) scores_prompt: bool,
    /// Where each token goes when it is there.
    pub(super) reply: mpsc::UnboundedSender<(usize, Result<NextToken, Fault>)>,
    /// Set by a caller who needs no more of this text.
    pub(super) is_stopped: Arc<AtomicBool>,
    /// When it is given up: a client that has stopped reading does not say so.
    pub(super) deadline: Instant,
    /// Texts of one request share a place, which is held until the last is dropped.
    pub(super) place: Arc<Place>,
}

impl WritingJob {
    /// Whether the client no longer reads the output.
    pub(super) fn is_abandoned(&self) -> bool {
        self.reply.is_closed() || self.is_stopped.load(Ordering::Relaxed) || Instant::now() >= self.deadline
    }

    /// Whether both are of one request.
    pub(super) fn goes_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.place, &other.place)
    }
}

/// A place in the queue, free again once this is dropped.
pub(super) type Place = OwnedSemaphorePermit;

/// Work on one model that is done by itself; the answer is JSON.
pub(super) type Work = Box<dyn FnOnce(&Models) -> Result<String, Fault> + Send>;

/// A request that is waiting.
pub(super) enum Job {
    /// Translated in batches, with the sentences of other requests.
    Translation(Translation),
    /// Done by itself.
    Work {
        /// The run.
        run: usize,
        work: Work,
        reply: oneshot::Sender<Result<String, Fault>>,
        place: Place,
    },
    /// Written token by token, in turn with other texts and other jobs.
    Writing(WritingJob),
}

impl Translation {
    /// Answers. The place is free before the client has the answer, because it may send the next request at once.
    pub(super) fn finish(self, failed: Option<Fault>) {
        let Self { place, reply, found, .. } = self;
        drop(place);
        // A disconnected client needs no answer.
        let _ = reply.send(failed.map_or(Ok(found), Err));
    }
}

impl Job {
    /// Whether the client has disconnected.
    pub(super) fn is_abandoned(&self) -> bool {
        match self {
            Self::Translation(translation) => translation.reply.is_closed(),
            Self::Work { reply, .. } => reply.is_closed(),
            Self::Writing(writing) => writing.is_abandoned(),
        }
    }
}

/// Where requests are put.
pub(super) struct Queue {
    sender: Sender<Job>,
    places: Arc<Semaphore>,
    n_places: usize,
}

impl Queue {
    /// A queue in which at most `n_places` requests wait or are worked on.
    pub(super) fn new(n_places: usize) -> (Self, Receiver<Job>) {
        // The places bound what the channel holds.
        let (sender, receiver) = channel();
        (Self { sender, places: Arc::new(Semaphore::new(n_places)), n_places }, receiver)
    }

    /// Requests that wait or are worked on.
    pub(super) fn len(&self) -> usize {
        self.n_places - self.places.available_permits()
    }

    /// Has sentences translated by a run, `n_best` hypotheses for each.
    pub(super) async fn translate(
        &self,
        run: usize,
        n_best: usize,
        requests: Vec<Request>,
    ) -> Result<Vec<Vec<Hypothesis>>, Fault> {
        let place = self.place()?;
        let (reply, answer) = oneshot::channel();
        let found = Vec::new();
        self.put(Job::Translation(Translation { key: (run, n_best), requests, found, reply, place }))?;
        answer.await.map_err(|_| Fault::internal())?
    }

    /// Has work done on a run.
    pub(super) async fn work(&self, run: usize, work: Work) -> Result<String, Fault> {
        let place = self.place()?;
        let (reply, answer) = oneshot::channel();
        self.put(Job::Work { run, work, reply, place })?;
        answer.await.map_err(|_| Fault::internal())?
    }

    /// Has a text written.
    pub(super) fn write(&self, writing: WritingJob) -> Result<(), Fault> {
        self.put(Job::Writing(writing))
    }

    /// A place for a request.
    pub(super) fn place(&self) -> Result<Place, Fault> {
        self.places.clone().try_acquire_owned().map_err(|_| Fault::busy(self.n_places))
    }

    fn put(&self, job: Job) -> Result<(), Fault> {
        self.sender.send(job).map_err(|_| Fault::internal())
    }
}
