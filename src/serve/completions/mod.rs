//! `/v1/completions` and `/v1/models` as OpenAI's clients speak them, for language models.

mod choice;
mod request;
mod stream;

use super::Shared;
use super::body::{Body, aside};
use super::catalogue::{Use, Wish};
use super::fault::{Fault, OpenAiFault, answer};
use super::queue::WritingJob;
use axum::extract::{Extension, Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use choice::Choice;
use request::Asked;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use stream::Completion;
use tokio::sync::mpsc::unbounded_channel;

type Answer = Result<Response, OpenAiFault>;

/// How long a text is written beyond the time that its answer may take, so that it is the answer that says so.
const GRACE: Duration = Duration::from_secs(1);

/// `POST /v1/completions`.
pub(super) async fn complete(State(shared): State<Arc<Shared>>, Extension(Body(fields)): Extension<Body>) -> Answer {
    let fields = fields?;
    let run = shared.catalogue.choose(Wish { model: fields.text("model")?, ..Wish::default() }, Use::Text)?;
    let (catalogue, max_tokens, max_lines) =
        (shared.catalogue.clone(), shared.config.max_tokens, shared.config.max_lines);
    let asked = aside(move || Asked::read(&fields, &catalogue.0[run], max_tokens, max_lines)).await?;
    let place = Arc::new(shared.queue.place()?);
    let deadline = Instant::now() + shared.config.timeout;
    let (sender, receiver) = unbounded_channel();
    let mut choices = Vec::new();
    let in_sight = shared.catalogue.0[run].in_sight().filter(|_| !asked.scores_prompt());
    for prompt in &asked.prompts {
        // Of a longer prompt the end is read, once for each of its completions.
        let read = &prompt.ids[prompt.ids.len().saturating_sub(in_sight.unwrap_or(usize::MAX))..];
        for draw in 0..asked.n {
            let is_stopped = Arc::new(AtomicBool::new(false));
            shared.queue.write(WritingJob {
                run,
                index: choices.len(),
                prompt: read.to_vec(),
                max_tokens: asked.max_tokens,
                sampling: asked.sampling.clone(),
                // Each draw has numbers of its own.
                seed: asked.seed.wrapping_add(draw as u64),
                n_likeliest: asked.n_likeliest.unwrap_or(0),
                scores_prompt: asked.scores_prompt(),
                reply: sender.clone(),
                is_stopped: is_stopped.clone(),
                deadline: deadline + GRACE,
                place: place.clone(),
            })?;
            choices.push(Choice::new(prompt, &asked, shared.catalogue.0[run].tokenizers.target(), is_stopped));
        }
    }
    // The request keeps its place in the queue until the last choice is written.
    drop((sender, place));
    let head = head(&shared.catalogue.0[run].name);
    let completion = Completion::new(shared.clone(), run, asked, choices, receiver, head, deadline.into());
    completion.answer().await.map_err(OpenAiFault)
}

/// What every object of an answer begins with.
fn head(model: &str) -> Value {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    json!({
        "id": format!("cmpl-{:x}-{number}", since_1970.as_micros()),
        "object": "text_completion",
        "created": since_1970.as_secs(),
        "model": model,
    })
}

/// `GET /v1/models`.
pub(super) async fn models(State(shared): State<Arc<Shared>>) -> Response {
    let models: Value =
        shared.catalogue.0.iter().filter(|entry| entry.is_text).map(|entry| model(&entry.name)).collect();
    answer(StatusCode::OK, &json!({ "object": "list", "data": models }))
}

/// `GET /v1/models/{model}`.
pub(super) async fn one_model(State(shared): State<Arc<Shared>>, Path(name): Path<String>) -> Answer {
    let run = shared.catalogue.choose(Wish { model: Some(&name), ..Wish::default() }, Use::Text);
    run.map_err(|_| Fault::unknown_model(format!("no language model {name}; GET /v1/models lists them")))?;
    Ok(answer(StatusCode::OK, &model(&name)))
}

fn model(name: &str) -> Value {
    json!({ "id": name, "object": "model", "created": 0, "owned_by": "lookback" })
}
