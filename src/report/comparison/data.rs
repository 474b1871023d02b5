//! What was compared, and how fairly.

use super::claims::rows::{Claim, Threshold};
use super::measures::alignments::rows::AlignedSentence;
use super::measures::costs::rows::{Cost, Crossing, Growth};
use super::measures::curves::rows::Curve;
use super::measures::faults::rows::Faults;
use super::measures::positions::rows::PositionAccuracy;
use super::measures::quality::rows::{Quality, Score};
use crate::scoring::LengthUnit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The version of the layout of `results.json`.
pub const FORMAT: u32 = 3;

/// Everything that a comparison found out: `results.json`.
///
/// Rows refer to contestants by name and to groups of test sentences by [`Group::id`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// [`FORMAT`].
    pub format: u32,
    /// The version of the program.
    pub version: String,
    /// The command line.
    pub command: String,
    /// Operating system and processor.
    pub platform: String,
    /// The backend.
    pub backend: String,
    /// Its device.
    pub device: String,
    /// What was to be learnt.
    pub task: Task,
    /// How every model wrote its answers.
    pub decoding: String,
    /// How intervals and significance were computed.
    pub resampling: Resampling,
    /// Names of the scores of this task, the most telling first.
    pub metrics: Vec<String>,
    /// The models.
    pub contestants: Vec<Contestant>,
    /// What is the same for all of them.
    pub same: Vec<Fact>,
    /// What is not.
    pub differences: Vec<Difference>,
    /// What a reader should know besides.
    pub notes: Vec<String>,
    /// The search for learning rates and dropout, if there was one.
    pub trials: Vec<Trial>,
    /// The groups of test sentences that are scored.
    pub groups: Vec<Group>,
    /// Scores by group.
    pub quality: Vec<Quality>,
    /// Up to which length each model is claimed to be good.
    pub thresholds: Vec<Threshold>,
    /// Every statement about a difference, or about a score and a level.
    pub claims: Vec<Claim>,
    /// Which source positions are forgotten.
    pub positions: Vec<PositionAccuracy>,
    /// What goes wrong.
    pub faults: Vec<Faults>,
    /// Time and memory by length.
    pub costs: Vec<Cost>,
    /// How time and memory grow.
    pub growth: Vec<Growth>,
    /// Where one model becomes dearer than another.
    pub crossings: Vec<Crossing>,
    /// How the models learnt.
    pub curves: Vec<Curve>,
    /// What the models looked at.
    pub alignments: Vec<AlignedSentence>,
}

/// The task and its test data.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Task {
    /// Its name: of the generated task, or of the test files.
    pub name: String,
    /// Whether the data are generated.
    pub is_generated: bool,
    /// What lengths of sources are counted in: words, or letters where every model reads letter by letter.
    #[serde(default)]
    pub length_unit: LengthUnit,
    /// The longest source in training, of all contestants.
    pub trained_length: usize,
    /// Training pairs; those of the contestant that has most.
    pub train_pairs: usize,
    /// Sentences of the test set proper, whose lengths are those of the task or the files.
    pub test_sentences: usize,
    /// The SHA-256 of all test sentences and references, those of single lengths included.
    pub test_sha256: String,
}

/// How the bootstrap was set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Resampling {
    /// Resamples.
    pub n_samples: usize,
    /// Seed of the resamples.
    pub seed: u64,
    /// The part of repetitions in which an interval holds what it is an interval of.
    pub confidence: f64,
    /// Two models are called different if the corrected two-sided p-value is below this.
    pub level: f64,
}

/// A model that takes part.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Contestant {
    /// The name of its config or run.
    pub name: String,
    /// What it is, in words.
    pub model: String,
    /// `recurrent`, `recurrent with attention` or `transformer`.
    pub family: String,
    /// The seeds it was trained with.
    pub seeds: Vec<u64>,
    /// Its run folders, one for each seed.
    pub runs: Vec<String>,
    /// Parameters.
    pub parameters: usize,
    /// The highest learning rate.
    pub learning_rate: f64,
    /// Dropout.
    pub dropout_rate: f64,
    /// Updates made, by seed.
    pub updates: Vec<u64>,
    /// The update whose parameters were measured, by seed.
    pub best_update: Vec<u64>,
    /// Target tokens learnt from, by seed.
    pub train_tokens: Vec<u64>,
    /// Seconds of training, by seed.
    pub train_seconds: Vec<f64>,
    /// Answers to test sentences that the model did not end, so that they were cut at the length cap, by seed.
    #[serde(default)]
    pub cut_answers: Vec<usize>,
    /// Floating-point operations of training for each target token, at the trained length: closed form.
    pub training_flops_per_token: f64,
    /// The same for writing.
    pub decoding_flops_per_token: f64,
}

/// Something that is the same for all contestants.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fact {
    /// What.
    pub what: String,
    /// What it is.
    pub value: String,
}

/// Something that differs between contestants.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// What.
    pub what: String,
    /// What it is for each contestant, in their order.
    pub values: Vec<String>,
}

/// One trial of the search for a learning rate and dropout.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trial {
    /// Whose.
    pub contestant: String,
    /// The number of the trial, from 1.
    pub trial: usize,
    /// The learning rate that was tried.
    pub learning_rate: f64,
    /// The dropout that was tried.
    pub dropout_rate: f64,
    /// Updates that it made.
    pub updates: u64,
    /// Updates of a whole run; none where minutes are the budget.
    #[serde(default)]
    pub run_updates: Option<u64>,
    /// The least cross-entropy on the validation data, in nats per target token.
    pub valid_loss: f64,
    /// Whether it was taken.
    pub is_chosen: bool,
}

/// What a group of test sentences is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GroupKind {
    /// The whole test set.
    #[default]
    All,
    /// The sentences of the test set with similar source lengths.
    Bucket,
    /// Sentences made for one length.
    Length,
}

/// Test sentences that are scored together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Group {
    /// How rows refer to it: `all`, `11-20`, `length-60`.
    pub id: String,
    /// What it is.
    pub kind: GroupKind,
    /// The shortest source.
    pub from: usize,
    /// The longest source.
    pub to: usize,
    /// The mean length of the sources.
    pub mean_length: f64,
    /// Sentences.
    pub sentences: usize,
    /// Whether sources as long as the longest of these were in the training data of some contestant.
    pub is_seen: bool,
    /// The part of its sentences that guessing gets right: a guess that knows how many words an answer has, and which words answers
    /// are made of. None where the data are not generated, or answers are not made so.
    #[serde(default)]
    pub chance: Option<f64>,
}

impl Comparison {
    /// A score of a contestant in a group.
    pub fn score(&self, contestant: &str, group: &str, metric: &str) -> Option<&Score> {
        let row = self.quality.iter().find(|row| row.contestant == contestant && row.group == group)?;
        row.scores.iter().find(|score| score.metric == metric)
    }

    /// The groups by length, from short to long: the buckets, and single lengths beyond all that come before. Where a task counts its lengths
    /// in something else than words, such a length has sentences of many lengths, and stands at their mean.
    pub fn by_length(&self) -> Vec<&Group> {
        let mut groups: Vec<&Group> = self.groups.iter().filter(|group| group.kind != GroupKind::All).collect();
        groups.sort_by_key(|group| (group.kind == GroupKind::Length, group.from));
        let mut longest = 0.0;
        groups.retain(|group| {
            // Of a length that is exact, mean and end are the same.
            let place = match group.kind {
                GroupKind::Length => group.mean_length.max(group.from as f64),
                _ => group.to as f64,
            };
            let is_beyond = place > longest;
            longest = longest.max(place);
            is_beyond
        });
        groups
    }

    /// The most telling score of the task.
    pub fn headline(&self) -> &str {
        self.metrics.first().map_or("sequence_accuracy", String::as_str)
    }

    /// All test sentences, those of single lengths included.
    pub fn n_sentences(&self) -> usize {
        self.groups.iter().filter(|group| group.kind != GroupKind::Bucket).map(|group| group.sentences).sum()
    }

    /// Whether more than one seed was trained.
    pub fn has_seeds(&self) -> bool {
        self.contestants.iter().any(|contestant| contestant.seeds.len() > 1)
    }
}

impl Group {
    /// What a reader calls it in a table, where buckets and single lengths stand side by side.
    pub fn name(&self) -> String {
        match self.kind {
            _ if self.has_own_length() => format!("{} ({})", self.id.replace('-', " "), self.label()),
            GroupKind::Length => format!("exactly {}", self.label()),
            _ => self.label(),
        }
    }

    /// Whether it is of one length that the task counts in something else than words: `length-5` is a list of five numbers.
    pub fn has_own_length(&self) -> bool {
        self.kind == GroupKind::Length && self.from != self.to
    }

    /// What a reader calls it.
    pub fn label(&self) -> String {
        match self.kind {
            GroupKind::All => "all".into(),
            _ => range([self.from, self.to]),
        }
    }
}

/// Lengths from one to another as a reader sees them.
pub(in crate::report::comparison) fn range([from, to]: [usize; 2]) -> String {
    if from == to { from.to_string() } else { format!("{from}-{to}") }
}
