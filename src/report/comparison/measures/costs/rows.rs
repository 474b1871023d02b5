//! Time and memory of one length, how they grow, and where they cross.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
