//! Generated tasks: unlimited data whose right answers are known, without a download.
//!
//! A task is a configuration ([`TaskConfig`]) and a pure function from random numbers to a pair. Which split a source
//! belongs to is decided by a hash of its text ([`Split::of_source`], a tenth each for valid and test), whatever the
//! seed and the lengths, so no validation or test source is ever trained on, also across two differently configured
//! tasks.

mod arithmetic;
mod chance;
mod copy;
mod dates;
mod depth;
mod french;
mod next_value;
mod numbers;
mod parity;
mod recall;
mod reverse;
mod rises;
mod selective_copy;
mod sort;
mod symbols;

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use arithmetic::ArithmeticConfig;
pub use dates::DatesConfig;
pub use depth::DepthConfig;
pub use french::{Spelling, french};
pub use next_value::NextValueConfig;
pub use numbers::{NumbersConfig, english};
pub use parity::ParityConfig;
pub(crate) use recall::BLANK;
pub use recall::RecallConfig;
pub use selective_copy::SelectiveCopyConfig;
pub use symbols::SymbolsConfig;

use super::{Pair, Split, random};
use crate::error::{Error, Result};

/// Thousandths of all sources that go to each of valid and test.
const HELD_OUT_PER_MILLE: u64 = 100;

/// How many random sources in a row may be refused (wrong split, or held-out and already there) before the task counts
/// as too small. With a tenth of all sources in a split, even the last missing one of about 100 is found before that.
const MAX_REFUSED: usize = 20_000;

/// A generated task and its settings, selected by `kind`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum TaskConfig {
    /// Write the source again: `c a b` gives `c a b`.
    Copy(SymbolsConfig),
    /// Write the source backwards: `c a b` gives `b a c`.
    Reverse(SymbolsConfig),
    /// Write the symbols of the source in ascending order: `c a b` gives `a b c`.
    Sort(SymbolsConfig),
    /// Key-value pairs, then one key or all of them; answer their values: `a 3 c 7 ? c` gives `7`.
    Recall(RecallConfig),
    /// Write the symbols among the blanks: `. c . a . b` gives `c a b`.
    SelectiveCopy(SelectiveCopyConfig),
    /// Whether the number of ones is odd: `1 0 1 1` gives `odd`.
    Parity(ParityConfig),
    /// A sum modulo a small number: `3 + 4 * 2` gives `1`.
    Arithmetic(ArithmeticConfig),
    /// How many brackets are open after each: `( ( ) (` gives `1 2 1 2`.
    Depth(DepthConfig),
    /// For each symbol whether the next one is greater: `c a b` gives `> < >`.
    Rises(SymbolsConfig),
    /// The next value of a noisy oscillation: `1.2 3.4` gives `3.4 2.9`.
    NextValue(NextValueConfig),
    /// Dates as people write them into ISO 8601: `March 5th, 2024` gives `2024-03-05`.
    Dates(DatesConfig),
    /// English number words into French ones: `twenty-one` gives `vingt-et-un`.
    Numbers(NumbersConfig),
}

impl TaskConfig {
    /// Every task's name and one line about it, in the order in which they are listed.
    pub const TASKS: [(&'static str, &'static str); 12] = [
        ("copy", "write the source again: `c a b` gives `c a b`"),
        ("reverse", "write the source backwards: `c a b` gives `b a c`"),
        ("sort", "write the symbols in ascending order: `c a b` gives `a b c`"),
        ("recall", "associative recall, answer the value of the asked key: `a 3 c 7 ? c` gives `7`"),
        ("selective-copy", "write the symbols among the blanks: `. c . a . b` gives `c a b`"),
        ("parity", "whether the number of ones is odd: `1 0 1 1` gives `odd`"),
        ("arithmetic", "a sum modulo a small number: `3 + 4 * 2` gives `1`"),
        ("depth", "how many brackets are open after each: `( ( ) (` gives `1 2 1 2`"),
        ("rises", "for each symbol `<` if the next one is greater, else `>`: `c a b` gives `> < >`"),
        ("next-value", "the next value of a noisy oscillation, for models of numbers: `1.2 3.4` gives `3.4 2.9`"),
        ("dates", "dates as people write them into ISO 8601: `March 5th, 2024` gives `2024-03-05`"),
        ("numbers", "English number words into French ones: `twenty-one` gives `vingt-et-un`"),
    ];

    /// The task called `name` with its default settings.
    ///
    /// # Errors
    ///
    /// When there is no such task; the message lists those there are.
    pub fn from_name(name: &str) -> Result<Self> {
        Ok(match name {
            "copy" => Self::Copy(SymbolsConfig::default()),
            "reverse" => Self::Reverse(SymbolsConfig::default()),
            "sort" => Self::Sort(SymbolsConfig::default()),
            "recall" => Self::Recall(RecallConfig::default()),
            "selective-copy" => Self::SelectiveCopy(SelectiveCopyConfig::default()),
            "parity" => Self::Parity(ParityConfig::default()),
            "arithmetic" => Self::Arithmetic(ArithmeticConfig::default()),
            "depth" => Self::Depth(DepthConfig::default()),
            "rises" => Self::Rises(SymbolsConfig::default()),
            "next-value" => Self::NextValue(NextValueConfig::default()),
            "dates" => Self::Dates(DatesConfig::default()),
            "numbers" => Self::Numbers(NumbersConfig::default()),
            _ => {
                let names = Self::TASKS.map(|(name, _)| name).join(", ");
                return Err(Error::message(format!("unknown task `{name}`; there are: {names}")));
            }
        })
    }

    /// The task's name, as in [`Self::TASKS`] and in `kind`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Copy(_) => "copy",
            Self::Reverse(_) => "reverse",
            Self::Sort(_) => "sort",
            Self::Recall(_) => "recall",
            Self::SelectiveCopy(_) => "selective-copy",
            Self::Parity(_) => "parity",
            Self::Arithmetic(_) => "arithmetic",
            Self::Depth(_) => "depth",
            Self::Rises(_) => "rises",
            Self::NextValue(_) => "next-value",
            Self::Dates(_) => "dates",
            Self::Numbers(_) => "numbers",
        }
    }

    /// Sets the shortest and the longest length, in the task's own unit, where given.
    ///
    /// # Errors
    ///
    /// When the task has no lengths (dates) and one is given. The values themselves are checked by [`Self::validate`].
    pub fn set_lengths(&mut self, min_len: Option<usize>, max_len: Option<usize>) -> Result<()> {
        let (min, max) = match self {
            Self::Copy(c) | Self::Reverse(c) | Self::Sort(c) | Self::Rises(c) => (&mut c.min_len, &mut c.max_len),
            Self::Recall(c) => (&mut c.min_len, &mut c.max_len),
            Self::SelectiveCopy(c) => (&mut c.min_len, &mut c.max_len),
            Self::Parity(c) => (&mut c.min_len, &mut c.max_len),
            Self::Arithmetic(c) => (&mut c.min_len, &mut c.max_len),
            Self::Depth(c) => (&mut c.min_len, &mut c.max_len),
            Self::NextValue(c) => (&mut c.min_len, &mut c.max_len),
            Self::Numbers(c) => (&mut c.min_len, &mut c.max_len),
            Self::Dates(_) if min_len.is_none() && max_len.is_none() => return Ok(()),
            Self::Dates(_) => {
                return Err(Error::message(
                    "the task `dates` has no lengths to set; leave --min-len and --max-len away",
                ));
            }
        };
        *min = min_len.unwrap_or(*min);
        *max = max_len.unwrap_or(*max);
        Ok(())
    }

    /// Checks every field.
    ///
    /// # Errors
    ///
    /// Names the first field that breaks a rule (`data.task.max_len`), its value and the rule.
    pub fn validate(&self) -> Result<()> {
        match self {
            Self::Copy(c) | Self::Reverse(c) | Self::Sort(c) | Self::Rises(c) => c.validate(),
            Self::Recall(c) => c.validate(),
            Self::SelectiveCopy(c) => c.validate(),
            Self::Parity(c) => c.validate(),
            Self::Arithmetic(c) => c.validate(),
            Self::Depth(c) => c.validate(),
            Self::NextValue(c) => c.validate(),
            Self::Dates(c) => c.validate(),
            Self::Numbers(c) => c.validate(),
        }
    }

    /// The first `n_pairs` pairs of a split; a larger `n_pairs` appends and changes none of the earlier ones.
    ///
    /// Sources of valid and test are distinct and never sources of train. Train may repeat a pair, as a draw with
    /// replacement does: short copies are few, and an epoch should not run out of them.
    ///
    /// # Errors
    ///
    /// As [`Self::validate`]; and when the task has too few sources for `n_pairs` distinct ones.
    pub fn generate(&self, split: Split, n_pairs: usize, seed: u64) -> Result<Vec<Pair>> {
        self.validate()?;
        let mut seen = HashSet::new();
        let mut is_new = |pair: &Pair| split == Split::Train || seen.insert(random::hash(pair.source.as_bytes()));
        (0..n_pairs).map(|index| self.nth(split, index, n_pairs, seed, &mut is_new)).collect()
    }

    /// The training pair of a number below `n_pairs`: that which [`Self::generate`] gives there.
    ///
    /// # Errors
    ///
    /// As [`Self::generate`]; the settings are not checked.
    pub fn training_pair(&self, index: usize, n_pairs: usize, seed: u64) -> Result<Pair> {
        self.nth(Split::Train, index, n_pairs, seed, &mut |_| true)
    }

    fn nth(
        &self,
        split: Split,
        index: usize,
        n_pairs: usize,
        seed: u64,
        is_new: &mut impl FnMut(&Pair) -> bool,
    ) -> Result<Pair> {
        let mut rng = random::stream(seed, &format!("task/{}/{split}", self.name()), index as u64);
        let found = (0..MAX_REFUSED)
            .map(|_| self.draw(&mut rng))
            .find(|pair| Split::of_source(&pair.source, HELD_OUT_PER_MILLE) == split && is_new(pair));
        found.ok_or_else(|| self.too_small(split, n_pairs, index))
    }

    fn draw(&self, rng: &mut random::Rng) -> Pair {
        match self {
            Self::Copy(c) => copy::draw(c, rng),
            Self::Reverse(c) => reverse::draw(c, rng),
            Self::Sort(c) => sort::draw(c, rng),
            Self::Recall(c) => recall::draw(c, rng),
            Self::SelectiveCopy(c) => selective_copy::draw(c, rng),
            Self::Parity(c) => parity::draw(c, rng),
            Self::Arithmetic(c) => arithmetic::draw(c, rng),
            Self::Depth(c) => depth::draw(c, rng),
            Self::Rises(c) => rises::draw(c, rng),
            Self::NextValue(c) => next_value::draw(c, rng),
            Self::Dates(c) => dates::draw(c, rng),
            Self::Numbers(c) => numbers::draw(c, rng),
        }
    }

    fn too_small(&self, split: Split, wanted: usize, found: usize) -> Error {
        let what = if split == Split::Train { "" } else { "distinct " };
        Error::config(
            "data.task",
            format!(
                "`{}` is too small: found {found} {what}sources for {split}, {wanted} are asked for; \
                 ask for fewer pairs (data.n_{split}), or allow longer sources or more symbols",
                self.name()
            ),
        )
    }
}

/// Refuses lengths that are not 1 <= `min_len` <= `max_len` <= `limit`; `unit` says what they count.
fn validate_lengths(min_len: usize, max_len: usize, limit: usize, unit: &str) -> Result<()> {
    if min_len == 0 {
        return Err(Error::config("data.task.min_len", format!("must be at least 1 ({unit}), got 0")));
    }
    if max_len < min_len {
        let message = format!("must be at least min_len = {min_len} ({unit}), got {max_len}");
        return Err(Error::config("data.task.max_len", message));
    }
    if max_len > limit {
        return Err(Error::config("data.task.max_len", format!("must be at most {limit} ({unit}), got {max_len}")));
    }
    Ok(())
}
