//! The server: models of run folders, over HTTP.
//!
//! ```text
//! connections (tokio, axum) ──requests──▶ queue ──▶ worker: one thread with the models
//!        ▲                                             │ gathers sentences into batches
//!        └────────────────── answers ──────────────────┘
//! ```
//!
//! `/translate` and `/languages` are those of LibreTranslate, `/v1/completions` is OpenAI's, so that their clients can use the server.
//! A batch holds sentences of several requests within `decoding.batch_tokens` and `decoding.batch_sentences`; each answer is that of the
//! sentence alone. Language models write a few tokens of each text in turn. `docs/guides/serving.md` describes every endpoint.

mod attention;
mod body;
mod catalogue;
mod completions;
mod fault;
mod fields;
mod guard;
mod http;
mod look;
mod manual;
mod metrics;
mod models;
mod page;
mod prepare;
mod queue;
mod routes;
mod text;
mod worker;

pub use catalogue::Pair;

use crate::decoding::DecodingConfig;
use crate::error::{Error, Result};
use crate::experiment::LoadedModel;
use crate::models::{Autoregressive, Ensemble, PreparedModel};
use crate::report::attention::ablation::heads;
use crate::report::explanation::Mechanism;
use burn::module::Module;
use catalogue::{Catalogue, Entry};
use guard::Guard;
use metrics::Metrics;
use models::Models;
use queue::Queue;
use serde_json::{Value, json};
use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant};
use worker::Worker;

/// The stack size of the models' thread: that of a main thread.
const STACK_BYTES: usize = 8 << 20;

/// A run that is served.
pub struct Served {
    /// What it is called.
    pub name: String,
    /// Its languages; without them, its name stands for both.
    pub pair: Option<Pair>,
    /// The model.
    pub loaded: LoadedModel,
    /// The model that decodes.
    pub prepared: Ensemble<PreparedModel>,
    /// How it writes.
    pub decoding: DecodingConfig,
    /// The seed of sampling.
    pub seed: u64,
}

/// What the server allows.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// What callers have to send as `Authorization: Bearer TOKEN` or as the field `api_key`.
    pub token: Option<String>,
    /// How long an idle model waits for further sentences before it begins a batch.
    pub max_wait: Duration,
    /// How long a request may take.
    pub timeout: Duration,
    /// Requests that may wait or be worked on; further ones get status 503.
    pub max_queue: usize,
    /// Lines of a request.
    pub max_lines: usize,
    /// Tokens that a language model writes for a completion.
    pub max_tokens: usize,
    /// Bytes of a request's body.
    pub max_body: usize,
    /// Whether each request is written to standard error.
    pub is_verbose: bool,
}

/// What every connection uses.
struct Shared {
    catalogue: Arc<Catalogue>,
    queue: Queue,
    metrics: Arc<Metrics>,
    guard: Guard,
    config: ServerConfig,
}

impl Shared {
    /// The answer to `/info`.
    fn info(&self) -> Value {
        let ServerConfig { timeout, max_queue, max_lines, max_tokens, max_body, .. } = &self.config;
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "runs": self.catalogue.0.iter().map(|entry| &entry.info).collect::<Vec<_>>(),
            "max_lines": max_lines,
            "max_tokens": max_tokens,
            "max_body": max_body,
            "max_queue": max_queue,
            "timeout_seconds": timeout.as_secs_f64(),
        })
    }
}

/// How long the thread with the models has to end when all requests are over.
const LAST_WAIT: Duration = Duration::from_secs(1);

/// Answers requests on `listener` until `is_over` returns true and all that were accepted are answered.
///
/// # Errors
/// If the system refuses a thread or the listener.
pub fn serve(listener: TcpListener, runs: Vec<Served>, config: ServerConfig, is_over: impl Fn() -> bool) -> Result<()> {
    let io = Error::io("the server");
    let mut entries: Vec<Entry> = Vec::new();
    let mut models = Vec::new();
    for run in runs {
        let (entry, model) = split(run, &entries);
        entries.push(entry);
        models.push(model);
    }
    let catalogue = Arc::new(Catalogue(entries));
    let metrics = Arc::new(Metrics::default());
    let (queue, jobs) = Queue::new(config.max_queue);
    let (known, counts, max_wait) = (catalogue.clone(), metrics.clone(), config.max_wait);
    let patience = config.timeout;
    let is_loopback = listener.local_addr().is_ok_and(|address| address.ip().is_loopback());
    let guard = Guard::new(config.token.as_deref(), is_loopback);
    let router = routes::router(Arc::new(Shared { catalogue, queue, metrics, guard, config }));
    let attempt = || {
        listener.set_nonblocking(true)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let thread = std::thread::Builder::new().name("models".into()).stack_size(STACK_BYTES);
        let worker = thread.spawn(move || Worker::new(&models, known, counts, jobs, max_wait).run())?;
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            http::serve(listener, router, patience, is_over).await;
            std::io::Result::Ok(())
        })?;
        // Requests that were not answered in time end with their connections; then the queue is closed and the worker ends, unless it
        // is at work on one of them, for which nobody waits any more.
        drop(runtime);
        let since = Instant::now();
        while !worker.is_finished() && since.elapsed() < LAST_WAIT {
            std::thread::sleep(LAST_WAIT / 100);
        }
        Ok(worker.is_finished().then(|| worker.join()))
    };
    match attempt().map_err(io)? {
        None | Some(Ok(())) => Ok(()),
        Some(Err(_)) => Err(Error::message("the thread with the models has failed, as said above")),
    }
}

/// What is known of a run, and its model. A name that is taken gets a number.
fn split(run: Served, others: &[Entry]) -> (Entry, Models) {
    let Served { name, pair, loaded, prepared, decoding, seed } = run;
    let LoadedModel { model, tokenizers, config, checkpoint, updates, .. } = loaded;
    let is_free = |name: &String| others.iter().all(|other| other.name != *name);
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    let name = std::iter::once(name.clone()).chain(numbered).find(is_free).expect("numbers have no end");
    let pair = pair.unwrap_or_else(|| Pair { source: name.clone(), target: name.clone() });
    let limits = model.limits();
    let is_text = !config.model.reads_source();
    let n_heads = config.model.family().n_heads().unwrap_or(0);
    let heads = heads(&model, n_heads);
    let mut info = json!({
        "name": name,
        "source": pair.source,
        "target": pair.target,
        "is_text": is_text,
        "model": Mechanism::new(&config.model).title,
        "parameters": model.num_params(),
        "source_vocabulary": tokenizers.source().vocab_size(),
        "target_vocabulary": tokenizers.target().vocab_size(),
        "checkpoint": checkpoint,
        "updates": updates,
        "without": heads.iter().map(ToString::to_string).collect::<Vec<_>>(),
    });
    let context = config.context_of_writing().filter(|_| is_text);
    let entry = Entry {
        name,
        pair,
        is_text,
        context,
        heads,
        n_heads,
        tokenizers,
        config: config.model,
        limits,
        decoding,
        seed,
        info: Value::Null,
    };
    let more = match is_text {
        true => json!({ "context": entry.in_sight() }),
        false => json!({
            "is_int8": prepared.models().iter().all(PreparedModel::is_int8),
            "beam_size": entry.decoding.beam_size,
            "max_source_tokens": entry.decoding.source_limit(limits.source).map(|limit| limit.len),
            "max_target_tokens": limits.target.map(|limit| limit.len),
            "batch_tokens": entry.decoding.batch_tokens,
        }),
    };
    for (key, value) in more.as_object().into_iter().flatten() {
        info[key] = value.clone();
    }
    (Entry { info, ..entry }, Models { model, prepared })
}
