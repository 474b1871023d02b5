//! The work of a comparison, which several processes may share: whoever comes to a job first does it.
//!
//! Processes, also on several machines, that see the same folder share it by locks on files there. A process that ends loses its
//! locks, and another goes on with what it had begun.

use super::progress::{Progress, check_stop};
use super::store::file_name;
use crate::error::{Error, Result};
use crate::training::{Lock, Observer};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a process with nothing to do waits before it looks again whether others have finished, or have ended.
const PATIENCE: Duration = Duration::from_millis(500);

/// What is said of a process with nothing to do.
const WAITING: &str = "waiting for what other processes do";

/// The jobs of the comparison in a folder.
pub(super) struct Jobs {
    folder: PathBuf,
}

impl Jobs {
    /// Those of the comparison in `out`.
    pub(super) fn open(out: &Path) -> Result<Self> {
        let folder = out.join("locks");
        std::fs::create_dir_all(&folder).map_err(Error::io(&folder))?;
        Ok(Self { folder })
    }

    fn try_lock(&self, name: &str) -> Result<Option<Lock>> {
        Lock::try_of(&self.folder.join(file_name(name)))
    }

    /// Sees to it that all of `jobs` are done: does what nobody else is doing, and waits for the rest. A job that has been done
    /// is done once more, and has to find that out by itself.
    ///
    /// # Errors
    /// If a job fails, or whoever asked for the comparison stops it.
    pub(super) fn share<J>(
        &self,
        jobs: &[J],
        progress: &mut Progress,
        name: impl Fn(&J) -> String,
        mut work: impl FnMut(&J, &mut Progress) -> Result<()>,
    ) -> Result<()> {
        let mut left: Vec<&J> = jobs.iter().collect();
        while !left.is_empty() {
            let n = left.len();
            let mut taken = Vec::new();
            for job in left {
                check_stop(&**progress.observer())?;
                match self.try_lock(&name(job))? {
                    Some(_lock) => work(job, progress)?,
                    None => taken.push(job),
                }
            }
            if taken.len() == n {
                progress.at(WAITING, 0.0);
                std::thread::sleep(PATIENCE);
            }
            left = taken;
        }
        Ok(())
    }

    /// The lock `name`, as soon as nobody else has it; until then `say` is told what is waited for.
    ///
    /// # Errors
    /// As [`Self::share`].
    pub(super) fn wait_for(&self, name: &str, observer: &dyn Observer, say: impl Fn(&str)) -> Result<Lock> {
        loop {
            check_stop(observer)?;
            if let Some(lock) = self.try_lock(name)? {
                return Ok(lock);
            }
            say(WAITING);
            std::thread::sleep(PATIENCE);
        }
    }
}
