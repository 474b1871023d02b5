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

/// What has to be the same for all ranks, besides the program.
#[derive(Serialize, Deserialize)]
pub(super) struct Facts {
    config: String,
    data: BTreeMap<String, String>,
    tokenizers: String,
    n_parameters: usize,
}

/// Keys whose values are derived from the data where nobody gives them.
const DERIVED: [&str; 2] = ["decoding.max_len_factor", "decoding.max_len_extra"];

impl Facts {
    pub(super) fn new(
        config: &Config,
        data: &BTreeMap<String, String>,
        tokenizers: &Tokenizers,
        n_parameters: usize,
    ) -> Self {
        Self { config: config.to_toml(), data: data.clone(), tokenizers: tokenizers.fingerprint(), n_parameters }
    }

    /// What another rank has otherwise: what was given before what follows from it.
    fn difference(&self, other: &Self) -> Option<String> {
        let configs = [self, other].map(|facts| toml::from_str::<Config>(&facts.config).ok());
        let differing = match &configs {
            [Some(own), Some(other)] => differences(own, other),
            _ => Vec::new(),
        };
        let of_config = |is_derived: bool| {
            let (key, own, other) =
                differing.iter().find(|(key, _, _)| DERIVED.contains(&key.as_str()) == is_derived)?;
            Some(format!("{key} is {other}, not {own}"))
        };
        let of_data = || {
            let split =
                self.data.keys().chain(other.data.keys()).find(|key| self.data.get(*key) != other.data.get(*key));
            split.map(|split| format!("data.{} is other data (the SHA-256 differs)", split.replace('/', ".")))
        };
        let rest = || match () {
            () if self.config != other.config => Some("the config is another".into()),
            () if self.tokenizers != other.tokenizers || self.n_parameters != other.n_parameters => {
                Some("the tokenizer or the model is another".into())
            }
            () => None,
        };
        of_config(false).or_else(of_data).or_else(|| of_config(true)).or_else(rest)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{TokenizerConfig, TokenizersConfig};

    #[test]
    fn other_data_are_named_before_the_length_cap_that_follows_from_them() {
        let letters: TokenizerConfig = serde_json::from_str(r#"{"kind": "char"}"#).expect("a tokenizer");
        let tokenizers = Tokenizers::train_text(&["ab"], &TokenizersConfig::Same(letters), false).expect("letters");
        let facts = |cap: usize, seed: u64, sha256: &str| {
            let mut config = Config { seed, ..Config::default() };
            config.decoding.max_len_extra = Some(cap);
            Facts::new(&config, &BTreeMap::from([("train/tsv".into(), sha256.into())]), &tokenizers, 7)
        };
        let own = facts(20, 1, "one");
        assert_eq!(own.difference(&facts(20, 1, "one")), None);
        let data = "data.train.tsv is other data (the SHA-256 differs)";
        assert_eq!(own.difference(&facts(30, 1, "another")).as_deref(), Some(data));
        assert_eq!(own.difference(&facts(30, 2, "another")).as_deref(), Some("seed is 2, not 1"));
        assert_eq!(own.difference(&facts(30, 1, "one")).as_deref(), Some("decoding.max_len_extra is 30, not 20"));
    }
}
