//! `[data]`.

use super::{LengthFilter, Pair, Split, SplitFiles, TaskConfig, TextConfig};
use crate::error::{Error, Result};
use crate::files;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// `[data]`: a generated task, or the files of a corpus.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DataConfig {
    /// A generated task; without it, `train`, `valid` and `test` name files. With it, `valid` and `test` still may.
    pub task: Option<TaskConfig>,
    /// Training pairs to generate.
    pub n_train: usize,
    /// Validation pairs to generate.
    pub n_valid: usize,
    /// Test pairs to generate.
    pub n_test: usize,
    /// Plain text for a language model, instead of pairs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<TextConfig>,
    /// Folder that the paths of the split files are relative to; it is relative to the folder of the config file itself. Without it,
    /// so are the files. (Those of --set, and of a run folder that is named by --run, are relative to the
    /// working directory.)
    pub dir: Option<PathBuf>,
    /// Folder that `lookback data prepare` wrote of these training data: training reads what it needs of it, and holds no text and
    /// no ids in memory. It is relative to the folder of the config file, whatever `dir` is. Without it, training reads the data
    /// themselves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prepared: Option<PathBuf>,
    /// Training files.
    pub train: Option<SplitFiles>,
    /// Validation files.
    pub valid: Option<SplitFiles>,
    /// Test files.
    pub test: Option<SplitFiles>,
    /// Whether validation and test pairs with the same source are one sentence with several references, any of which is
    /// right, as with words that have more than one pronunciation. Training learns from each pair as it stands.
    pub several_references: bool,
    /// Thousandths of the training pairs that are held out for validation, and as many for test, where no files are named for
    /// them; which pairs depends on the source text alone.
    pub hold_out_per_mille: Option<u64>,
    /// Another number holds out other pairs. Files that `data generate` or `data fetch` wrote need one: with 0, what would be held out is
    /// what they have put into their own validation and test files.
    #[serde(skip_serializing_if = "is_zero")]
    pub hold_out_seed: u64,
    /// Which training pairs are left out.
    pub filter: LengthFilter,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl Default for DataConfig {
    fn default() -> Self {
        Self {
            task: None,
            n_train: 50_000,
            n_valid: 500,
            n_test: 1000,
            text: None,
            dir: None,
            prepared: None,
            train: None,
            valid: None,
            test: None,
            several_references: false,
            hold_out_per_mille: None,
            hold_out_seed: 0,
            filter: LengthFilter::default(),
        }
    }
}

impl DataConfig {
    /// The files of `files`, under [`DataConfig::dir`].
    pub fn resolve(&self, files: &SplitFiles) -> SplitFiles {
        let under = |path: &Option<PathBuf>| path.as_ref().map(|path| self.dir.iter().collect::<PathBuf>().join(path));
        SplitFiles {
            source: under(&files.source),
            target: under(&files.target),
            tsv: under(&files.tsv),
            more_targets: files.more_targets.iter().filter_map(|path| under(&Some(path.clone()))).collect(),
            ..files.clone()
        }
    }

    /// The splits that are taken out of the training files, because no files are named for them.
    pub fn held_out(&self) -> Vec<Split> {
        let is_named = |split: &Split| match &self.text {
            Some(text) => !text.files(*split).is_empty(),
            None if *split == Split::Valid => self.valid.is_some(),
            None => self.test.is_some(),
        };
        let held_out = [Split::Valid, Split::Test].into_iter().filter(|split| !is_named(split));
        held_out.filter(|_| self.hold_out_per_mille.is_some()).collect()
    }

    /// Whether there are test data: generated, in files of their own, or held out.
    pub fn has_test(&self) -> bool {
        let has_files = match &self.text {
            Some(text) => !text.files(Split::Test).is_empty(),
            None => self.test.is_some(),
        };
        has_files || self.task.is_some() || self.held_out().contains(&Split::Test)
    }

    /// The split that a pair of the training files belongs to.
    pub fn split_of(&self, pair: &Pair) -> Split {
        let Some(per_mille) = self.hold_out_per_mille else { return Split::Train };
        let split = Split::held_out(&pair.source, per_mille, self.hold_out_seed);
        // What nothing is held out for stays in training.
        if self.held_out().contains(&split) { split } else { Split::Train }
    }

    /// Whether one of these files is `path`.
    pub fn names(&self, path: &Path) -> bool {
        if let Some(text) = &self.text {
            let under = |file: &PathBuf| self.dir.iter().collect::<PathBuf>().join(file);
            return Split::ALL
                .iter()
                .flat_map(|split| text.files(*split))
                .any(|file| files::are_same(&under(file), path));
        }
        let splits = [&self.train, &self.valid, &self.test].into_iter().flatten().map(|files| self.resolve(files));
        splits.into_iter().any(|files| {
            let SplitFiles { source, target, tsv, more_targets, .. } = &files;
            [source, target, tsv].into_iter().flatten().chain(more_targets).any(|file| files::are_same(file, path))
        })
    }

    /// Checks plain text, beside which nothing that makes or names pairs has a place.
    fn validate_text(&self, text: &TextConfig) -> Result<()> {
        let others = [
            ("task", self.task.is_some()),
            ("train", self.train.is_some()),
            ("valid", self.valid.is_some()),
            ("test", self.test.is_some()),
            ("several_references", self.several_references),
            ("hold_out_seed", self.hold_out_seed != 0),
            ("filter", self.filter != LengthFilter::default()),
        ];
        if let Some((key, _)) = others.into_iter().find(|(_, is_set)| *is_set) {
            let message = "is for pairs of source and target, and data.text is plain text; leave one of the two out";
            return Err(Error::config(format!("data.{key}"), message));
        }
        text.validate(self.hold_out_per_mille)
    }

    /// Refuses data that name nothing to learn from.
    pub(crate) fn check_learnable(&self) -> Result<()> {
        if self.text.is_none() && self.task.is_none() && self.train.is_none() {
            let message =
                "has nothing to learn: give data.task.kind, data.train with its files, or data.text for plain text";
            return Err(Error::config("data", message));
        }
        Ok(())
    }

    pub(crate) fn validate(&self) -> Result<()> {
        if let Some(text) = &self.text {
            return self.validate_text(text);
        }
        for (key, files) in [("train", &self.train), ("valid", &self.valid), ("test", &self.test)] {
            if let Some(files) = files {
                files.validate(&format!("data.{key}"))?;
            }
        }
        if self.train.as_ref().is_some_and(|files| !files.more_targets.is_empty()) {
            let message = "is for validation and test data; give training data one pair for each target";
            return Err(Error::config("data.train.more_targets", message));
        }
        match (&self.task, &self.train) {
            (Some(_), Some(_)) => Err(Error::config(
                "data",
                "has both a task and training files; leave one of data.task and data.train out",
            )),
            // A model that was trained elsewhere.
            (None, None) => Ok(()),
            (Some(task), None) => {
                for (key, n) in [("n_train", self.n_train), ("n_valid", self.n_valid), ("n_test", self.n_test)] {
                    if n == 0 {
                        return Err(Error::config(format!("data.{key}"), "must be at least 1, got 0"));
                    }
                }
                for (key, is_set) in [
                    ("hold_out_per_mille", self.hold_out_per_mille.is_some()),
                    ("hold_out_seed", self.hold_out_seed != 0),
                    ("filter", self.filter != LengthFilter::default()),
                ] {
                    if is_set {
                        let message = "is for training files; a task's lengths and splits are its own";
                        return Err(Error::config(format!("data.{key}"), message));
                    }
                }
                task.validate()
            }
            (None, Some(_)) => match self.hold_out_per_mille {
                None if self.hold_out_seed != 0 => Err(Error::config(
                    "data.hold_out_seed",
                    "chooses what data.hold_out_per_mille holds out, which is not set",
                )),
                None if self.valid.is_none() => Err(Error::config(
                    "data.valid",
                    "is missing: name its files, or set data.hold_out_per_mille to hold out training pairs",
                )),
                Some(n) if n == 0 || n > 400 => {
                    Err(Error::config("data.hold_out_per_mille", format!("must be between 1 and 400, got {n}")))
                }
                Some(_) if self.valid.is_some() && self.test.is_some() => Err(Error::config(
                    "data.hold_out_per_mille",
                    "has nothing to hold out for: files are named for both data.valid and data.test; leave it out",
                )),
                _ => self.filter.validate("data.filter"),
            },
        }
    }
}
