//! Associative recall: some key-value pairs, then one of the keys, or all of them; the answer are their values.
//!
//! # Reference
//!
//! The task of Ba et al., *Using Fast Weights to Attend to the Recent Past*, 2016, section 4.1. **Differs from the
//! paper:** symbols are separated by spaces, one `?` stands before the asked key, and the number of pairs varies. With every key
//! asked again it is the multi-query recall of Arora et al., *Zoology: Measuring and Improving Recall in Efficient Language
//! Models*, 2023, section 4: attention answers all of it, a state of fixed size as many pairs as it has room for. There, questions
//! stand at random places among blanks and are answered where they stand (`n_blanks`, `in_place`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{symbols, validate_lengths};
use crate::data::{Pair, Rng};
use crate::error::{Error, Result};

/// Settings of associative recall.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RecallConfig {
    /// How many keys there are, at least 2. Up to 26 they are `a`, `b`, ...; beyond that `k0`, `k1`, ...
    pub n_keys: usize,
    /// How many values there are, at least 2: the numbers `0`, `1`, ...
    pub n_values: usize,
    /// Fewest key-value pairs in a source, at least 1. Every number up to `max_len` is equally likely.
    pub min_len: usize,
    /// Most key-value pairs in a source, at most `n_keys`, as no key occurs twice. A source of n pairs has 2n + 2
    /// symbols.
    pub max_len: usize,
    /// Whether every key is asked, in an order of its own, instead of one: a source of n pairs has 3n + 1 symbols then, and the blanks.
    pub asks_all: bool,
    /// Blanks, `.`, at random places among the questions; with `asks_all`.
    pub n_blanks: usize,
    /// Whether a question is answered where it stands, so that the target is as long as the source, `.` where nothing is asked; with
    /// `asks_all`.
    pub in_place: bool,
}

/// The most blanks that may be asked for.
const MOST_BLANKS: usize = 100_000;
/// What stands where nothing is asked and nothing answered.
pub(crate) const BLANK: &str = ".";

impl Default for RecallConfig {
    fn default() -> Self {
        Self { n_keys: 26, n_values: 10, min_len: 2, max_len: 8, asks_all: false, n_blanks: 0, in_place: false }
    }
}

impl RecallConfig {
    pub(super) fn validate(&self) -> Result<()> {
        symbols::validate_n("n_keys", self.n_keys, 2)?;
        symbols::validate_n("n_values", self.n_values, 2)?;
        if self.max_len > self.n_keys {
            let message = format!(
                "must be at most n_keys = {}, as no key occurs twice in a source, got {}",
                self.n_keys, self.max_len
            );
            return Err(Error::config("data.task.max_len", message));
        }
        for (key, is_set) in [("n_blanks", self.n_blanks > 0), ("in_place", self.in_place)] {
            if is_set && !self.asks_all {
                let message = "is for asks_all = true, where every key is asked; set that, or leave this out";
                return Err(Error::config(format!("data.task.{key}"), message));
            }
        }
        if self.n_blanks > MOST_BLANKS {
            let message = format!("must be at most {MOST_BLANKS}, got {}", self.n_blanks);
            return Err(Error::config("data.task.n_blanks", message));
        }
        validate_lengths(self.min_len, self.max_len, self.n_keys, "key-value pairs")
    }

    fn key(&self, key: usize) -> String {
        if self.n_keys <= 26 { symbols::name(key, self.n_keys) } else { format!("k{key}") }
    }
}

/// One random pair.
pub(super) fn draw(config: &RecallConfig, rng: &mut Rng) -> Pair {
    let n_pairs = rng.between(config.min_len, config.max_len);
    let keys = rng.distinct(n_pairs, config.n_keys);
    let mut source = Vec::with_capacity(2 * n_pairs + 2);
    let mut values = Vec::with_capacity(n_pairs);
    for &key in &keys {
        let value = rng.below(config.n_values as u64).to_string();
        source.push(config.key(key));
        source.push(value.clone());
        values.push(value);
    }
    source.push("?".to_owned());
    if config.asks_all {
        let mut asked: Vec<usize> = (0..n_pairs).collect();
        rng.shuffle(&mut asked);
        // Which of the places after the pairs are questions.
        let n_places = n_pairs + config.n_blanks;
        let mut places: Vec<usize> =
            if config.n_blanks > 0 { rng.distinct(n_pairs, n_places) } else { (0..n_pairs).collect() };
        places.sort_unstable();
        let n_before = if config.in_place { source.len() } else { 0 };
        let mut answers = vec![BLANK; n_before];
        let mut next = 0;
        for place in 0..n_places {
            if places.get(next) == Some(&place) {
                source.push(config.key(keys[asked[next]]));
                answers.push(&values[asked[next]]);
                next += 1;
            } else {
                source.push(BLANK.to_owned());
                answers.extend(config.in_place.then_some(BLANK));
            }
        }
        return Pair::new(source.join(" "), answers.join(" "));
    }
    let asked = rng.below(n_pairs as u64) as usize;
    source.push(config.key(keys[asked]));
    Pair::new(source.join(" "), values.swap_remove(asked))
}
