//! `manifest.json`: the SHA-256 of every file of a checkpoint or an exported model, and its own.

use super::format::{FORMAT_VERSION, SEALED};
use crate::error::{Error, Result};
use crate::files;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Its name.
pub(super) const MANIFEST: &str = "manifest.json";

/// What stands in it.
#[derive(Serialize, Deserialize)]
pub(super) struct Manifest {
    pub(super) format_version: u32,
    /// Updates made, in an exported model; a checkpoint has them in its state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) updates: Option<u64>,
    pub(super) sha256: BTreeMap<String, String>,
    /// The SHA-256 of files of the run that a checkpoint belongs to; before format 4 there were none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) run: BTreeMap<String, String>,
    /// The SHA-256 of all the above, as JSON in one line; before format 4 there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    check: Option<String>,
}

impl Manifest {
    /// Of no file yet.
    pub(super) fn new(updates: Option<u64>, run: BTreeMap<String, String>) -> Self {
        Self { format_version: FORMAT_VERSION, updates, sha256: BTreeMap::new(), run, check: None }
    }

    /// Reads that of `folder`.
    ///
    /// # Errors
    /// If it is damaged, or of a newer version.
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let file = folder.join(MANIFEST);
        let mut manifest: Self = serde_json::from_slice(&read(&file)?)
            .map_err(|error| Error::file(&file, format!("is damaged: {error}")))?;
        let version = manifest.format_version;
        if version > FORMAT_VERSION {
            let message = format!("has format {version}, written by a newer version; this one reads {FORMAT_VERSION}");
            return Err(Error::file(&file, message));
        }
        let check = manifest.check.take();
        if check.map_or(version < SEALED, |check| check == manifest.checksum()) {
            return Ok(manifest);
        }
        Err(Error::file(&file, "is damaged: it is not what its own checksum says"))
    }

    /// Writes `files` and, last, this into `folder`, which appears whole or not at all.
    pub(super) fn write(mut self, folder: &Path, mut files: Vec<(&str, Vec<u8>)>) -> Result<()> {
        self.sha256 = files.iter().map(|(name, bytes)| (name.to_string(), hash(bytes))).collect();
        self.check = Some(self.checksum());
        files.push((MANIFEST, serde_json::to_vec_pretty(&self).expect("the manifest is plain data")));
        files::replace_folder(folder, &files)
    }

    /// The checksum of a manifest that has none.
    fn checksum(&self) -> String {
        hash(&serde_json::to_vec(self).expect("the manifest is plain data"))
    }
}

/// The bytes of a file.
pub(super) fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).map_err(Error::io(path))
}

/// The SHA-256 of some bytes, in hexadecimal.
pub(crate) fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
