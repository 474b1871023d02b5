//! A completion on its way to the caller: piece by piece, or all at once.

use super::choice::{Choice, Piece};
use super::request::Asked;
use crate::decoding::NextToken;
use crate::serve::Shared;
use crate::serve::fault::{Fault, answer};
use axum::body::{Body, Bytes};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::stream::unfold;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, timeout_at};

/// The choices of a request while they are written.
pub(super) struct Completion {
    shared: Arc<Shared>,
    run: usize,
    asked: Asked,
    choices: Vec<Choice>,
    receiver: UnboundedReceiver<(usize, Result<NextToken, Fault>)>,
    /// What every object of the answer begins with.
    head: Value,
    /// Pieces that are ready.
    ready: VecDeque<(usize, Piece)>,
    deadline: Instant,
}

impl Completion {
    pub(super) fn new(
        shared: Arc<Shared>,
        run: usize,
        asked: Asked,
        choices: Vec<Choice>,
        receiver: UnboundedReceiver<(usize, Result<NextToken, Fault>)>,
        head: Value,
        deadline: Instant,
    ) -> Self {
        let mut completion = Self { shared, run, asked, choices, receiver, head, ready: VecDeque::new(), deadline };
        let tokenizer = completion.shared.catalogue.0[run].tokenizers.target();
        for (index, choice) in completion.choices.iter_mut().enumerate() {
            completion.ready.extend(choice.begin(tokenizer).map(|piece| (index, piece)));
        }
        completion
    }

    /// The next piece of any choice; nothing once all are over.
    async fn next(&mut self) -> Result<Option<(usize, Piece)>, Fault> {
        loop {
            if let Some(ready) = self.ready.pop_front() {
                return Ok(Some(ready));
            }
            if self.choices.iter().all(Choice::is_over) {
                return Ok(None);
            }
            let Ok(received) = timeout_at(self.deadline, self.receiver.recv()).await else {
                let seconds = self.shared.config.timeout.as_secs_f64();
                let message = format!("the answer took longer than {seconds} s; ask for fewer tokens");
                return Err(Fault::new(StatusCode::GATEWAY_TIMEOUT, message));
            };
            let (index, next) = received.ok_or_else(Fault::internal)?;
            let next = next?;
            let choice = &mut self.choices[index];
            // Tokens that were on their way when it ended.
            if choice.is_over() {
                continue;
            }
            let tokenizer = self.shared.catalogue.0[self.run].tokenizers.target();
            let piece = choice.push(&next, tokenizer, self.asked.n_likeliest.is_some());
            if !piece.text.is_empty() || !piece.logprobs.is_null() || piece.finish.is_some() {
                return Ok(Some((index, piece)));
            }
        }
    }

    /// The response.
    pub(super) async fn answer(mut self) -> Result<Response, Fault> {
        if self.asked.is_stream {
            return Ok(self.stream());
        }
        let mut whole: Vec<Piece> = Vec::new();
        whole.resize_with(self.choices.len(), || Piece { text: String::new(), logprobs: Value::Null, finish: None });
        while let Some((index, piece)) = self.next().await? {
            let all = &mut whole[index];
            all.text += &piece.text;
            all.finish = piece.finish;
            append(&mut all.logprobs, piece.logprobs);
        }
        let choices: Value = whole.into_iter().enumerate().map(|(index, piece)| choice(index, piece)).collect();
        Ok(answer(StatusCode::OK, &self.object(choices, self.usage())))
    }

    fn object(&self, choices: Value, usage: Value) -> Value {
        let mut object = self.head.clone();
        object["choices"] = choices;
        object["usage"] = usage;
        object
    }

    fn usage(&self) -> Value {
        let n_prompt: usize = self.asked.prompts.iter().map(|prompt| prompt.ids.len() - prompt.n_added).sum();
        let n_written: usize = self.choices.iter().map(Choice::n_written).sum();
        json!({ "prompt_tokens": n_prompt, "completion_tokens": n_written, "total_tokens": n_prompt + n_written })
    }

    /// Server-sent events: a piece of one choice each, then `[DONE]`.
    fn stream(self) -> Response {
        let events = unfold(Some(self), async |completion| {
            let mut completion = completion?;
            Some(match completion.next().await {
                Ok(Some((index, piece))) => {
                    let mut object = completion.object(Value::Array(vec![choice(index, piece)]), Value::Null);
                    if !completion.asked.has_usage {
                        object.as_object_mut().expect("it was made as one").remove("usage");
                    }
                    (event(&object), Some(completion))
                }
                Ok(None) => {
                    let mut last = String::new();
                    if completion.asked.has_usage {
                        last += &event(&completion.object(Value::Array(Vec::new()), completion.usage()));
                    }
                    (last + "data: [DONE]\n\n", None)
                }
                // The status has been sent; clients raise what an event calls an error.
                Err(fault) => (event(&fault.openai()), None),
            })
        });
        let body =
            Body::from_stream(futures_util::StreamExt::map(events, |text| Ok::<_, Infallible>(Bytes::from(text))));
        let headers = [(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, "no-cache")];
        (headers.map(|(name, value)| (name, HeaderValue::from_static(value))), body).into_response()
    }
}

fn event(object: &Value) -> String {
    format!("data: {object}\n\n")
}

fn choice(index: usize, piece: Piece) -> Value {
    json!({ "text": piece.text, "index": index, "logprobs": piece.logprobs, "finish_reason": piece.finish })
}

/// Puts the lists of `next` behind those of `all`.
fn append(all: &mut Value, next: Value) {
    match (all.as_object_mut(), next) {
        (_, Value::Null) => {}
        (None, next) => *all = next,
        (Some(all), next) => {
            for (name, list) in all.iter_mut() {
                let more = next[name].as_array().cloned().unwrap_or_default();
                list.as_array_mut().expect("each is a list").extend(more);
            }
        }
    }
}
