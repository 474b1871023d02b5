//! The rows that measurements are written into.

use crate::scoring::Verdict;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The scores of a contestant in a group of test sentences.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Quality {
    /// Whose.
    pub contestant: String,
    /// Of which sentences.
    pub group: String,
    /// One for each metric of the comparison.
    pub scores: Vec<Score>,
}

/// A score, how far it depends on the choice of test sentences, and how far on the seed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Score {
    /// `bleu` and `chrf` go from 0 to 100; accuracies and error rates are fractions of 1.
    pub metric: String,
    /// The mean over the seeds.
    pub score: f64,
    /// The lower end of the 95 % interval over sentences and seeds.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// The score of each seed.
    pub by_seed: Vec<f64>,
    /// The standard deviation over the seeds (n - 1); none for a single seed.
    pub seed_deviation: Option<f64>,
}

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

/// How often a token is right, by the place in the source of what it needs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PositionAccuracy {
    /// Whose.
    pub contestant: String,
    /// On which sentences.
    pub group: String,
    /// What the position is that of: `source` where the task says which source token is needed, else `target`.
    pub of: String,
    /// The tenth of the sentence, from 1.
    pub tenth: usize,
    /// Tokens, over all seeds.
    pub tokens: usize,
    /// The part of them that had the highest probability when all tokens before them were given.
    pub accuracy: f64,
}

/// What goes wrong in a group of sentences; means over the seeds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Faults {
    /// Whose.
    pub contestant: String,
    /// In which sentences.
    pub group: String,
    /// Written words for each word of the references.
    pub length_ratio: f64,
    /// The part of the written 4-grams that occurred before in the same sentence.
    pub repetition: f64,
    /// The same in the references.
    pub reference_repetition: f64,
    /// The part of sentences that the model ended with less than 90 % of the reference's words.
    pub early_stop: f64,
    /// The part of sentences that the model did not end, so that they were cut.
    pub cut: f64,
    /// The part of source words that got a total weight below 0.1 from the words written, the mean of all heads; none where there
    /// is no attention.
    pub omission: Option<f64>,
}

/// What is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CostKind {
    /// A training update on one pair.
    #[default]
    Update,
    /// Writing one sentence greedily.
    Decode,
}

impl CostKind {
    /// The name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Update => "update",
            Self::Decode => "decode",
        }
    }
}

/// What a sentence of one length costs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// Whose.
    pub contestant: String,
    /// Of what.
    pub kind: CostKind,
    /// Tokens of the source, and of the target.
    pub length: usize,
    /// Seconds; none if it was not finished. Each visit has the least of a few repetitions, and this is the geometric mean of the
    /// visits.
    pub seconds: Option<f64>,
    /// The 95 % interval of the seconds; none after a single visit.
    #[serde(default)]
    pub interval: Option<[f64; 2]>,
    /// How often it was measured, in turns with the other models.
    #[serde(default)]
    pub visits: usize,
    /// The most memory that the process had in use.
    pub peak_bytes: Option<u64>,
    /// What the process had in use before.
    pub base_bytes: Option<u64>,
    /// Steps that have to wait for each other, closed form.
    pub sequential_steps: u64,
    /// What decoding carries from step to step at this length, memory of the source included; closed form.
    pub state_bytes: u64,
    /// Processes that ran or waited to run on the machine, on average over the minute before; none where the system does not tell.
    #[serde(default)]
    pub load: Option<f64>,
    /// Why there are no seconds.
    pub unfinished: Option<String>,
    /// The contestant that was measured, where this one has the same architecture.
    #[serde(default)]
    pub same_as: Option<String>,
}

/// How a cost grows: the slope of its logarithm over that of the length, on the longer half of the lengths.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Growth {
    /// Whose.
    pub contestant: String,
    /// Of what.
    pub kind: CostKind,
    /// `seconds` or `memory`.
    pub of: String,
    /// Least squares; 1 is linear, 2 quadratic.
    pub exponent: f64,
    /// The 95 % interval that those of the times leave; none of memory.
    #[serde(default)]
    pub interval: Option<[f64; 2]>,
    /// The lengths that it was fitted to.
    pub lengths: Vec<usize>,
    /// What theory says for long sentences.
    pub theory: f64,
}

/// The length from which one model costs more than another.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Crossing {
    /// Cheaper below, dearer above.
    pub dearer: String,
    /// The other.
    pub cheaper: String,
    /// Of what.
    pub kind: CostKind,
    /// `seconds` or `memory`.
    pub of: String,
    /// Tokens, between two measured lengths by a straight line between logarithms.
    pub length: f64,
    /// Where it may be, as far as the intervals of the costs go.
    #[serde(default)]
    pub interval: Option<[f64; 2]>,
}

/// One run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Curve {
    /// Whose.
    pub contestant: String,
    /// With which seed.
    pub seed: u64,
    /// Means of groups of updates.
    pub train: Vec<CurvePoint>,
    /// Validations.
    pub valid: Vec<CurvePoint>,
}

/// A point of a learning curve.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CurvePoint {
    /// The update.
    pub update: u64,
    /// Seconds of training by then.
    pub seconds: f64,
    /// Cross-entropy in nats per target token.
    pub loss: f64,
    /// The score of the validation sample, in percent; none in training.
    pub score: Option<f64>,
}

/// One source and what every model made of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AlignedSentence {
    /// What it is, such as `of middle length`.
    pub what: String,
    /// The source.
    pub source: String,
    /// The reference.
    pub reference: String,
    /// Other references, as right as it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_references: Vec<String>,
    /// One for each contestant that has attention.
    pub maps: Vec<Map>,
}

/// The mean of a model's cross-attention while it wrote its own answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Map {
    /// Whose.
    pub contestant: String,
    /// What it wrote, as text: how tokens make words is the tokenizer's business.
    pub text: String,
    /// Source tokens, the end symbol last.
    pub columns: Vec<String>,
    /// Written tokens.
    pub rows: Vec<String>,
    /// Row-major, rounded to three decimals.
    pub weights: Vec<f32>,
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
