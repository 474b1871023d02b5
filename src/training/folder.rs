//! The folder that training writes into: checkpoints, pointers to them, a log, and a lock.

use super::checkpoint::{self, Checkpoint, Parameters, TrainingState};
use super::pointer;
use crate::error::{Error, Result};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

/// How often a checkpoint is looked for in a run that changes.
const MAX_ATTEMPTS: usize = 100;

/// The name of a mean of checkpoints, of which `last` is the last.
pub(super) fn averaged(last: &str) -> String {
    format!("averaged-{last}")
}

/// A folder that training writes into, or has written.
#[derive(Clone, Debug)]
pub struct RunFolder {
    path: PathBuf,
    is_read_only: bool,
}

impl RunFolder {
    /// The folder `path`, which need not be there.
    pub fn at(path: &Path) -> Self {
        Self { path: path.to_path_buf(), is_read_only: false }
    }

    /// The folder, which another process writes into: nothing is written or removed here.
    #[must_use]
    pub fn read_only(self) -> Self {
        Self { is_read_only: true, ..self }
    }

    /// Whether another process writes there.
    pub(super) fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    /// The folder `path`, made if need be.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn create(path: &Path) -> Result<Self> {
        let checkpoints = path.join("checkpoints");
        fs::create_dir_all(&checkpoints).map_err(Error::io(&checkpoints))?;
        let samples = path.join("samples");
        fs::create_dir_all(&samples).map_err(Error::io(&samples))?;
        Ok(Self::at(path))
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A file or folder of the run.
    pub fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The folder of the checkpoint called `name`.
    pub fn checkpoint(&self, name: &str) -> PathBuf {
        self.path.join("checkpoints").join(name)
    }

    /// Keeps others from training in the same folder until the returned value is dropped.
    ///
    /// # Errors
    /// If another process is training there.
    pub fn lock(&self) -> Result<Lock> {
        Lock::of(&self.path, "is in use by another `lookback train`; wait for it or give another --run")
    }

    /// The checkpoint that a pointer file names: `best` or `last`.
    ///
    /// # Errors
    /// If there is such a file, and it names none.
    pub fn pointer(&self, name: &str) -> Result<Option<String>> {
        pointer::read(&self.join(name), &self.join("checkpoints"))
    }

    /// The name that the file `best` or `last` has for a checkpoint, be it there or not.
    pub(crate) fn named(&self, name: &str) -> Option<String> {
        let text = fs::read_to_string(self.join(name)).ok()?;
        text.lines().next().map(|line| line.trim().to_string())
    }

    /// The newest checkpoint that is whole and was made before update `before`, with its folder; `warn` is told of damaged ones.
    pub fn newest_checkpoint(&self, before: u64, mut warn: impl FnMut(String)) -> Option<(PathBuf, Checkpoint)> {
        let there = checkpoint::list(&self.path.join("checkpoints"));
        for (_, folder) in there.into_iter().rev().filter(|(update, _)| *update < before) {
            match checkpoint::load(&folder) {
                Ok(checkpoint) => return Some((folder, checkpoint)),
                Err(error) => warn(format!("{error}; trying the checkpoint before it")),
            }
        }
        None
    }

    /// Whether this is an exported model and not the folder of a run that can go on.
    pub fn is_exported(&self) -> bool {
        self.join(checkpoint::MODEL).is_file()
    }

    /// The parameters for use, with the name of their checkpoint: those of an exported model, or of the checkpoint `asked`, else
    /// of the best, else of the newest. Nothing of the optimizer is read.
    ///
    /// # Errors
    /// If there are none, or they are damaged: others would give other answers, so that the user has to choose them.
    pub fn parameters(&self, asked: Option<&str>, warn: impl FnOnce(String)) -> Result<(String, Parameters)> {
        if self.is_exported() {
            if let Some(name) = asked {
                return Err(Error::file(&self.path, format!("is an exported model, which has no checkpoint {name}")));
            }
            let parameters = checkpoint::load_parameters(&self.path, warn)?;
            return Ok((checkpoint::name_of(parameters.updates), parameters));
        }
        if let Some(name) = asked.filter(|name| !self.checkpoints().iter().any(|known| known == name)) {
            return Err(Error::file(&self.path, format!("has no checkpoint {name}; {}", self.what_there_is())));
        }
        let attempt = || {
            let name = asked.map_or_else(|| self.checkpoint_for_use(), |name| Ok(name.to_string()))?;
            let mut warning = None;
            let parameters = checkpoint::load_parameters(&self.checkpoint(&name), |text| warning = Some(text))?;
            Ok((name, parameters, warning))
        };
        // During training, the best checkpoint may have been replaced and removed in the meantime.
        let marks = || ["best", "last"].map(|name| fs::read(self.join(name)).ok());
        for _ in 0..MAX_ATTEMPTS {
            let before = marks();
            match attempt() {
                Ok((name, parameters, warning)) => {
                    if let Some(warning) = warning {
                        warn(warning);
                    }
                    return Ok((name, parameters));
                }
                Err(error) if marks() == before => return Err(self.with_choice(error, asked)),
                Err(_) => {}
            }
        }
        Err(Error::file(&self.path, "changes all the time; wait until training there is over"))
    }

    /// The best checkpoint, or the newest where none is marked.
    fn checkpoint_for_use(&self) -> Result<String> {
        if let Some(best) = self.pointer("best")? {
            return Ok(best);
        }
        let Some((update, folder)) = checkpoint::list(&self.join("checkpoints")).pop() else {
            let message = "has no checkpoint, and no model.safetensors of an exported model; train it first";
            return Err(Error::file(&self.path, message));
        };
        match checkpoint::state(&folder)?.best_checkpoint {
            None => Ok(checkpoint::name_of(update)),
            Some(best) => {
                Err(Error::file(self.join("best"), format!("is not there, but {best} was the best checkpoint")))
            }
        }
    }

    /// The names of all checkpoints that are there, averaged ones after the others.
    fn checkpoints(&self) -> Vec<String> {
        let entries = fs::read_dir(self.join("checkpoints")).into_iter().flatten().flatten();
        let names =
            entries.filter(|entry| entry.path().is_dir()).filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<String> = names.filter(|name| !name.contains('.')).collect();
        names.sort();
        names
    }

    fn what_there_is(&self) -> String {
        match self.checkpoints()[..] {
            [] => "there are none".into(),
            ref names => format!("there are {}", names.join(", ")),
        }
    }

    /// The fault of a checkpoint with what may be taken in its place.
    fn with_choice(&self, error: Error, asked: Option<&str>) -> Error {
        let tried = asked.map(String::from).or_else(|| self.checkpoint_for_use().ok());
        let others: Vec<String> = self.checkpoints().into_iter().filter(|name| Some(name) != tried.as_ref()).collect();
        match &others[..] {
            [] => error,
            names => Error::message(format!(
                "{error}; --checkpoint NAME takes the one that you name: there are {}",
                names.join(", ")
            )),
        }
    }

    /// Forgets a best checkpoint that is not there: one that only an older checkpoint knew as the best may have been removed.
    pub(super) fn forget_lost_best(&self, state: &mut TrainingState) {
        if state.best_checkpoint.as_ref().is_some_and(|best| !self.checkpoint(best).is_dir()) {
            (state.best, state.best_loss, state.best_checkpoint) = (None, None, None);
        }
    }

    /// Lets `last` and `best` name what `state` says, unless `best` names what training found when it had ended there: its last
    /// parameters, or a mean. That stays the best until training goes on.
    pub(super) fn mend_pointers(&self, state: &TrainingState) -> Result<()> {
        let last = checkpoint::name_of(state.update);
        match self.pointer("best") {
            Ok(Some(best)) if [last.clone(), averaged(&last)].contains(&best) && !self.is_read_only => {
                pointer::write(&self.join("last"), &self.checkpoint(&last))
            }
            _ => self.write_pointers(state),
        }
    }

    /// Lets `last` and `best` name what `state` says.
    pub(super) fn write_pointers(&self, state: &TrainingState) -> Result<()> {
        if self.is_read_only {
            return Ok(());
        }
        pointer::write(&self.join("last"), &self.checkpoint(&checkpoint::name_of(state.update)))?;
        let best = self.join("best");
        match &state.best_checkpoint {
            Some(name) => pointer::write(&best, &self.checkpoint(name)),
            None if best.exists() => fs::remove_file(&best).map_err(Error::io(&best)),
            None => Ok(()),
        }
    }

    /// Adds a line to `log.txt`.
    pub(crate) fn log(&self, line: &str) -> Result<()> {
        if self.is_read_only {
            return Ok(());
        }
        let path = self.join("log.txt");
        let mut file = fs::OpenOptions::new().create(true).append(true).open(&path).map_err(Error::io(&path))?;
        writeln!(file, "{line}").map_err(Error::io(&path))
    }
}

/// A folder that no other process writes into.
#[derive(Debug)]
pub struct Lock(File);

impl Lock {
    /// Keeps others from locking `folder` until the returned value is dropped; `fault` is what they are told.
    ///
    /// # Errors
    /// If another process has locked it.
    pub fn of(folder: &Path, fault: &str) -> Result<Self> {
        Self::try_of(&folder.join("lock"))?.ok_or_else(|| Error::file(folder, fault))
    }

    /// The lock in the file `path`; nothing if another process has it.
    ///
    /// # Errors
    /// If the disk refuses.
    pub(crate) fn try_of(path: &Path) -> Result<Option<Self>> {
        // What is there under this name may be somebody's: it is locked and left as it is.
        let file =
            fs::OpenOptions::new().create(true).truncate(false).write(true).open(path).map_err(Error::io(path))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self(file))),
            Err(fs::TryLockError::WouldBlock) => Ok(None),
            Err(fs::TryLockError::Error(error)) => Err(Error::io(path)(error)),
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing the file is not enough: a process that is just being started may still have a copy of it.
        let _ = self.0.unlock();
    }
}
