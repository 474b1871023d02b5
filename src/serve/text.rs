//! A text that a language model is writing.

use super::catalogue::Entry;
use super::fault::Fault;
use super::queue::WritingJob;
use crate::decoding::{Continuation, score_tokens};
use crate::models::PreparedModel;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Tokens written in one turn.
const TURN: usize = 8;

/// A text with what the model has read of it.
pub(super) struct Text<'m> {
    job: WritingJob,
    model: &'m PreparedModel,
    context: Option<usize>,
    /// What follows; made in the first turn.
    words: Option<Continuation<'m, PreparedModel>>,
    n_written: usize,
}

impl<'m> Text<'m> {
    pub(super) fn new(job: WritingJob, model: &'m PreparedModel, entry: &Entry) -> Self {
        Self { job, model, context: entry.in_sight(), words: None, n_written: 0 }
    }

    /// Whether it is one of the texts of a request.
    pub(super) fn is_of_request(&self, job: &WritingJob) -> bool {
        self.job.goes_with(job)
    }

    /// Writes a few tokens. Returns whether that was all, and how many they were.
    pub(super) fn go_on(&mut self) -> (bool, usize) {
        let before = self.n_written;
        let done = catch_unwind(AssertUnwindSafe(|| self.turn()));
        if done.is_err() {
            // A disconnected client needs no answer.
            let _ = self.job.reply.send((self.job.index, Err(Fault::internal())));
        }
        (done.unwrap_or(true), self.n_written - before)
    }

    fn turn(&mut self) -> bool {
        let Self { job, model, context, words, n_written } = self;
        let words = words.get_or_insert_with(|| {
            if job.scores_prompt {
                for token in score_tokens(*model, &job.prompt, job.n_likeliest) {
                    let _ = job.reply.send((job.index, Ok(token)));
                }
            }
            Continuation::new(*model, &job.prompt, *context, job.sampling.as_ref(), job.seed).telling(job.n_likeliest)
        });
        for _ in 0..TURN {
            if *n_written >= job.max_tokens || job.is_abandoned() {
                return true;
            }
            let token = words.next().expect("a continuation has no end");
            *n_written += 1;
            let _ = job.reply.send((job.index, Ok(token)));
        }
        *n_written >= job.max_tokens
    }
}
