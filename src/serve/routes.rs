//! The endpoints, and what happens to every request before it reaches one.

use super::body::{Body, aside};
use super::catalogue::{Use, Wish};
use super::fault::{Fault, OpenAiFault, answer};
use super::fields::Fields;
use super::prepare::prepare;
use super::{Shared, attention, completions, look, manual, page};
use crate::notice;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Extension, FromRequest, Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, X_FRAME_OPTIONS};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Instant;
use tokio::time::timeout_at;

/// The path that needs no token, for monitoring.
const HEALTH: &str = "/health";

/// All paths with their methods, in the order in which `/openapi.json` has them.
pub(super) const PATHS: [(&str, &str); 15] = [
    ("/translate", "POST"),
    ("/languages", "GET"),
    ("/attention", "POST"),
    ("/explain", "POST"),
    ("/score", "POST"),
    ("/tokenize", "POST"),
    ("/v1/completions", "POST"),
    ("/v1/models", "GET"),
    ("/v1/models/{model}", "GET"),
    ("/info", "GET"),
    (HEALTH, "GET"),
    ("/metrics", "GET"),
    ("/openapi.json", "GET"),
    ("/docs", "GET"),
    ("/", "GET"),
];

/// Paths with public content, which need no token.
const PUBLIC: [&str; 4] = [HEALTH, "/openapi.json", "/docs", "/"];

/// What paths begin with whose faults are written for OpenAI's clients.
const OPENAI: &str = "/v1/";

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
        .route("/attention", post(look_at))
        .route("/v1/completions", post(completions::complete))
        .route("/v1/models", get(completions::models))
        .route("/v1/models/{model}", get(completions::one_model))
        .route("/openapi.json", get(async || answer(StatusCode::OK, &manual::openapi())))
        .route("/docs", get(async || html(manual::page())))
        .route("/", get(async || html(page::page())))
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
        Fault::new(status, message)
    };
    let attempt = async {
        let request = match timeout_at(deadline, check(&shared, request)).await {
            Err(_) => return Err(late(StatusCode::REQUEST_TIMEOUT, "the body of the request")),
            Ok(checked) => checked?,
        };
        let answered = timeout_at(deadline, next.run(request)).await;
        answered.map_err(|_| late(StatusCode::GATEWAY_TIMEOUT, "the answer"))
    };
    let response = attempt.await.unwrap_or_else(|fault| fault_at(&path, fault));
    let known = PATHS.iter().map(|(known, _)| *known).find(|known| is_path(&path, known)).unwrap_or("other");
    let status = response.status().as_u16();
    shared.metrics.request(known, status, begun.elapsed());
    if shared.config.is_verbose {
        notice::say(format_args!("{method} {path} {status} {:.1} ms", begun.elapsed().as_secs_f64() * 1e3));
    }
    response
}

/// Whether `path` is `known`, whose last part may stand for any.
fn is_path(path: &str, known: &str) -> bool {
    match known.strip_suffix("{model}") {
        Some(start) => path.strip_prefix(start).is_some_and(|rest| !rest.is_empty() && !rest.contains('/')),
        None => path == known,
    }
}

/// Reads the body and checks the token.
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
    if !PUBLIC.contains(&parts.uri.path()) {
        shared.guard.check_token(&parts.headers, &fields)?;
    }
    parts.extensions.insert(Body(fields));
    Ok(Request::from_parts(parts, axum::body::Body::empty()))
}

async fn unknown_path(request: Request) -> Response {
    let message = format!("no such path; there are {}", PATHS.map(|(path, _)| path).join(", "));
    fault_at(request.uri().path(), Fault::new(StatusCode::NOT_FOUND, message))
}

/// A fault as the clients of a path read it.
fn fault_at(path: &str, fault: Fault) -> Response {
    match path.starts_with(OPENAI) {
        true => OpenAiFault(fault).into_response(),
        false => fault.into_response(),
    }
}

async fn wrong_method(request: Request) -> Response {
    let method = request.method();
    let path = request.uri().path();
    let right = PATHS.iter().find(|(known, _)| is_path(path, known)).map_or("GET", |(_, method)| method);
    fault_at(path, Fault::new(StatusCode::METHOD_NOT_ALLOWED, format!("{path} takes {right}, not {method}")))
}

async fn metrics(State(shared): State<Arc<Shared>>) -> Response {
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    ([(CONTENT_TYPE, kind)], shared.metrics.text(shared.queue.len())).into_response()
}

fn ok(body: &Value) -> Answer {
    Ok(answer(StatusCode::OK, body))
}

/// A response of JSON that is text already.
fn ok_text(body: String) -> Answer {
    Ok(([(CONTENT_TYPE, HeaderValue::from_static("application/json"))], body).into_response())
}

/// A page, which other pages cannot put into a frame of theirs.
fn html(body: String) -> Response {
    let headers = [(CONTENT_TYPE, "text/html; charset=utf-8"), (X_FRAME_OPTIONS, "DENY"), (CACHE_CONTROL, "no-cache")];
    (headers.map(|(name, value)| (name, HeaderValue::from_static(value))), body).into_response()
}

impl Shared {
    /// The run that a request selects by name or by languages.
    fn choose(&self, fields: &Fields, need: Use) -> Result<usize, Fault> {
        let wish =
            Wish { model: fields.text("model")?, source: fields.text("source")?, target: fields.text("target")? };
        self.catalogue.choose(wish, need)
    }
}

async fn translate(State(shared): State<Arc<Shared>>, Extension(Body(fields)): Extension<Body>) -> Answer {
    let fields = fields?;
    let texts = fields.texts("q")?;
    if let Some(format) = fields.text("format")?.filter(|format| *format != "text") {
        return Err(Fault::bad(format!("format is {format}; the only one is text")));
    }
    let alternatives = fields.count("alternatives")?;
    let run = shared.choose(&fields, Use::Translation)?;
    let catalogue = shared.catalogue.clone();
    let max_lines = shared.config.max_lines;
    let (mut prepared, texts) = aside(move || Ok((prepare(&catalogue.0[run], &texts, max_lines)?, texts))).await?;
    let entry = &shared.catalogue.0[run];
    // A beam holds no more hypotheses than it has places.
    let n_best = (1 + alternatives.unwrap_or(0).min(entry.decoding.beam_size)).min(entry.decoding.beam_size);
    let requests = std::mem::take(&mut prepared.requests);
    let found = shared.queue.translate(run, n_best, requests).await?;
    ok(&prepared.answer(entry, &texts, &found, alternatives))
}

async fn tokenize(State(shared): State<Arc<Shared>>, Extension(Body(fields)): Extension<Body>) -> Answer {
    let fields = fields?;
    let texts = fields.texts("q")?;
    let run = shared.choose(&fields, Use::Any)?;
    let is_target = match fields.text("side")? {
        None | Some("source") => false,
        Some("target") => true,
        Some(other) => return Err(Fault::bad(format!("side is {other}; there are source and target"))),
    };
    let catalogue = shared.catalogue.clone();
    let work = move || Ok(texts.shape(look::tokenize(&catalogue.0[run], is_target, &texts)));
    ok(&aside(work).await?)
}

async fn score(State(shared): State<Arc<Shared>>, Extension(Body(fields)): Extension<Body>) -> Answer {
    let fields = fields?;
    let (sources, targets) = (fields.texts("q")?, fields.texts("translation")?);
    let run = shared.choose(&fields, Use::Translation)?;
    let (catalogue, max_lines) = (shared.catalogue.clone(), shared.config.max_lines);
    let read = move || Ok((look::examples(&catalogue.0[run], &sources, &targets, max_lines)?, sources));
    let (examples, sources) = aside(read).await?;
    let catalogue = shared.catalogue.clone();
    let work = move |models: &_| Ok(sources.shape(look::score(&catalogue.0[run], models, &examples)).to_string());
    ok_text(shared.queue.work(run, Box::new(work)).await?)
}

async fn explain(State(shared): State<Arc<Shared>>, Extension(Body(fields)): Extension<Body>) -> Answer {
    let fields = fields?;
    let run = shared.choose(&fields, Use::Any)?;
    let (catalogue, max_tokens) = (shared.catalogue.clone(), shared.config.max_tokens);
    let asked = aside(move || look::Asked::read(&fields, &catalogue.0[run], max_tokens)).await?;
    let (catalogue, is_page) = (shared.catalogue.clone(), asked.is_page);
    let work = move |models: &_| asked.explain(&catalogue.0[run], models);
    let explained = shared.queue.work(run, Box::new(work)).await?;
    if is_page { Ok(html(explained)) } else { ok_text(explained) }
}

async fn look_at(State(shared): State<Arc<Shared>>, Extension(Body(fields)): Extension<Body>) -> Answer {
    let fields = fields?;
    let run = shared.choose(&fields, Use::Any)?;
    let (catalogue, max_tokens) = (shared.catalogue.clone(), shared.config.max_tokens);
    let asked = aside(move || attention::Asked::read(&fields, &catalogue.0[run], max_tokens)).await?;
    let catalogue = shared.catalogue.clone();
    let work = move |models: &_| Ok(asked.answer(&catalogue.0[run], models));
    ok_text(shared.queue.work(run, Box::new(work)).await?)
}
