//! Which pairs are worth training on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::data::Pair;
use crate::error::{Error, Result};

/// Which pairs are kept for training. Lengths are counted in words between spaces, on either side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LengthFilter {
    /// Fewest words on each side.
    pub min_len: usize,
    /// Most words on each side; without it, any number.
    pub max_len: Option<usize>,
    /// How many times longer one side may be than the other, at least 1; without it, any ratio.
    pub max_ratio: Option<f64>,
}

impl Default for LengthFilter {
    fn default() -> Self {
        Self { min_len: 1, max_len: None, max_ratio: None }
    }
}

/// How many pairs a [`LengthFilter`] dropped, each counted under the first reason that applies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dropped {
    /// Source or target was blank.
    pub blank: usize,
    /// Source or target was below `min_len`.
    pub too_short: usize,
    /// Source or target was above `max_len`.
    pub too_long: usize,
    /// The sides' lengths differed by more than `max_ratio`.
    pub ratio: usize,
}

impl Dropped {
    /// All dropped pairs.
    pub fn total(&self) -> usize {
        self.blank + self.too_short + self.too_long + self.ratio
    }
}

impl std::fmt::Display for Dropped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { blank, too_short, too_long, ratio } = self;
        write!(f, "{blank} blank, {too_short} too short, {too_long} too long, {ratio} of unequal length")
    }
}

impl LengthFilter {
    /// Checks every field; `key` is the section for messages, such as `data.filter`.
    ///
    /// # Errors
    ///
    /// Names the field, its value and the rule.
    pub fn validate(&self, key: &str) -> Result<()> {
        if let Some(max) = self.max_len.filter(|&max| max < self.min_len.max(1)) {
            let message = format!("must be at least 1 and min_len = {}, got {max}", self.min_len);
            return Err(Error::config(format!("{key}.max_len"), message));
        }
        match self.max_ratio {
            Some(ratio) if !(ratio >= 1.0 && ratio.is_finite()) => {
                Err(Error::config(format!("{key}.max_ratio"), format!("must be at least 1 and finite, got {ratio}")))
            }
            _ => Ok(()),
        }
    }

    /// Keeps the pairs to train on, in order, and counts the others. Blank pairs always go.
    ///
    /// # Errors
    ///
    /// When nothing is left; the message says why.
    pub fn apply(&self, pairs: Vec<Pair>) -> Result<(Vec<Pair>, Dropped)> {
        let mut dropped = Dropped::default();
        let mut kept = pairs;
        kept.retain(|pair| self.keeps(pair, &mut dropped));
        if kept.is_empty() {
            return Err(nothing_left(&dropped));
        }
        Ok((kept, dropped))
    }

    /// Whether a pair is kept; `dropped` counts those that are not.
    pub fn keeps(&self, pair: &Pair, dropped: &mut Dropped) -> bool {
        let reason = self.reason(pair, dropped);
        let is_kept = reason.is_none();
        reason.into_iter().for_each(|count| *count += 1);
        is_kept
    }

    /// The counter of the reason to drop a pair, if there is one.
    fn reason<'a>(&self, pair: &Pair, dropped: &'a mut Dropped) -> Option<&'a mut usize> {
        let lengths = [&pair.source, &pair.target].map(|text| text.split_whitespace().count());
        let (short, long) = (lengths[0].min(lengths[1]), lengths[0].max(lengths[1]));
        if short == 0 {
            Some(&mut dropped.blank)
        } else if short < self.min_len {
            Some(&mut dropped.too_short)
        } else if self.max_len.is_some_and(|max| long > max) {
            Some(&mut dropped.too_long)
        } else if self.max_ratio.is_some_and(|max| long as f64 > max * short as f64) {
            Some(&mut dropped.ratio)
        } else {
            None
        }
    }
}

/// The error where no pair is left.
pub(crate) fn nothing_left(dropped: &Dropped) -> Error {
    match dropped.total() {
        0 => Error::config(
            "data.train",
            "has no pairs: its files are empty, or data.hold_out_per_mille takes all of them. Pairs of one source are held out together, \
             so that there have to be more different sources",
        ),
        _ => Error::message(format!("no training pairs are left after filtering: {dropped}")),
    }
}
