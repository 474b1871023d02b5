//! Counts of what the server does, as Prometheus reads them.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Mutex;
use std::time::Duration;

/// Counts since the start.
#[derive(Debug, Default)]
pub(super) struct Metrics {
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    /// Requests and their seconds, by path and status.
    requests: BTreeMap<(&'static str, u16), (u64, f64)>,
    batches: u64,
    sentences: u64,
    tokens: u64,
    written: u64,
}

impl Metrics {
    /// A request was answered. `path` is one of the server's own, so that strangers cannot make the counts grow.
    pub(super) fn request(&self, path: &'static str, status: u16, took: Duration) {
        let mut counts = self.lock();
        let (n, seconds) = counts.requests.entry((path, status)).or_default();
        *n += 1;
        *seconds += took.as_secs_f64();
    }

    /// A batch was translated.
    pub(super) fn batch(&self, n_sentences: usize, n_tokens: usize) {
        let mut counts = self.lock();
        counts.batches += 1;
        counts.sentences += n_sentences as u64;
        counts.tokens += n_tokens as u64;
    }

    /// Tokens were written by language models.
    pub(super) fn written(&self, n_tokens: usize) {
        if n_tokens > 0 {
            self.lock().written += n_tokens as u64;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// The text that Prometheus reads.
    pub(super) fn text(&self, queue_size: usize) -> String {
        let counts = self.lock();
        let mut text = String::new();
        let mut family = |name: &str, kind: &str, help: &str, rows: Vec<(String, String)>| {
            let _ = writeln!(text, "# HELP lookback_{name} {help}\n# TYPE lookback_{name} {kind}");
            for (labels, value) in rows {
                let _ = writeln!(text, "lookback_{name}{labels} {value}");
            }
        };
        let label = |(path, status): &(&str, u16)| format!("{{path=\"{path}\",status=\"{status}\"}}");
        let requests = counts.requests.iter();
        let numbers = requests.clone().map(|(key, (n, _))| (label(key), n.to_string())).collect();
        family("requests_total", "counter", "Requests that were answered.", numbers);
        let seconds = requests.map(|(key, (_, seconds))| (label(key), format!("{seconds:.6}"))).collect();
        family("request_seconds_total", "counter", "Seconds from a request to its answer.", seconds);
        let one = |value: u64| vec![(String::new(), value.to_string())];
        family("queue_size", "gauge", "Requests that wait or are worked on.", one(queue_size as u64));
        family(
            "batches_total",
            "counter",
            "Times that waiting sentences were gathered and translated.",
            one(counts.batches),
        );
        family("batch_sentences_total", "counter", "Sentences in them.", one(counts.sentences));
        family("batch_tokens_total", "counter", "Source tokens in them, end symbols included.", one(counts.tokens));
        family("written_tokens_total", "counter", "Tokens that language models wrote.", one(counts.written));
        text
    }
}
