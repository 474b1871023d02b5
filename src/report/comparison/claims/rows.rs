//! Statements about differences, and about scores and levels.

use crate::scoring::Verdict;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a claim compares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimKind {
    /// Two models on the same sentences: the second minus the first.
    #[default]
    Models,
    /// One model on the shortest and the longest groups of sentences that training has seen: the longest minus the shortest.
    Length,
    /// One model's score beside a level: the score minus the level.
    Level,
    /// One model's tokens in the first and in the last tenth of sentences, each after the right ones before it: the last minus the
    /// first.
    Position,
}

/// A statement about a difference, with all that it rests on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Claim {
    /// What is compared.
    pub kind: ClaimKind,
    /// The two: models, groups of sentences, a level and a model, or tenths of sentences.
    pub operands: [String; 2],
    /// On which sentences; for [`ClaimKind::Length`] and [`ClaimKind::Position`], of which model.
    pub group: String,
    /// By which score.
    pub metric: String,
    /// The second minus the first.
    pub estimate: f64,
    /// The lower end of its 95 % interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// Sentences; the fewer of two groups.
    pub n_sentences: usize,
    /// Seeds of each.
    pub n_seeds: [usize; 2],
    /// Two-sided; none where there are too few sentences.
    pub p_value: Option<f64>,
    /// The same after the correction for all tests of the family.
    pub p_corrected: Option<f64>,
    /// The tests that were corrected together.
    pub family: String,
    /// How it was found.
    pub method: String,
    /// How large a difference may be that does not matter.
    pub margin: f64,
    /// What it comes to.
    pub verdict: Verdict,
    /// Whether the whole interval lies within the margin: a difference may be sure and yet too small to matter.
    #[serde(default)]
    pub is_small: bool,
}

impl Claim {
    /// Whether it is about these runs only: a single seed shows no spread over seeds.
    pub fn is_of_runs(&self) -> bool {
        self.n_seeds.iter().any(|n| *n < 2)
    }
}

/// Up to which length a contestant is claimed to be good: what its claims about a level ([`ClaimKind::Level`]) say together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Threshold {
    /// Whose.
    pub contestant: String,
    /// By which score.
    pub metric: String,
    /// What counts as good.
    pub level: f64,
    /// The longest source of the last group that is claimed to be above the level before the first that is claimed to be below it; none
    /// where there is no such group.
    pub longest_above: Option<usize>,
    /// The shortest source of the first group that is claimed to be below the level; none where there is no such group.
    pub first_below: Option<usize>,
}
