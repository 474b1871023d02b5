//! What training looks like: burn-train's dashboard, or plain lines on standard error.
//!
//! burn-train's own plain renderer shows no metrics and writes to standard output, which belongs to results.

use super::metrics::LEARNING_RATE;
use crate::error::{Error, Result};
use crate::notice;
use crate::scoring::Metric;
use burn_train::logger::{EvaluationProgressLogger, TrainingProgressLogger};
use burn_train::metric::{MetricDefinition, MetricId, NumericEntry};
use burn_train::renderer::{
    EvaluationName, MetricState, MetricsRenderer, MetricsRendererEvaluation, MetricsRendererTraining,
};
use burn_train::{Interrupter, LearnerSummary};
use std::collections::{HashMap, VecDeque};
use std::io::IsTerminal;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Which renderer shows the training.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dashboard {
    /// The dashboard in a terminal, else plain lines.
    #[default]
    Auto,
    /// burn-train's terminal dashboard.
    Tui,
    /// A line on standard error now and then.
    Plain,
    /// Nothing.
    None,
}

impl Dashboard {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Auto, Self::Tui, Self::Plain, Self::None];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Tui => "tui",
            Self::Plain => "plain",
            Self::None => "none",
        }
    }
}

/// How far training is, shared between the loop and the plain renderer.
#[derive(Debug)]
pub struct Progress {
    /// Updates made.
    pub update: u64,
    /// Updates made when this process took over.
    pub start: u64,
    /// Updates at the end.
    pub total: u64,
    /// When this process took over.
    pub since: Instant,
    /// Seconds of training before that.
    pub seconds_before: f64,
    /// Seconds after which training ends, if time is limited.
    pub max_seconds: Option<f64>,
    /// Updates that have been made and not been shown yet, each with its epoch, counted from 1: who shows them may be behind the loop.
    pub unshown: VecDeque<(u64, u64)>,
}

/// Most updates that wait to be shown: not every dashboard takes them.
const MOST_UNSHOWN: usize = 1 << 12;

impl Progress {
    /// Seconds of training so far.
    pub fn seconds(&self) -> f64 {
        self.seconds_before + self.since.elapsed().as_secs_f64()
    }

    /// Notes that another update has been made.
    pub(super) fn advance(&mut self, update: u64, epoch: u64) {
        self.update = update;
        if self.unshown.len() == MOST_UNSHOWN {
            self.unshown.pop_front();
        }
        self.unshown.push_back((update, epoch));
    }

    /// The part that is done, from 0 to 1: of the updates or of the time, whichever will end first.
    pub fn part(&self) -> f64 {
        let of_updates = self.update as f64 / self.total.max(1) as f64;
        let of_time = self.max_seconds.map_or(0.0, |most| self.seconds() / most.max(f64::MIN_POSITIVE));
        of_updates.max(of_time).min(1.0)
    }

    /// About how many seconds are left, if updates go on taking as long as they have.
    fn seconds_left(&self) -> f64 {
        // After a return to a checkpoint an update may be one from before this process began.
        let done = self.update.saturating_sub(self.start).max(1) as f64;
        let of_updates = self.total.saturating_sub(self.update) as f64 * self.since.elapsed().as_secs_f64() / done;
        self.max_seconds.map_or(of_updates, |most| of_updates.min((most - self.seconds()).max(0.0)))
    }
}

impl Dashboard {
    /// Whether the terminal dashboard will be shown.
    pub fn is_tui(self) -> bool {
        cfg!(feature = "tui") && (self == Self::Tui || self == Self::Auto && has_terminal())
    }

    /// Refuses the terminal dashboard where there is no terminal.
    ///
    /// # Errors
    /// Says so.
    pub fn check(self) -> Result<()> {
        if self == Self::Tui && !cfg!(feature = "tui") {
            return Err(Error::message("--dashboard tui is not in this build; build with the cargo feature tui"));
        }
        if self == Self::Tui && !has_terminal() {
            let message =
                "--dashboard tui needs a terminal for standard input and output; there is none, take plain or auto";
            return Err(Error::message(message));
        }
        Ok(())
    }

    /// Makes the renderer.
    #[cfg_attr(not(feature = "tui"), allow(unused_variables))]
    pub fn renderer(
        self,
        interrupter: &Interrupter,
        progress: &Arc<Mutex<Progress>>,
        log_every: u64,
    ) -> Box<dyn MetricsRenderer> {
        #[cfg(feature = "tui")]
        if self.is_tui() {
            use burn_train::renderer::tui::TuiMetricsRendererWrapper;
            let renderer = Box::new(TuiMetricsRendererWrapper::new(interrupter.clone(), None));
            keep_ctrl_c(progress);
            return renderer;
        }
        Box::new(PlainRenderer {
            is_silent: self == Self::None,
            log_every,
            progress: progress.clone(),
            names: HashMap::new(),
            train: HashMap::new(),
            valid: HashMap::new(),
            is_valid: false,
            at: 0,
        })
    }
}

/// Whether the dashboard can draw and read keys.
fn has_terminal() -> bool {
    std::io::stdout().is_terminal() && std::io::stdin().is_terminal()
}

/// The dashboard puts the terminal into raw mode, in which Ctrl-C is a key like any other and nobody listens to it. Its
/// signal is switched on again as soon as raw mode is.
#[cfg(all(unix, feature = "tui"))]
fn keep_ctrl_c(progress: &Arc<Mutex<Progress>>) {
    use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
    let progress = Arc::downgrade(progress);
    std::thread::spawn(move || {
        let stdin = std::io::stdin();
        // During training.
        while progress.strong_count() > 0 {
            if let Ok(mut modes) = tcgetattr(&stdin)
                && !modes.local_modes.contains(LocalModes::ICANON)
                && !modes.local_modes.contains(LocalModes::ISIG)
            {
                modes.local_modes |= LocalModes::ISIG;
                let _ = tcsetattr(&stdin, OptionalActions::Now, &modes);
            }
            std::thread::sleep(std::time::Duration::from_millis(200));
        }
    });
}

#[cfg(all(not(unix), feature = "tui"))]
fn keep_ctrl_c(_progress: &Arc<Mutex<Progress>>) {}

/// Lines on standard error.
struct PlainRenderer {
    is_silent: bool,
    log_every: u64,
    progress: Arc<Mutex<Progress>>,
    names: HashMap<MetricId, String>,
    /// Sum and count of each metric since the last line: one batch alone says little, since its sentences are of one length.
    train: HashMap<String, (f64, u64)>,
    valid: HashMap<String, f64>,
    is_valid: bool,
    /// The last update that has come.
    at: u64,
}

impl PlainRenderer {
    fn note(&self, state: MetricState) -> Option<(String, f64)> {
        let MetricState::Numeric(entry, Some(value)) = state else { return None };
        // What counts is the present update; the aggregate comes once more at the end of a stretch.
        let value = match value {
            NumericEntry::Value(value) | NumericEntry::Final(value) => value,
            NumericEntry::Aggregated { aggregated_value, .. } => aggregated_value,
        };
        Some((self.names.get(&entry.metric_id)?.clone(), value))
    }

    fn line(&self, values: &HashMap<String, f64>) -> String {
        let mut parts = Vec::new();
        let mut show = |name: &str, text: &dyn Fn(f64) -> String| {
            if let Some(value) = values.get(name).filter(|value| value.is_finite()) {
                parts.push(text(*value));
            }
        };
        show("Loss", &|v| format!("loss {v:.4}"));
        show("Perplexity", &|v| format!("ppl {v:.2}"));
        show("Token accuracy", &|v| format!("tokens right {v:.1} %"));
        show("Bits per character", &|v| format!("{v:.3} bits per character"));
        show("MSE", &|v| format!("mse {v:.4}"));
        show("Root MSE", &|v| format!("rmse {v:.4}"));
        show("MAE", &|v| format!("mae {v:.4}"));
        for metric in Metric::ALL {
            show(&metric.title(), &|v| format!("{} {v:.2}{}", metric.label(), metric.sign()));
        }
        show(LEARNING_RATE, &|v| format!("lr {v:.2e}"));
        show("Gradient norm", &|v| format!("|g| {v:.2}"));
        show("Target tokens/s", &|v| format!("{v:.0} tok/s"));
        show("Steps/s", &|v| format!("{v:.0} steps/s"));
        parts.join("  ")
    }
}

/// Seconds as people say them.
pub fn duration(seconds: f64) -> String {
    let seconds = seconds.round() as u64;
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, s) => format!("{s} s"),
        (0, m, s) => format!("{m} min {s:02} s"),
        (h, m, _) => format!("{h} h {m:02} min"),
    }
}

impl MetricsRendererTraining for PlainRenderer {
    fn update_train(&mut self, state: MetricState) {
        // The mean of the whole stretch, which comes at its end, has been counted update by update.
        if matches!(state, MetricState::Numeric(_, Some(NumericEntry::Final(_)))) {
            return;
        }
        if let Some((name, value)) = self.note(state) {
            // A rate is one that was used, not a mean of several.
            if name == LEARNING_RATE {
                self.train.insert(name, (value, 1));
                return;
            }
            let (sum, count) = self.train.entry(name).or_default();
            *sum += value;
            *count += 1;
        }
    }

    fn update_valid(&mut self, state: MetricState) {
        self.valid.extend(self.note(state));
    }

    fn on_train_end(&mut self, _summary: Option<LearnerSummary>) -> Result<(), Box<dyn std::error::Error>> {
        Ok(())
    }
}

impl TrainingProgressLogger for PlainRenderer {
    fn start(&mut self, _epochs: usize, _starting_epoch: usize, _items: Option<usize>, _label: Option<&str>) {}

    fn update_epoch(&mut self, _epoch: usize) {}

    fn start_split(&mut self, split: &str, _total_items: usize) {
        self.is_valid = split.to_lowercase().contains("valid");
    }

    fn update_split(&mut self, _items_processed: usize) {
        if self.is_valid {
            return;
        }
        let mut progress = self.progress.lock().expect("no thread panics with the lock");
        let Some((update, epoch)) = progress.unshown.pop_front() else { return };
        self.at = update;
        if self.is_silent || !update.is_multiple_of(self.log_every) && update != progress.start + 1 {
            return;
        }
        let mut means: HashMap<String, f64> =
            self.train.iter().map(|(name, (sum, count))| (name.clone(), sum / *count as f64)).collect();
        if let (Some(loss), Some(perplexity)) = (means.get("Loss").copied(), means.get_mut("Perplexity")) {
            *perplexity = loss.exp();
        }
        notice::say(format_args!(
            "update {:>6}/{}  epoch {}  {}  {} left",
            update,
            progress.total,
            epoch,
            self.line(&means),
            duration(progress.seconds_left())
        ));
        drop(progress);
        self.train.clear();
    }

    fn end_split(&mut self) {
        if self.is_valid && !self.is_silent {
            notice::say(format_args!("  valid {:>6}  {}", self.at, self.line(&self.valid)));
        }
        self.is_valid = false;
    }

    fn end(&mut self) {}

    fn log_event_training(&mut self, _event: String) {}
}

impl EvaluationProgressLogger for PlainRenderer {
    fn start_global_progress(&mut self, _total_tests: usize) {}
    fn start_test(&mut self, _name: &str, _total_items: usize) {}
    fn update_test_progress(&mut self, _items_processed: usize) {}
    fn end_test(&mut self) {}
    fn end_global_progress(&mut self) {}
    fn log_event_evaluation(&mut self, _event: String) {}
}

impl MetricsRendererEvaluation for PlainRenderer {
    fn update_test(&mut self, _name: EvaluationName, _state: MetricState) {}
}

impl MetricsRenderer for PlainRenderer {
    fn manual_close(&mut self) {}

    fn register_metric(&mut self, definition: MetricDefinition) {
        self.names.insert(definition.metric_id, definition.name.to_string());
    }
}
