//! `backend = "auto"` where there is a GPU: this very model computes a little there and on the CPU, and the faster one is taken.
//!
//! A GPU is no faster with small models: what it saves in arithmetic it loses in launches. Where that turns depends on the model, its
//! batches and both devices, so it is measured. The outcome is kept in the run folder, in `auto.json`, and holds there for as long as
//! the devices are the same.

use super::Config;
use super::run::{LoadedModel, Run};
use crate::backend::{Adapter, Backend};
use crate::data::tokenizer::SPECIALS;
use crate::decoding::{DecodingConfig, Request, decode};
use crate::error::Result;
use crate::files;
use crate::models::{Autoregressive, Model, Vocabularies};
use crate::training::{Lessons, Observer, RunFolder, seconds_of_update};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

/// The outcomes, in a run folder.
const FILE: &str = "auto.json";
/// Sentences that are translated, and the words of each and of its translation.
const SENTENCES: usize = 8;
const WORDS: usize = 16;

/// What was computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Work {
    /// Updates of the model.
    Updates,
    /// Sentences that it translates.
    Sentences,
}

/// How long a device took.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Time {
    backend: Backend,
    device: String,
    /// What the device calls itself, with its driver: another machine may have one with the same place.
    #[serde(default)]
    driver: String,
    seconds: f64,
}

impl Time {
    fn new(adapter: &Adapter, seconds: f64) -> Self {
        let (name, driver) = adapter.driver();
        let driver = format!("{name} {driver}").trim().to_string();
        Self { backend: adapter.backend, device: adapter.name.clone(), driver, seconds }
    }

    fn is_of(&self, adapter: &Adapter) -> bool {
        let now = Self::new(adapter, self.seconds);
        (self.backend, &self.device, &self.driver) == (now.backend, &now.device, &now.driver)
    }
}

/// A race of devices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Race {
    work: Work,
    /// The version of this program.
    version: String,
    times: Vec<Time>,
}

impl Race {
    /// Times `work` on every adapter.
    ///
    /// # Errors
    /// Those of `seconds`.
    pub fn run(work: Work, adapters: &[Adapter], mut seconds: impl FnMut(&Adapter) -> Result<f64>) -> Result<Self> {
        let time = |adapter: &Adapter| Ok(Time::new(adapter, seconds(adapter)?));
        let times = adapters.iter().map(time).collect::<Result<_>>()?;
        Ok(Self { work, version: env!("CARGO_PKG_VERSION").into(), times })
    }

    /// The place of the fastest among the adapters. A time that is no number never wins.
    pub fn winner(&self) -> usize {
        let seconds = |i: &usize| match self.times[*i].seconds {
            seconds if seconds.is_nan() => f64::INFINITY,
            seconds => seconds,
        };
        (0..self.times.len()).min_by(|a, b| seconds(a).total_cmp(&seconds(b))).unwrap_or(0)
    }

    /// Whether the same program had the same devices to choose from.
    fn holds_for(&self, adapters: &[Adapter]) -> bool {
        self.version == env!("CARGO_PKG_VERSION")
            && self.times.len() == adapters.len()
            && self.times.iter().zip(adapters).all(|(time, adapter)| time.is_of(adapter))
    }
}

impl fmt::Display for Race {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.work {
            Work::Updates => "an update",
            Work::Sentences => "translating",
        };
        write!(f, "auto     {what} takes ")?;
        for (i, Time { backend, device, seconds, .. }) in self.times.iter().enumerate() {
            let and = if i > 0 { " and " } else { "" };
            write!(f, "{and}{seconds:.4} s on {backend} ({device})")?;
        }
        write!(f, ": {}", self.times[self.winner()].backend)
    }
}

/// What is kept in a folder; nothing if that is damaged.
fn kept(folder: &RunFolder) -> Vec<Race> {
    let text = std::fs::read_to_string(folder.join(FILE)).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// The one of several adapters that is the fastest at `work`: as the folder says, or as a race shows, which the folder keeps.
fn fastest(
    folder: &RunFolder,
    work: Work,
    adapters: &[Adapter],
    observer: &dyn Observer,
    seconds: impl FnMut(&Adapter) -> Result<f64>,
) -> Result<Adapter> {
    let mut races = kept(folder);
    if let Some(race) = races.iter().find(|race| race.work == work && race.holds_for(adapters)) {
        return Ok(adapters[race.winner()].clone());
    }
    let race = Race::run(work, adapters, seconds)?;
    observer.say(&race.to_string());
    let winner = adapters[race.winner()].clone();
    races.retain(|other| other.work != work);
    races.push(race);
    let text = serde_json::to_string_pretty(&races).expect("plain data");
    // In a folder that cannot be written to, the next command looks again. A link may come with a folder that is not trusted.
    if !folder.join(FILE).is_symlink() {
        let _ = files::replace(&folder.join(FILE), text.as_bytes());
    }
    Ok(winner)
}

/// The one of several adapters on which this model is trained the fastest.
///
/// # Errors
/// If the model cannot be made, or the data not be read.
pub(super) fn of_updates(
    folder: &RunFolder,
    config: &Config,
    vocabularies: Vocabularies,
    lessons: &Arc<dyn Lessons<Model>>,
    adapters: &[Adapter],
    observer: &dyn Observer,
) -> Result<Adapter> {
    fastest(folder, Work::Updates, adapters, observer, |adapter| {
        let model = config.model.init(vocabularies, config.seed, &adapter.device)?;
        seconds_of_update(model, &adapter.device, lessons.clone(), &config.training, config.seed)
    })
}

/// The one of a device and its rivals on which a run was trained.
pub fn of_run(run: &Run, first: &Adapter, rivals: &[Adapter]) -> Adapter {
    let adapters: Vec<Adapter> = std::iter::once(first).chain(rivals).cloned().collect();
    let race = kept(run.folder()).into_iter().find(|race| race.work == Work::Updates && race.holds_for(&adapters));
    adapters[race.map_or(0, |race| race.winner())].clone()
}

/// The one of several adapters on which the model of a run translates the fastest. What reads no source is not timed: it goes where
/// its updates were fastest, or to the first.
///
/// # Errors
/// If the run cannot be loaded.
pub fn of_sentences(
    run: &Run,
    adapters: Vec<Adapter>,
    checkpoint: Option<&str>,
    observer: &dyn Observer,
) -> Result<Adapter> {
    let [first, _, ..] = &adapters[..] else { return Ok(adapters.into_iter().next().expect("one is there")) };
    let model = run.config()?.model;
    if !model.reads_source() || model.answers_with_numbers() {
        let races = kept(run.folder());
        let race = races.iter().find(|race| race.holds_for(&adapters));
        return Ok(race.map_or(first, |race| &adapters[race.winner()]).clone());
    }
    fastest(run.folder(), Work::Sentences, &adapters, observer, |adapter| {
        Ok(seconds_of_sentences(&run.load_model(adapter, checkpoint, |_| ())?))
    })
}

/// The seconds for a few sentences of words that mean nothing, after a first time that is not counted.
fn seconds_of_sentences(loaded: &LoadedModel) -> f64 {
    let limits = loaded.model.limits();
    let words = WORDS.min(limits.source.map_or(WORDS, |limit| limit.len - 1));
    let cap = WORDS.min(limits.target.map_or(WORDS, |limit| limit.len - 1));
    let special = SPECIALS.len();
    let n = loaded.tokenizers.source().vocab_size().saturating_sub(special).max(1);
    let sentence = |i: usize| (0..words).map(|j| (special + (7 * i + 3 * j) % n) as u32).collect();
    let requests: Vec<Request> = (0..SENTENCES).map(|i| Request::new(sentence(i))).collect();
    let config = DecodingConfig {
        beam_size: 1,
        n_best: 1,
        max_len_factor: Some(0.0),
        max_len_extra: Some(cap),
        sampling: None,
        ..loaded.config.decoding.clone()
    };
    let translate = || _ = decode(&loaded.model, &requests, &config, 1, |_| ());
    translate();
    let start = Instant::now();
    translate();
    start.elapsed().as_secs_f64()
}
