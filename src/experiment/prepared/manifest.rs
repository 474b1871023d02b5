//! What a folder of prepared data says of itself.

use crate::data::corpus::Dropped;
use crate::data::shards::{Counts, ShardEntry};
use crate::error::{Error, Result};
use crate::files;
use crate::training::hash;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// The version of the format; it grows when older programs could misread a folder.
const FORMAT: u32 = 1;
/// The finished folder's list.
const NAME: &str = "manifest.json";
/// The same while the folder is being made: what it is made of, and no more.
const BEGUN: &str = "begun.json";

/// What decides what is in the shards, by key of the config; of files the SHA-256.
pub(super) type Content = BTreeMap<String, Value>;

/// A file that was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileRead {
    /// Its key in the config.
    pub(super) key: String,
    pub(super) bytes: u64,
    /// When it was last changed, in nanoseconds since 1970, as text: JSON numbers are not as exact everywhere.
    pub(super) modified: String,
    pub(super) sha256: String,
}

/// What was held out for a split.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HeldOut {
    /// Pairs, or lines.
    pub(super) count: u64,
    pub(super) sha256: String,
}

/// What there is in a folder.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Manifest {
    pub(super) format: u32,
    pub(super) content: Content,
    pub(super) files: Vec<FileRead>,
    /// Ids after which a shard is closed.
    pub(super) shard_tokens: usize,
    /// The SHA-256 of tokenizer.json.
    pub(super) tokenizer: String,
    /// What a run writes down of its training data.
    pub(super) data_sha256: BTreeMap<String, String>,
    pub(super) counts: Counts,
    pub(super) dropped: Dropped,
    /// Lines of plain text that are learnt from, and their characters.
    pub(super) lines: u64,
    pub(super) characters: u64,
    /// By split.
    pub(super) held_out: BTreeMap<String, HeldOut>,
    pub(super) shards: Vec<ShardEntry>,
}

/// A manifest with its checksum.
#[derive(Serialize, Deserialize)]
struct Sealed {
    sha256: String,
    manifest: Manifest,
}

fn sum_of(manifest: &Manifest) -> String {
    hash(serde_json::to_string(manifest).expect("a manifest is plain data").as_bytes())
}

fn read(path: &Path) -> Result<Manifest> {
    #[derive(Deserialize)]
    struct Version {
        manifest: Format,
    }
    #[derive(Deserialize)]
    struct Format {
        format: u32,
    }
    let damaged =
        |what: String| Error::file(path, format!("is damaged: {what}; `lookback data prepare CONFIG` makes it anew"));
    let text = std::fs::read(path).map_err(Error::io(path))?;
    let version: Version = serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;
    if version.manifest.format != FORMAT {
        let message = format!(
            "has format {}, but this program reads format {FORMAT}; `lookback data prepare CONFIG` makes it anew",
            version.manifest.format
        );
        return Err(Error::file(path, message));
    }
    let Sealed { sha256, manifest } = serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;
    if sum_of(&manifest) != sha256 {
        return Err(damaged("its checksum is wrong".into()));
    }
    Ok(manifest)
}

impl Manifest {
    /// An empty one.
    pub(super) fn new(content: Content, files: Vec<FileRead>, shard_tokens: usize) -> Self {
        Self { format: FORMAT, content, files, shard_tokens, ..Self::default() }
    }

    /// That of the finished folder.
    pub(super) fn load(folder: &Path) -> Result<Self> {
        let path = folder.join(NAME);
        if !path.is_file() {
            let message = match folder.join(BEGUN).is_file() {
                true => "is not finished; `lookback data prepare CONFIG` goes on with it",
                false => "has no prepared data; `lookback data prepare CONFIG` makes them",
            };
            return Err(Error::config("data.prepared", format!("{} {message}", folder.display())));
        }
        read(&path)
    }

    /// That of a folder which is finished, or has been begun; nothing where neither can be read.
    pub(super) fn there(folder: &Path) -> Option<Self> {
        [NAME, BEGUN].iter().find_map(|name| read(&folder.join(name)).ok())
    }

    /// Whether `folder` is finished.
    pub(super) fn is_finished(folder: &Path) -> bool {
        folder.join(NAME).is_file()
    }

    /// Whether there is one in `folder`; nothing where a file of its name is no JSON at all. Checkpoints, exported models and other
    /// programs have files of that name too.
    pub(super) fn is_there(folder: &Path) -> Option<bool> {
        let texts: Vec<Vec<u8>> =
            [NAME, BEGUN].iter().filter_map(|name| std::fs::read(folder.join(name)).ok()).collect();
        let values: Vec<_> = texts.iter().map(|text| serde_json::from_slice::<Value>(text)).collect();
        let is_one = |value: &Value| value["manifest"]["content"].is_object();
        let is_there = values.iter().flatten().any(is_one);
        if !is_there && values.iter().any(Result::is_err) { None } else { Some(is_there) }
    }

    /// Whether a file is called as one is.
    pub(super) fn is_name(name: &str) -> bool {
        [NAME, BEGUN].contains(&name)
    }

    /// Records what is to be made. It is not used for training until it is finished.
    pub(super) fn begin(&self, folder: &Path) -> Result<()> {
        self.write(&folder.join(BEGUN))?;
        let done = folder.join(NAME);
        if done.is_file() {
            std::fs::remove_file(&done).map_err(Error::io(&done))?;
        }
        Ok(())
    }

    /// Writes down that all is there.
    pub(super) fn finish(&self, folder: &Path) -> Result<()> {
        self.write(&folder.join(NAME))?;
        // What is left of it does no harm.
        let _ = std::fs::remove_file(folder.join(BEGUN));
        Ok(())
    }

    fn write(&self, path: &Path) -> Result<()> {
        let sealed = Sealed { sha256: sum_of(self), manifest: self.clone() };
        let text = serde_json::to_string_pretty(&sealed).expect("a manifest is plain data") + "\n";
        files::replace(path, text.as_bytes())
    }
}
