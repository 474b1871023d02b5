//! The thread that has the models: it gathers sentences into batches and translates them.

use super::catalogue::Catalogue;
use super::fault::Fault;
use super::metrics::Metrics;
use super::models::Models;
use super::queue::{Job, Translation, WritingJob};
use super::text::Text;
use crate::decoding::{DecodingConfig, Request};
use crate::models::Autoregressive;
use crate::pool::width;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

/// Texts that are written in turn: each has a state that takes memory.
const MAX_TEXTS: usize = 16;

/// The most of them that one request has at once, so that another finds room.
const MOST_OF_A_REQUEST: usize = MAX_TEXTS / 2;

/// Batches for each thread that are gathered at once: cut by length and begun with the longest, they let the threads end
/// together. With one for each, the thread with the short sentences waited for 15 % of the time (two cores, 2026-11-23).
const N_BATCHES: usize = 3;

/// Fewer sentences than these are not a batch of their own.
const MIN_BATCH: usize = 8;

/// The models and the requests that wait for them, the oldest first.
pub(super) struct Worker<'m> {
    models: &'m [Models],
    catalogue: Arc<Catalogue>,
    metrics: Arc<Metrics>,
    incoming: Receiver<Job>,
    waiting: VecDeque<Job>,
    /// Texts that are being written.
    texts: Vec<Text<'m>>,
    /// How long an idle worker waits for further sentences before it begins with those it has.
    max_wait: Duration,
}

impl<'m> Worker<'m> {
    pub(super) fn new(
        models: &'m [Models],
        catalogue: Arc<Catalogue>,
        metrics: Arc<Metrics>,
        incoming: Receiver<Job>,
        max_wait: Duration,
    ) -> Self {
        Self { models, catalogue, metrics, incoming, waiting: VecDeque::new(), texts: Vec::new(), max_wait }
    }

    /// Works until the queue is closed and every request in it is answered.
    pub(super) fn run(mut self) {
        while self.receive() {
            match self.take() {
                Some(Job::Translation(first)) => self.translate(first),
                Some(Job::Work { run, work, reply, place }) => {
                    let models = &self.models[run];
                    let done = catch_unwind(AssertUnwindSafe(|| work(models)));
                    drop(place);
                    let _ = reply.send(done.unwrap_or_else(|_| Err(Fault::internal())));
                }
                Some(Job::Writing(job)) => {
                    let (model, entry) = (&self.models[job.run].prepared.models()[0], &self.catalogue.0[job.run]);
                    self.texts.push(Text::new(job, model, entry));
                }
                None => {}
            }
            self.write();
        }
    }

    /// The oldest request, if its turn has come: further texts wait while many are being written, or many of the same request.
    fn take(&mut self) -> Option<Job> {
        let has_room = |job: &WritingJob| {
            let n_own = self.texts.iter().filter(|text| text.is_of_request(job)).count();
            self.texts.len() < MAX_TEXTS && n_own < MOST_OF_A_REQUEST
        };
        let place = self.waiting.iter().position(|job| match job {
            Job::Writing(job) => has_room(job),
            Job::Translation(_) | Job::Work { .. } => true,
        })?;
        self.waiting.remove(place)
    }

    /// Writes one turn of each open text.
    fn write(&mut self) {
        let mut n_tokens = 0;
        self.texts.retain_mut(|text| {
            let (is_over, n_written) = text.go_on();
            n_tokens += n_written;
            !is_over
        });
        self.metrics.written(n_tokens);
    }

    /// Accepts the waiting requests, or waits for one if there is none. Returns false once the queue is closed.
    fn receive(&mut self) -> bool {
        if self.waiting.is_empty() && self.texts.is_empty() {
            let Ok(job) = self.incoming.recv() else { return false };
            let deadline = Instant::now() + self.max_wait;
            let mut is_batch = matches!(job, Job::Translation(_));
            self.waiting.push_back(job);
            while is_batch && !self.has_full_batch() {
                let left = deadline.saturating_duration_since(Instant::now());
                let Ok(job) = self.incoming.recv_timeout(left) else { break };
                is_batch = matches!(job, Job::Translation(_));
                self.waiting.push_back(job);
            }
        }
        self.waiting.extend(self.incoming.try_iter());
        self.waiting.retain(|job| !job.is_abandoned());
        true
    }

    /// Whether the sentences of the oldest request and of those that go with it fill a batch.
    fn has_full_batch(&self) -> bool {
        let Some(Job::Translation(first)) = self.waiting.front() else { return true };
        let mut batch = Room::new(self.catalogue.0[first.key.0].decoding.batch_tokens);
        let translations = self.waiting.iter().filter_map(|job| match job {
            Job::Translation(translation) if translation.key == first.key => Some(translation),
            _ => None,
        });
        !translations.flat_map(|translation| &translation.requests).all(|request| batch.take(request))
    }

    /// Translates a batch, or one on each thread: sentences of `first` and of all requests that go with it. What is not finished
    /// queues again behind the others.
    fn translate(&mut self, first: Translation) {
        let (run, n_best) = first.key;
        let entry = &self.catalogue.0[run];
        let mut config = DecodingConfig { n_best, ..entry.decoding.clone() };
        let mut group = vec![first];
        for job in std::mem::take(&mut self.waiting) {
            match job {
                Job::Translation(translation) if translation.key == (run, n_best) => group.push(translation),
                other => self.waiting.push_back(other),
            }
        }
        // Batches for each thread: two that each decode one do not wait for each other, as two that share one do.
        let n_threads = width(&self.models[run].model.device());
        let n_batches = n_threads * N_BATCHES;
        let batch_tokens = config.batch_tokens.saturating_mul(n_batches);
        let n_sentences = (config.batch_sentences / config.beam_size).max(1).saturating_mul(n_threads);
        let chosen = choose(&group, batch_tokens, n_sentences);
        if chosen.len() >= n_batches * MIN_BATCH {
            let n_each = chosen.len().div_ceil(n_batches) * config.beam_size;
            config.batch_sentences = config.batch_sentences.min(n_each);
        }
        let requests: Vec<Request> = chosen.iter().map(|(job, i)| group[*job].requests[*i].clone()).collect();
        let found = catch_unwind(AssertUnwindSafe(|| self.models[run].decode(&requests, &config, entry.seed)));
        let Ok(found) = found else {
            group.into_iter().for_each(|translation| translation.finish(Some(Fault::internal())));
            return;
        };
        self.metrics.batch(requests.len(), requests.iter().map(|request| request.source.len() + 1).sum());
        // The sentences of a request are chosen in their order.
        for ((job, _), hypotheses) in chosen.into_iter().zip(found) {
            group[job].found.push(hypotheses);
        }
        for translation in group {
            if translation.found.len() == translation.requests.len() {
                translation.finish(None);
            } else {
                self.waiting.push_back(Job::Translation(translation));
            }
        }
    }
}

/// The next sentences of some requests, at most `n_sentences`, that fit into so many tokens, at least one: the place of the
/// request, and that of the sentence in it. One of each request in turn, so that a long request does not delay a short one.
fn choose(group: &[Translation], batch_tokens: usize, n_sentences: usize) -> Vec<(usize, usize)> {
    let mut room = Room::new(batch_tokens);
    let mut chosen = Vec::new();
    for turn in 0.. {
        let mut is_over = true;
        for (job, translation) in group.iter().enumerate() {
            let i = translation.found.len() + turn;
            let Some(request) = translation.requests.get(i) else { continue };
            if !room.take(request) {
                return chosen;
            }
            chosen.push((job, i));
            if chosen.len() >= n_sentences {
                return chosen;
            }
            is_over = false;
        }
        if is_over {
            break;
        }
    }
    chosen
}

/// What a batch still has room for, by source tokens with padding.
struct Room {
    batch_tokens: usize,
    n_sentences: usize,
    longest: usize,
}

impl Room {
    fn new(batch_tokens: usize) -> Self {
        Self { batch_tokens, n_sentences: 0, longest: 0 }
    }

    /// Adds a sentence if it fits; the first one always does.
    fn take(&mut self, request: &Request) -> bool {
        let longest = self.longest.max(request.source.len() + 1);
        if self.n_sentences > 0 && longest * (self.n_sentences + 1) > self.batch_tokens {
            return false;
        }
        (self.n_sentences, self.longest) = (self.n_sentences + 1, longest);
        true
    }
}
