//! What a suite found out.

use crate::report::comparison::{Claim, Group};
use crate::scoring::LengthUnit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The version of the layout of a suite's `results.json`.
pub const FORMAT: u32 = 2;

/// Everything that a suite found out: its `results.json`.
///
/// Cells refer to tasks and families by name, and to groups of test sentences by the `id` that the task's comparison gives them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Suite {
    /// [`FORMAT`].
    pub format: u32,
    /// The version of the program.
    pub version: String,
    /// The command line.
    pub command: String,
    /// What `--set` changed in every config.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<String>,
    /// The beam size of all models, if the command gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beam: Option<usize>,
    /// Operating system and processor.
    pub platform: String,
    /// The backend.
    pub backend: String,
    /// Its device.
    pub device: String,
    /// The name of the suite.
    pub name: String,
    /// What it is about, in a sentence.
    pub about: String,
    /// Who takes part.
    pub families: Vec<Family>,
    /// What is to be learnt.
    pub tasks: Vec<SuiteTask>,
    /// One for each task and family that takes part in it.
    pub cells: Vec<Cell>,
}

/// A family of models.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Family {
    /// Its name.
    pub name: String,
    /// What its models are, in words.
    pub model: String,
}

/// A task of a suite.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SuiteTask {
    /// Its name, which is also that of the folder of its comparison.
    pub name: String,
    /// What is to be done, in words.
    pub about: String,
    /// The score that its cells have, as `results.json` of a comparison names it.
    pub metric: String,
    /// What lengths of sources are counted in.
    pub length_unit: LengthUnit,
    /// The longest source in training.
    pub trained_length: usize,
    /// Training pairs.
    pub train_pairs: usize,
    /// The test sentences that cells are scored on: the test set, and the longest single length.
    pub groups: Vec<Group>,
    /// Of all test sentences, those of other lengths too.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub test_sha256: String,
}

/// What a family does in a task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cell {
    /// The task.
    pub task: String,
    /// The family.
    pub family: String,
    /// Parameters.
    pub parameters: usize,
    /// The highest learning rate.
    pub learning_rate: f64,
    /// The dropout that went with it; unknown in suites that were made before it was noted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropout_rate: Option<f64>,
    /// The seeds it was trained with.
    pub seeds: Vec<u64>,
    /// Seconds of training, the mean over the seeds.
    pub train_seconds: f64,
    /// What writing carries from step to step, with source and target as long as the longest sources of the test; closed form.
    pub state_bytes: u64,
    /// The longest length at which 90 % of its answers are claimed to be right, as the task's comparison has it; none where there is no
    /// such level, or no such length.
    pub longest_good: Option<usize>,
    /// One for each of the task's groups.
    pub scores: Vec<CellScore>,
    /// For each seed which test sentences it answered right, where the score counts those: a hexadecimal digit for every four, the first of
    /// them its highest bit. Families that are made later are compared by it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub right: Vec<String>,
}

/// A score of a cell, and what is claimed of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CellScore {
    /// On which sentences.
    pub group: String,
    /// The mean over the seeds; accuracies and error rates are fractions of 1.
    pub score: f64,
    /// The lower end of its 95 % interval over sentences and seeds.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// Beside the best of the task on these sentences.
    pub standing: Standing,
    /// The claim about it and the best, which the standing follows from; none for the best itself.
    pub claim: Option<Claim>,
}

/// How a cell stands beside the best of its task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// No other has a better score.
    Best,
    /// Equivalent to the best: the difference lies within the margin.
    Equivalent,
    /// Neither equal to the best nor different from it, as far as the evidence goes.
    #[default]
    Undecided,
    /// Worse than the best.
    Behind,
    /// No family has a right answer there, so there is no best.
    Unsolved,
}

impl Suite {
    /// What a family does in a task, if it takes part.
    pub fn cell(&self, task: &str, family: &str) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.task == task && cell.family == family)
    }

    /// The fewest seeds of any cell.
    pub fn n_seeds(&self) -> usize {
        self.cells.iter().map(|cell| cell.seeds.len()).min().unwrap_or(0)
    }

    /// What intervals and tests are over, in words.
    pub fn samples(&self) -> &'static str {
        if self.n_seeds() > 1 { "over sentences and seeds" } else { "over sentences" }
    }
}

impl Cell {
    /// Its score in a group.
    pub fn score(&self, group: &str) -> Option<&CellScore> {
        self.scores.iter().find(|score| score.group == group)
    }
}

impl SuiteTask {
    /// What a column of the matrix is called: `copy`, or `copy, 40 words`.
    pub fn column(&self, group: &Group) -> String {
        match group.id == "all" {
            true => format!("{} to {}", self.name, self.trained_length),
            false => format!("{} at {}", self.name, group.label()),
        }
    }
}
