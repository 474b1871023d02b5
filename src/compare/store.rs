//! Finished measurements on disk, so that an interrupted comparison goes on where it stopped.

use crate::error::{Error, Result};
use crate::files;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The folder `measurements` of a comparison: one JSON file for each measurement.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
}

/// A measurement and what it depends on.
#[derive(Serialize, Deserialize)]
struct Kept<T> {
    key: String,
    value: T,
}

impl Store {
    /// The measurements of the comparison in `out`.
    pub fn open(out: &Path) -> Result<Self> {
        let folder = out.join("measurements");
        std::fs::create_dir_all(&folder).map_err(Error::io(&folder))?;
        Ok(Self { folder })
    }

    /// The measurement `name`, made now unless it is there already with the same `key`: what its result depends on. Besides,
    /// whether it was there.
    ///
    /// What has just been made is read back, so that a comparison that goes on has the same numbers to the last digit.
    pub fn get<T: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        key: &str,
        make: impl FnOnce() -> Result<T>,
    ) -> Result<(T, bool)> {
        self.get_lasting(name, key, |_| true, make)
    }

    /// The same; what does not last is made anew the next time.
    pub fn get_lasting<T: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        key: &str,
        lasts: impl Fn(&T) -> bool,
        make: impl FnOnce() -> Result<T>,
    ) -> Result<(T, bool)> {
        let path = self.folder.join(format!("{}.json", file_name(name)));
        // Earlier versions kept what does not last, too.
        if let Some(kept) = read::<T>(&path, key).filter(&lasts) {
            return Ok((kept, true));
        }
        let kept = Kept { key: key.to_string(), value: make()? };
        if !lasts(&kept.value) {
            return Ok((kept.value, false));
        }
        let text = serde_json::to_string(&kept).expect("a measurement is plain data");
        files::replace(&path, text.as_bytes())?;
        let kept = read(&path, key).ok_or_else(|| Error::file(&path, "cannot be read back; is the disk full?"))?;
        Ok((kept, false))
    }

    /// A file beside the measurements.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(file_name(name))
    }
}

/// Anything but a whole measurement with the right key is made anew.
fn read<T: DeserializeOwned>(path: &Path, key: &str) -> Option<T> {
    let text = std::fs::read_to_string(path).ok()?;
    let kept: Kept<T> = serde_json::from_str(&text).ok()?;
    (kept.key == key).then_some(kept.value)
}

/// A name that any file system takes.
pub fn file_name(name: &str) -> String {
    name.chars().map(|c| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '_' }).collect()
}
