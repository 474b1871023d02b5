//! Bracket depth: after each bracket, how many are open?
//!
//! What it takes is a counter. A recurrent network can keep one in its state (Weiss, Goldberg and Yahav 2018); attention has to
//! compare how much it sees of both brackets (Bhattamishra, Ahuja and Goyal 2020, section 5).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::validate_lengths;
use crate::data::{Pair, Rng};
use crate::error::{Error, Result};

/// The longest allowed source, in brackets.
const LONGEST: usize = 100_000;

/// Settings of bracket depth.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DepthConfig {
    /// How many brackets may be open at once, at least 1.
    pub max_depth: usize,
    /// Shortest source, in brackets, at least 1. Every length up to `max_len` is equally likely.
    pub min_len: usize,
    /// Longest source, in brackets.
    pub max_len: usize,
}

impl Default for DepthConfig {
    fn default() -> Self {
        Self { max_depth: 8, min_len: 4, max_len: 24 }
    }
}

impl DepthConfig {
    pub(super) fn validate(&self) -> Result<()> {
        if self.max_depth == 0 {
            return Err(Error::config("data.task.max_depth", "must be at least 1, got 0"));
        }
        validate_lengths(self.min_len, self.max_len, LONGEST, "brackets")
    }
}

/// One random pair: no bracket is closed that was not opened; at the end some may be open.
pub(super) fn draw(config: &DepthConfig, rng: &mut Rng) -> Pair {
    let len = rng.between(config.min_len, config.max_len);
    let mut depth = 0;
    let (mut source, mut target) = (Vec::with_capacity(len), Vec::with_capacity(len));
    for _ in 0..len {
        let opens = depth == 0 || depth < config.max_depth && rng.below(2) == 0;
        depth = if opens { depth + 1 } else { depth - 1 };
        source.push(if opens { "(" } else { ")" });
        target.push(depth.to_string());
    }
    Pair::new(source.join(" "), target.join(" "))
}
