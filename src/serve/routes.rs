//! The endpoints, and what happens to every request before it reaches one.

use super::Shared;
use super::fault::{Fault, answer};
use super::fields::Fields;
use super::look::{self, Asked};
use super::prepare::prepare;
use crate::notice;
use crate::report::explanation::Selection;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Extension, FromRequest, Request, State};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Instant;
use tokio::time::timeout_at;

/// The one path that needs no token, so that whoever watches over servers can ask it.
const HEALTH: &str = "/health";

/// All paths.
const PATHS: [&str; 8] = [HEALTH, "/info", "/metrics", "/languages", "/translate", "/tokenize", "/score", "/explain"];

/// The fields of a body, or what is wrong with it.
#[derive(Clone)]
struct Body(Result<Fields, Fault>);

type Answer = Result<Response, Fault>;

/// The endpoints.
pub(super) fn router(shared: Arc<Shared>) -> Router {
    let max_body = shared.config.max_body;
    Router::new()
        .route(HEALTH, get(async || answer(StatusCode::OK, &json!({ "status": "ok" }))))
        .route("/info", get(async |State(shared): State<Arc<Shared>>| answer(StatusCode::OK, &shared.info())))
        .route("/metrics", get(metrics))
        .route("/languages", get(async |State(s): State<Arc<Shared>>| answer(StatusCode::OK, &s.catalogue.languages())))
        .route("/translate", post(translate))
        .route("/tokenize", post(tokenize))
        .route("/score", post(score))
        .route("/explain", post(explain))
        .fallback(unknown_path)
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn_with_state(shared.clone(), admit))
        .layer(DefaultBodyLimit::max(max_body))
        .with_state(shared)
}

/// Checks a request, has it answered in time, and counts it.
async fn admit(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let begun = Instant::now();
    let (method, path) = (request.method().clone(), request.uri().path().to_string());
    let limit = shared.config.timeout;
    let deadline = tokio::time::Instant::now() + limit;
    let late = |status, what| {
        let message = format!("{what} took longer than {} s; send less at once", limit.as_secs_f64());
        Fault::new(status, message).into_response()
    };
    let response = match timeout_at(deadline, check(&shared, request)).await {
        Err(_) => late(StatusCode::REQUEST_TIMEOUT, "the body of the request"),
        Ok(Err(fault)) => fault.into_response(),
        Ok(Ok(request)) => match timeout_at(deadline, next.run(request)).await {
            Err(_) => late(StatusCode::GATEWAY_TIMEOUT, "the answer"),
            Ok(response) => response,
        },
    };
    let known = PATHS.iter().find(|known| **known == path).copied().unwrap_or("other");
    let status = response.status().as_u16();
    shared.metrics.request(known, status, begun.elapsed());
    if shared.config.is_verbose {
        notice::say(format_args!("{method} {path} {status} {:.1} ms", begun.elapsed().as_secs_f64() * 1e3));
    }
    response
}

/// Reads the body and checks who asks.
async fn check(shared: &Shared, request: Request) -> Result<Request, Fault> {
    let (mut parts, body) = request.into_parts();
    shared.guard.check_host(&parts.headers)?;
    let max_body = shared.config.max_body;
    let too_large = || {
        let message = format!("the body has more than {max_body} bytes; send several requests");
        Fault::new(StatusCode::PAYLOAD_TOO_LARGE, message)
    };
    let length = parts.headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|length| length > max_body as u64) {
        return Err(too_large());
    }
    let whole = Request::from_parts(parts.clone(), body);
    let bytes = Bytes::from_request(whole, &()).await.map_err(|rejection| match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => too_large(),
        status => Fault::new(status, "the body of the request could not be read to its end"),
    })?;
    let kind = parts.headers.get(CONTENT_TYPE).map_or(Ok(""), HeaderValue::to_str).unwrap_or("unknown");
    let fields = Fields::read(kind, &bytes);
    if parts.uri.path() != HEALTH {
        shared.guard.check_token(&parts.headers, &fields)?;
    }
    parts.extensions.insert(Body(fields));
    Ok(Request::from_parts(parts, axum::body::Body::empty()))
}

async fn unknown_path() -> Fault {
    Fault::new(StatusCode::NOT_FOUND, format!("no such path; there are {}", PATHS.join(", ")))
}

async fn wrong_method(request: Request) -> Fault {
    let method = request.method();
    let path = request.uri().path();
    let right = if PATHS[..4].contains(&path) { "GET" } else { "POST" };
    Fault::new(StatusCode::METHOD_NOT_ALLOWED, format!("{path} takes {right}, not {method}"))
}

async fn metrics(State(shared): State<Arc<Shared>>) -> Response {
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    ([(CONTENT_TYPE, kind)], shared.metrics.text(shared.queue.len())).into_response()
}

/// Runs what takes the processor for a while beside the thread of the connections.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> Result<T, Fault> + Send + 'static) -> Result<T, Fault> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| Err(Fault::internal()))
}

fn ok(body: &Value) -> Answer {
    Ok(answer(StatusCode::OK, body))
}

/// A response of JSON that is text already.
fn ok_text(body: String) -> Answer {
    Ok(([(CONTENT_TYPE, HeaderValue::from_static("application/json"))], body).into_response())
}

impl Shared {
    /// The run that the languages of a request choose.
    fn choose(&self, fields: &Fields) -> Result<usize, Fault> {
        self.catalogue.choose(fields.text("source")?, fields.text("target")?)
    }
}

async fn translate(State(shared): State<Arc<Shared>>, Extension(Body(fields)): Extension<Body>) -> Answer {
    let fields = fields?;
    let texts = fields.texts("q")?;
    if let Some(format) = fields.text("format")?.filter(|format| *format != "text") {
        return Err(Fault::bad(format!("format is {format}; the only one is text")));
    }
    let alternatives = fields.count("alternatives")?;
    let run = shared.choose(&fields)?;
    let catalogue = shared.catalogue.clone();
    let max_lines = shared.config.max_lines;
    let (prepared, texts) = aside(move || Ok((prepare(&catalogue.0[run], &texts, max_lines)?, texts))).await?;
    let entry = &shared.catalogue.0[run];
    // A beam holds no more hypotheses than it has places.
    let n_best = (1 + alternatives.unwrap_or(0).min(entry.decoding.beam_size)).min(entry.decoding.beam_size);
    let found = shared.queue.translate(run, n_best, prepared.requests.clone()).await?;
    ok(&prepared.answer(entry, &texts, &found, alternatives))
}

async fn tokenize(State(shared): State<Arc<Shared>>, Extension(Body(fields)): Extension<Body>) -> Answer {
    let fields = fields?;
    let texts = fields.texts("q")?;
    let run = shared.choose(&fields)?;
    let is_target = match fields.text("side")? {
        None | Some("source") => false,
        Some("target") => true,
        Some(other) => return Err(Fault::bad(format!("side is {other}; there are source and target"))),
    };
    let catalogue = shared.catalogue.clone();
    let work = move || {
        let tokenizers = &catalogue.0[run].tokenizers;
        let tokenizer = if is_target { tokenizers.target() } else { tokenizers.source() };
        Ok(texts.shape(look::tokenize(tokenizer, &texts)))
    };
    ok(&aside(work).await?)
}

async fn score(State(shared): State<Arc<Shared>>, Extension(Body(fields)): Extension<Body>) -> Answer {
    let fields = fields?;
    let (sources, targets) = (fields.texts("q")?, fields.texts("translation")?);
    let run = shared.choose(&fields)?;
    let (catalogue, max_lines) = (shared.catalogue.clone(), shared.config.max_lines);
    let read = move || Ok((look::examples(&catalogue.0[run], &sources, &targets, max_lines)?, sources));
    let (examples, sources) = aside(read).await?;
    let catalogue = shared.catalogue.clone();
    let work = move |models: &_| Ok(sources.shape(look::score(&catalogue.0[run], models, &examples)).to_string());
    ok_text(shared.queue.work(run, Box::new(work)).await?)
}

async fn explain(State(shared): State<Arc<Shared>>, Extension(Body(fields)): Extension<Body>) -> Answer {
    let fields = fields?;
    let source = fields.text("q")?.ok_or_else(|| Fault::bad("q is missing; give the sentence to explain"))?;
    let selection =
        Selection { step: fields.count("step")?, layer: fields.count("layer")?, head: fields.count("head")? };
    let target = fields.text("translation")?.map(str::to_owned);
    let asked = Asked { source: source.to_string(), target, selection };
    let run = shared.choose(&fields)?;
    let catalogue = shared.catalogue.clone();
    let check = move || asked.check(&catalogue.0[run]).map(|()| asked);
    let asked = aside(check).await?;
    let catalogue = shared.catalogue.clone();
    let work = move |models: &_| asked.explain(&catalogue.0[run], models);
    ok_text(shared.queue.work(run, Box::new(work)).await?)
}
