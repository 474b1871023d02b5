//! What several ranks that train one run have to agree on before they begin.

use super::{Config, differences};
use crate::data::Tokenizers;
use crate::error::{Error, Result};
use crate::ranks::{Ranks, say};
use crate::training::{Observer, Progress};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Waits until rank 0 has made the run folder, or says so as rank 0; returns whether training begins there.
pub(super) fn folder_is_ready(ranks: &dyn Ranks, is_new: Option<bool>) -> bool {
    say(ranks, is_new)[0].expect("rank 0 knows")
}

/// The parts of an update, of which a config names those of one rank: with `began_with` ranks a run has as many times that, and
/// keeps them when it continues with others.
pub(super) fn parts_of_update(config: &Config, begun: Option<&Config>, began_with: usize) -> usize {
    let own = config.training.accumulation;
    // A config with all of them means the same.
    if begun.is_some_and(|begun| begun.training.accumulation == own) { own } else { own.saturating_mul(began_with) }
}

/// How the parts of an update are shared out, in words.
pub(super) fn said_of(n_ranks: usize, n_parts: usize) -> String {
    let most = n_parts.div_ceil(n_ranks);
    let idle = match n_ranks.saturating_sub(n_parts) {
        0 => String::new(),
        n => format!(", and {n} of them none"),
    };
    format!("ranks    {n_ranks}; an update has {n_parts} parts, each rank at most {most} of them{idle}")
}

/// What has to be the same for all ranks.
#[derive(Serialize, Deserialize)]
pub(super) struct Facts {
    version: String,
    config: String,
    data: BTreeMap<String, String>,
    tokenizers: String,
    n_parameters: usize,
}

impl Facts {
    pub(super) fn new(
        config: &Config,
        data: &BTreeMap<String, String>,
        tokenizers: &Tokenizers,
        n_parameters: usize,
    ) -> Self {
        let version = env!("CARGO_PKG_VERSION").to_string();
        Self {
            version,
            config: config.to_toml(),
            data: data.clone(),
            tokenizers: tokenizers.fingerprint(),
            n_parameters,
        }
    }

    /// What another rank has otherwise.
    fn difference(&self, other: &Self) -> Option<String> {
        let of_config = || {
            let [own, other] = [self, other].map(|facts| toml::from_str::<Config>(&facts.config).ok());
            let (key, own, other) = differences(&own?, &other?).into_iter().next()?;
            Some(format!("{key} is {other}, not {own}"))
        };
        let of_data = || {
            let split =
                self.data.keys().chain(other.data.keys()).find(|key| self.data.get(*key) != other.data.get(*key));
            split.map(|split| format!("data.{} is other data (the SHA-256 differs)", split.replace('/', ".")))
        };
        if self.version != other.version {
            return Some(format!("the program is version {}, not {}", other.version, self.version));
        }
        if self.config != other.config {
            return Some(of_config().unwrap_or_else(|| "the config is another".into()));
        }
        of_data().or_else(|| {
            let is_same = self.tokenizers == other.tokenizers && self.n_parameters == other.n_parameters;
            (!is_same).then(|| "the tokenizer or the model is another".into())
        })
    }

    /// Refuses ranks that would train something else than rank 0. All ranks refuse together.
    ///
    /// # Errors
    /// Names the rank and what it has otherwise.
    pub(super) fn check(self, ranks: &dyn Ranks) -> Result<()> {
        let said = say(ranks, self);
        let found = (1..said.len()).find_map(|rank| Some((rank, said[0].difference(&said[rank])?)));
        found.map_or(Ok(()), |(rank, difference)| {
            Err(Error::message(format!(
                "rank {rank} cannot train with rank 0: there, {difference}; give all ranks the same"
            )))
        })
    }
}

/// What the ranks behind the first tell people: nothing, since the first says it.
#[derive(Debug)]
pub(super) struct Follower(pub(super) Arc<dyn Observer>);

impl Observer for Follower {
    fn warn(&self, _line: &str) {}

    fn begin(&self, _progress: &Arc<Mutex<Progress>>) {}

    fn should_stop(&self) -> bool {
        self.0.should_stop()
    }
}
