//! Making a folder of prepared data.

use super::content::{self, GIVEN, files_of};
use super::manifest::{Content, FileRead, Manifest};
use super::passes::Passes;
use super::source::{self, Preparing};
use super::tokenize::Shards;
use crate::data::shards::Counts;
use crate::data::tokenizer::LARGEST_SAMPLE;
use crate::data::{Tokenizers, sha256_of_file_with};
use crate::error::{Error, Result};
use crate::experiment::Config;
use crate::experiment::run::tokenizers_to_go_on;
use crate::files;
use crate::training::Lock;
use serde_json::json;
use std::path::{Path, PathBuf};

/// The default number of ids in a shard: the most work that an interruption can lose.
pub const SHARD_TOKENS: usize = 1 << 24;
/// As many as offsets of 32 bits can count, with room for the last line.
const MAX_SHARD_TOKENS: usize = 1 << 30;

/// The options of `prepare` besides the config.
#[derive(Clone, Debug)]
pub struct PrepareOptions {
    /// The folder; without it, `data.prepared` of the config.
    pub out: Option<PathBuf>,
    /// A run whose vocabularies are taken, as one that is fine-tuned takes them.
    pub init_from: Option<PathBuf>,
    /// Ids after which a shard is closed.
    pub shard_tokens: usize,
}

impl Default for PrepareOptions {
    fn default() -> Self {
        Self { out: None, init_from: None, shard_tokens: SHARD_TOKENS }
    }
}

/// What has been made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepared {
    /// The folder.
    pub folder: PathBuf,
    /// What is in its shards.
    pub counts: Counts,
    /// Lines of plain text.
    pub lines: u64,
    /// Pairs that the filter left out.
    pub dropped: usize,
    /// How many shards there are.
    pub n_shards: usize,
    /// The size of all of them.
    pub bytes: u64,
    /// Shards that were there before.
    pub n_kept: usize,
}

/// Tokenizes the training data of `config` into a folder, or continues after an interruption; `report` gets the progress, and can stop it.
///
/// # Errors
/// If the data cannot be read or the folder not be written; also what `report` returns.
pub fn prepare(
    config: &Config,
    options: &PrepareOptions,
    report: &mut dyn FnMut(Preparing) -> Result<()>,
) -> Result<Prepared> {
    config.validate()?;
    if config.model.answers_with_numbers() {
        return Err(Error::config("model.output", "is \"values\", and prepared data are of text; train without them"));
    }
    if !(1..=MAX_SHARD_TOKENS).contains(&options.shard_tokens) {
        let message = format!("--shard-tokens must lie in 1..={MAX_SHARD_TOKENS}, got {}", options.shard_tokens);
        return Err(Error::message(message));
    }
    let folder =
        options.out.as_ref().or(config.data.prepared.as_ref()).ok_or_else(|| {
            Error::config("data.prepared", "is missing: name the folder to be made, here or with --out")
        })?;
    check_own(folder)?;
    std::fs::create_dir_all(folder).map_err(Error::io(folder))?;
    let _lock = Lock::of(folder, "is in use by another `lookback data prepare`; wait for it or give another --out")?;
    files::remove_temporary(folder, |_| true);
    let given = options.init_from.as_deref().map(|from| tokenizers_to_go_on(from, &config.tokenizer)).transpose()?;
    let new = begin(config, options.shard_tokens, given.as_ref(), report)?;
    let old = Manifest::there(folder).filter(|old| is_same(&old.content, &new.content));
    let old = old.filter(|old| old.shard_tokens == new.shard_tokens);
    let kept = if old.is_some() { Shards::whole(folder) } else { Vec::new() };
    let n_kept = kept.len();
    if let Some(old) = old.as_ref().filter(|old| !old.shards.is_empty() && old.shards == kept && is_whole(folder, old))
    {
        // Files that were moved have other times.
        let whole = Manifest { files: new.files, ..old.clone() };
        whole.finish(folder)?;
        return Ok(summary(folder, &whole, n_kept));
    }
    if old.is_none() {
        clear(folder, is_own)?;
    }
    // Which vocabularies were trained is written down once they are saved. Others are not what the shards were made with.
    let is_trained = |there: &Tokenizers| old.as_ref().is_some_and(|old| old.tokenizer == there.fingerprint());
    let there = Tokenizers::load(folder.join(super::TOKENIZER)).ok().filter(is_trained);
    if there.is_none() {
        clear(folder, |name| name == super::TOKENIZER)?;
    }
    let known = there.as_ref().map(Tokenizers::fingerprint).unwrap_or_default();
    Manifest { tokenizer: known, ..new.clone() }.begin(folder)?;
    let mut passes = Passes { config, files: files_of(&config.data), report };
    let tokenizers = match given.or(there) {
        Some(tokenizers) => tokenizers,
        None => passes.train_tokenizers()?,
    };
    tokenizers.save(folder.join(super::TOKENIZER))?;
    let mut manifest = Manifest { tokenizer: tokenizers.fingerprint(), ..new };
    manifest.begin(folder)?;
    passes.write_shards(folder, &tokenizers, kept, &mut manifest)?;
    check_unchanged(folder, &manifest.files, &files_of(&config.data))?;
    let n_examples = if config.data.text.is_some() { manifest.lines } else { manifest.counts.units };
    let is_drawn = n_examples > LARGEST_SAMPLE as u64 && options.init_from.is_none();
    if config.data.task.is_none() && !is_drawn {
        manifest.content.remove("seed");
    }
    manifest.finish(folder)?;
    Ok(summary(folder, &manifest, n_kept))
}

fn summary(folder: &Path, manifest: &Manifest, n_kept: usize) -> Prepared {
    Prepared {
        folder: folder.to_path_buf(),
        counts: manifest.counts,
        lines: manifest.lines,
        dropped: manifest.dropped.total(),
        n_shards: manifest.shards.len(),
        bytes: manifest.shards.iter().map(|shard| shard.bytes).sum(),
        n_kept,
    }
}

/// Whether two folders have the same content; a seed counts only where something was drawn by it.
fn is_same(old: &Content, new: &Content) -> bool {
    let mut new = new.clone();
    if !old.contains_key("seed") {
        new.remove("seed");
    }
    *old == new
}

/// Whether what stands beside the shards is what was written.
fn is_whole(folder: &Path, manifest: &Manifest) -> bool {
    let tokenizers = Tokenizers::load(folder.join(super::TOKENIZER));
    let held_out = |(split, held_out): (&String, &super::manifest::HeldOut)| {
        crate::data::sha256_of_file(folder.join(format!("{split}.jsonl"))).is_ok_and(|sum| sum == held_out.sha256)
    };
    tokenizers.is_ok_and(|own| own.fingerprint() == manifest.tokenizer) && manifest.held_out.iter().all(held_out)
}

/// What is going to be made of which files.
fn begin(
    config: &Config,
    shard_tokens: usize,
    given: Option<&Tokenizers>,
    report: &mut dyn FnMut(Preparing) -> Result<()>,
) -> Result<Manifest> {
    let mut content = content::of_data(&config.data, config.seed);
    content.extend(content::of_tokens(config));
    content.insert("seed".into(), json!(config.seed));
    if config.data.text.is_some() {
        // An unfinished folder is gone on with piece by piece: those of another version of the program are others.
        content.insert(PIECES.into(), json!(2));
    }
    if let Some(given) = given {
        content.insert(GIVEN.into(), json!(given.fingerprint()));
    }
    let files = files_of(&config.data);
    let total = source::total(&config.data, &files);
    let (mut found, mut before) = (Vec::new(), 0);
    for (key, path) in files {
        let (bytes, modified) =
            content::stamp(&path).filter(|_| path.is_file()).ok_or_else(|| Error::file(&path, NOT_A_FILE))?;
        let sha256 = sha256_of_file_with(&path, |done| {
            report(Preparing { what: "checksums", done: before + done, total, is_bytes: true })
        })?;
        before += bytes;
        content.insert(key.clone(), json!(sha256));
        found.push(FileRead { key, bytes, modified, sha256 });
    }
    Ok(Manifest::new(content, found, shard_tokens))
}

/// Refuses files that have changed since they were first read: nobody knows which of their lines are in the shards, which are
/// removed.
fn check_unchanged(folder: &Path, read: &[FileRead], files: &[(String, PathBuf)]) -> Result<()> {
    let is_changed = |file: &FileRead, path: &Path| {
        content::stamp(path).is_none_or(|now| now != (file.bytes, file.modified.clone()))
    };
    match read.iter().zip(files).find(|(file, (_, path))| is_changed(file, path)) {
        None => Ok(()),
        Some((_, (_, path))) => {
            clear(folder, is_own)?;
            Err(Error::file(path, "has changed while it was prepared; prepare it again once nobody writes to it"))
        }
    }
}

/// Which version of the rules cut text into pieces.
const PIECES: &str = "pieces of text";

const NOT_A_FILE: &str = "is no file that can be read; training data have to be files to be prepared";

/// Whether a file of that name is prepared data.
fn is_own(name: &str) -> bool {
    name.ends_with(".shard") || [super::TOKENIZER, "valid.jsonl", "test.jsonl"].contains(&name)
}

/// The files of a folder, with their names.
fn entries(folder: &Path) -> Result<Vec<(PathBuf, String)>> {
    let entries = std::fs::read_dir(folder).map_err(Error::io(folder))?.flatten();
    Ok(entries.map(|entry| (entry.path(), entry.file_name().to_string_lossy().into_owned())).collect())
}

/// Refuses a folder of something else, whose files might be called as some of these are.
fn check_own(folder: &Path) -> Result<()> {
    if !folder.exists() {
        return Ok(());
    }
    let is_there = Manifest::is_there(folder);
    if is_there == Some(true) {
        return Ok(());
    }
    let is_damaged = is_there.is_none();
    let is_known =
        |name: &str| name.starts_with('.') || name == "lock" || is_damaged && (is_own(name) || Manifest::is_name(name));
    match entries(folder)?.into_iter().find(|(_, name)| !is_known(name)) {
        None => Ok(()),
        Some((other, _)) => {
            let message = format!("is not empty and has no prepared data ({}); give another --out", other.display());
            Err(Error::file(folder, message))
        }
    }
}

/// Removes what was prepared of other data, and nothing else.
fn clear(folder: &Path, is_old: impl Fn(&str) -> bool) -> Result<()> {
    let mut old = entries(folder)?.into_iter().filter(|(_, name)| is_old(name));
    old.try_for_each(|(path, _)| std::fs::remove_file(&path).map_err(Error::io(&path)))
}
