//! The file of a suite.

use crate::error::{Error, Result};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// Suites that are part of the program: names and files.
pub const BUILT_IN: [(&str, &str); 2] = [
    ("small", include_str!("../../../config/suites/small.toml")),
    ("long", include_str!("../../../config/suites/long.toml")),
];

/// A suite: families of models by tasks.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SuiteConfig {
    /// Its name; that of its file.
    #[serde(skip)]
    pub name: String,
    /// The file as it was read.
    #[serde(skip)]
    pub text: String,
    /// The folder that paths in it are relative to.
    #[serde(skip)]
    folder: PathBuf,
    /// What it is about, in a sentence.
    pub about: String,
    /// Seeds of every model.
    #[serde(default = "one")]
    pub seeds: usize,
    /// Trials of the search for a learning rate and dropout; 0 is no search.
    #[serde(default)]
    pub tune: usize,
    /// Whether every model of a task has as many parameters as the first.
    #[serde(default)]
    pub match_parameters: bool,
    /// What all configs have in common.
    #[serde(default)]
    pub config: Table,
    /// The tasks.
    pub task: Vec<SuiteTaskConfig>,
    /// The families.
    pub family: Vec<FamilyConfig>,
}

/// A task of a suite.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SuiteTaskConfig {
    /// Its name, and that of its folder.
    pub name: String,
    /// What is to be done, in words.
    pub about: String,
    /// Lengths at which generated tasks are tested besides.
    pub lengths: Option<Vec<usize>>,
    /// Sentences of each of these lengths.
    pub per_length: Option<usize>,
    /// The longest sentence whose time and memory are measured; none of them without it.
    pub costs: Option<usize>,
    /// The families that take part; all without it.
    pub families: Option<Vec<String>>,
    /// What the configs of this task have in common.
    pub config: Table,
}

/// A family of models.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FamilyConfig {
    /// Its name.
    pub name: String,
    /// Its `[model]`.
    pub model: Table,
    /// What it needs of `[training]` besides.
    #[serde(default)]
    pub training: Table,
}

fn one() -> usize {
    1
}

impl SuiteConfig {
    /// The suite that is called so, or that lies in that file.
    ///
    /// # Errors
    /// If there is none, or it cannot be used; names the file, the line and what is allowed.
    pub fn load(name: &str) -> Result<Self> {
        if let Some((name, text)) = BUILT_IN.iter().find(|(own, _)| *own == name) {
            return Self::parse(Path::new(&format!("{name}.toml")), text);
        }
        let path = Path::new(name);
        if !path.exists() {
            let known = BUILT_IN.map(|(name, _)| name).join(", ");
            return Err(Error::message(format!("--suite {name}: there is no such suite ({known}), and no such file")));
        }
        Self::read(path)
    }

    /// The suite of a file.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub(super) fn read(path: &Path) -> Result<Self> {
        Self::parse(path, &std::fs::read_to_string(path).map_err(Error::io(path))?)
    }

    fn parse(path: &Path, text: &str) -> Result<Self> {
        let mut suite: Self = toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(1, |span| 1 + text[..span.start.min(text.len())].matches('\n').count());
            Error::line(path, line, error.message())
        })?;
        suite.name = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
        suite.text = text.to_string();
        suite.folder = path.parent().unwrap_or(Path::new("")).to_path_buf();
        suite.check().map_err(|message| Error::file(path, message))?;
        Ok(suite)
    }

    fn check(&self) -> std::result::Result<(), String> {
        let tasks: Vec<&str> = self.task.iter().map(|task| task.name.as_str()).collect();
        let families: Vec<&str> = self.family.iter().map(|family| family.name.as_str()).collect();
        for (what, names) in [("task", &tasks), ("family", &families)] {
            if names.is_empty() {
                return Err(format!("has no [[{what}]]"));
            }
            let mut seen = BTreeSet::new();
            for name in names {
                if name.is_empty() || name.starts_with('.') || name.contains(['/', '\\', '\0']) {
                    return Err(format!("the {what} {name:?} has a name that no file can have"));
                }
                if !seen.insert(name) {
                    return Err(format!("the {what} {name:?} is there twice"));
                }
            }
        }
        let reserved = ["report", "locks"];
        if let Some(name) = tasks.iter().find(|name| reserved.contains(name)) {
            return Err(format!("a task cannot be called {name:?}, which is a folder of the suite itself"));
        }
        for task in &self.task {
            let unknown = task.families.iter().flatten().find(|name| !families.contains(&name.as_str()));
            if let Some(name) = unknown {
                return Err(format!("the task {:?} names the family {name:?}, which is not there", task.name));
            }
            if self.of_task(task).next().is_none() {
                return Err(format!("nobody takes part in the task {:?}", task.name));
            }
        }
        if self.seeds == 0 {
            return Err("seeds must be at least 1, got 0".into());
        }
        Ok(())
    }

    /// The names of its tasks.
    pub(super) fn tasks(&self) -> Vec<String> {
        self.task.iter().map(|task| task.name.clone()).collect()
    }

    /// What differs from an earlier suite whose tasks called `made` have results. Comments, what tasks are said to be about, their order, and
    /// tasks without results change nothing of those.
    pub(super) fn differs_from(&self, earlier: &Self, made: &[String]) -> Option<String> {
        let whole = [
            ("seeds", self.seeds == earlier.seeds),
            ("tune", self.tune == earlier.tune),
            ("match_parameters", self.match_parameters == earlier.match_parameters),
            ("[config]", self.config == earlier.config),
            ("[[family]]", self.family == earlier.family),
        ];
        if let Some((name, _)) = whole.into_iter().find(|(_, is_same)| !is_same) {
            return Some(format!("{name} differs"));
        }
        let of = |suite: &Self, name: &str| {
            let task = suite.task.iter().find(|task| task.name == name)?;
            Some(SuiteTaskConfig { about: String::new(), ..task.clone() })
        };
        let changed = made.iter().find(|name| of(self, name) != of(earlier, name))?;
        let how = if of(self, changed).is_some() { "differs" } else { "is gone" };
        Some(format!("the task {changed} {how}"))
    }

    /// The tasks that are called so, in the order of the suite; all of them if none is named.
    ///
    /// # Errors
    /// If the suite has no such task.
    pub fn chosen(&self, names: &[String]) -> Result<Vec<&SuiteTaskConfig>> {
        if let Some(name) = names.iter().find(|name| self.task.iter().all(|task| task.name != **name)) {
            let known: Vec<&str> = self.task.iter().map(|task| task.name.as_str()).collect();
            let (suite, known) = (&self.name, known.join(", "));
            return Err(Error::message(format!("--task {name}: the suite {suite} has no such task ({known})")));
        }
        Ok(self.task.iter().filter(|task| names.is_empty() || names.contains(&task.name)).collect())
    }

    /// The place of a family among all.
    pub(super) fn row(&self, family: &str) -> Option<usize> {
        self.family.iter().position(|own| own.name == family)
    }

    /// Refuses names of families that the suite does not have.
    ///
    /// # Errors
    /// Then.
    pub(super) fn check_families(&self, names: &[String]) -> Result<()> {
        match names.iter().find(|name| self.family.iter().all(|family| family.name != **name)) {
            Some(name) => {
                let known: Vec<&str> = self.family.iter().map(|family| family.name.as_str()).collect();
                let (suite, known) = (&self.name, known.join("; "));
                Err(Error::message(format!("--family {name:?}: the suite {suite} has no such family ({known})")))
            }
            None => Ok(()),
        }
    }

    /// The families that take part in a task.
    pub fn of_task<'a>(&'a self, task: &'a SuiteTaskConfig) -> impl Iterator<Item = &'a FamilyConfig> {
        let takes_part = |name: &str| task.families.as_ref().is_none_or(|names| names.iter().any(|own| own == name));
        self.family.iter().filter(move |family| takes_part(&family.name))
    }

    /// The config of a cell: what all have in common, then the task, then the family.
    ///
    /// # Errors
    /// If the working directory is not known.
    pub fn text_of(&self, task: &SuiteTaskConfig, family: &FamilyConfig) -> Result<String> {
        let mut table = self.config.clone();
        merge(&mut table, &task.config);
        let own = [("model", &family.model), ("training", &family.training)];
        merge(&mut table, &own.map(|(key, own)| (key.to_string(), Value::Table(own.clone()))).into_iter().collect());
        if let Some(dir) = table.get_mut("data").and_then(|data| data.get_mut("dir")) {
            // The config is written to another folder.
            let path = self.folder.join(dir.as_str().unwrap_or_default());
            *dir = std::path::absolute(&path).map_err(Error::io(&path))?.display().to_string().into();
        }
        let text = toml::to_string(&table).expect("a table that was read can be written");
        Ok(format!(
            "# The task {:?} for the family {:?} of the suite {:?}.\n\n{text}",
            task.name, family.name, self.name
        ))
    }
}

/// Puts the keys of `over` into `table`, tables into tables; one that has a `kind` takes the place of another that has one.
fn merge(table: &mut Table, over: &Table) {
    for (key, value) in over {
        match (table.get_mut(key), value) {
            (Some(Value::Table(own)), Value::Table(over))
                if !(own.contains_key("kind") && over.contains_key("kind")) =>
            {
                merge(own, over)
            }
            _ => drop(table.insert(key.clone(), value.clone())),
        }
    }
}
