//! Files and folders that are either whole or not there.
//!
//! Everything that the program writes goes through here: into a temporary name beside its place, synced, and renamed. A full
//! disk, a kill or a crash leaves what was there before, and no half of what was to come.

use crate::error::{Error, Result};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

/// What temporary names end with; they begin with a dot.
const TEMPORARY: &str = ".tmp";
/// How many random letters and digits tempfile puts before it.
const N_RANDOM: usize = 6;

/// Writes `bytes` to `path` in one step. What is no regular file, such as a pipe or a terminal, is written to as it is.
///
/// # Errors
/// If the system refuses; then `path` is as it was.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    let there = path.metadata().ok();
    if there.as_ref().is_some_and(|metadata| !metadata.is_file() && !metadata.is_dir()) {
        return fs::write(path, bytes).map_err(Error::io(path));
    }
    let (place, folder, prefix) = place_of(path)?;
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix).suffix(TEMPORARY);
    // A new file is made as any other, not for its owner alone; one that is there keeps what it has.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = builder.tempfile_in(&folder).map_err(Error::io(path))?;
    if let Some(metadata) = there {
        let _ = file.as_file().set_permissions(metadata.permissions());
    }
    file.write_all(bytes).and_then(|()| file.as_file().sync_all()).map_err(Error::io(path))?;
    file.persist(&place).map_err(|error| Error::io(path)(error.error))?;
    sync(&folder);
    Ok(())
}

/// Refuses a place that [`replace`] could not write to, before work is done in vain.
///
/// # Errors
/// If it is a folder, or lies in none that can be written to.
pub fn check_writable(path: &Path) -> Result<()> {
    if path.is_dir() {
        return Err(Error::file(path, "is a folder; give the name of a file"));
    }
    if path.exists() && !path.is_file() {
        return Ok(());
    }
    let (_, folder, prefix) = place_of(path)?;
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix).suffix(TEMPORARY).tempfile_in(&folder).map_err(Error::io(path)).map(drop)
}

/// Makes the folder `path` with these files, in this order, in one step. A folder that is there is removed when its successor
/// stands, but for an empty one in which this process works: that gets the files one after the other.
///
/// # Errors
/// If the system refuses; then `path` is as it was.
pub fn replace_folder(path: &Path, files: &[(&str, Vec<u8>)]) -> Result<()> {
    // A link goes on pointing where it does, and `.` has a name.
    let place = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let (parent, prefix) = beside(&place)?;
    fs::create_dir_all(&parent).map_err(Error::io(&parent))?;
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix).suffix(TEMPORARY);
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o777));
    let made = builder.tempdir_in(&parent).map_err(Error::io(path))?;
    for (name, bytes) in files {
        let path = made.path().join(name);
        let written = File::create(&path).and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()));
        written.map_err(Error::io(&path))?;
    }
    sync(made.path());
    if is_empty_and_current(&place) {
        move_files(made.path(), &place, files).map_err(Error::io(path))?;
        sync(&place);
    } else if place.exists() {
        // What was there before has the temporary name now, and goes with it.
        exchange(made.path(), &place).map_err(Error::io(path))?;
    } else {
        fs::rename(made.path(), &place).map_err(Error::io(path))?;
        let _ = made.keep();
    }
    sync(&parent);
    Ok(())
}

/// Whether a folder is empty, and the one in which this process works. Another one in its place would not be: who
/// stands in the old one sees nothing of it.
fn is_empty_and_current(folder: &Path) -> bool {
    let is_current = std::env::current_dir().and_then(|own| own.canonicalize()).is_ok_and(|own| own == folder);
    is_current && fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none())
}

/// Moves files into an empty folder; after a failure it is empty again.
fn move_files(from: &Path, to: &Path, files: &[(&str, Vec<u8>)]) -> std::io::Result<()> {
    let moved = files.iter().try_for_each(|(name, _)| fs::rename(from.join(name), to.join(name)));
    if moved.is_err() {
        files.iter().for_each(|(name, _)| drop(fs::remove_file(to.join(name))));
    }
    moved
}

/// Lets two folders change their names, in one step where the system can.
fn exchange(left: &Path, right: &Path) -> std::io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        if renameat_with(CWD, left, CWD, right, RenameFlags::EXCHANGE).is_ok() {
            return Ok(());
        }
    }
    let aside = left.with_extension("old");
    fs::rename(right, &aside)?;
    fs::rename(left, right)?;
    fs::rename(&aside, left)
}

/// Makes a rename durable where folders can be synced; elsewhere there is nothing to do.
fn sync(folder: &Path) {
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
}

/// The NAME, or its beginning, in a name as [`replace`] gives one while it writes: `.NAME.RANDOM.tmp`.
pub fn temporary_of(name: &str) -> Option<&str> {
    let (of, random) = name.strip_prefix('.')?.strip_suffix(TEMPORARY)?.rsplit_once('.')?;
    (random.len() == N_RANDOM && random.chars().all(|c| c.is_ascii_alphanumeric())).then_some(of)
}

/// Removes what a process that was killed left in `folder` under temporary names of files that are its own. No other process may be
/// writing there.
pub fn remove_temporary(folder: &Path, is_own: impl Fn(&str) -> bool) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if temporary_of(&name.to_string_lossy()).is_some_and(&is_own) {
            // What cannot be removed costs space, nothing else.
            let path = entry.path();
            let _ = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        }
    }
}

/// Whether two paths name one file: a regular file that is there, under whatever names and links, or the place of one
/// that is not there yet. `-`, standard input or output, is no file.
pub fn are_same(left: &Path, right: &Path) -> bool {
    if left.as_os_str() == "-" || right.as_os_str() == "-" {
        return false;
    }
    match (left.metadata(), right.metadata()) {
        (Ok(a), Ok(b)) => a.is_file() && b.is_file() && is_one_file((left, &a), (right, &b)),
        (Err(_), Err(_)) => matches!((new_place(left), new_place(right)), (Some(left), Some(right)) if left == right),
        _ => false,
    }
}

/// Whether two files that are there are one.
#[cfg(unix)]
fn is_one_file((_, left): (&Path, &fs::Metadata), (_, right): (&Path, &fs::Metadata)) -> bool {
    use std::os::unix::fs::MetadataExt;
    // Hard links have no other sign.
    (left.dev(), left.ino()) == (right.dev(), right.ino())
}

/// Whether two files that are there are one.
#[cfg(not(unix))]
fn is_one_file((left, _): (&Path, &fs::Metadata), (right, _): (&Path, &fs::Metadata)) -> bool {
    matches!((left.canonicalize(), right.canonicalize()), (Ok(left), Ok(right)) if left == right)
}

/// Where a file would be made: its name in its folder, which is there.
fn new_place(path: &Path) -> Option<PathBuf> {
    let (folder, _) = beside(path).ok()?;
    Some(folder.canonicalize().ok()?.join(path.file_name()?))
}

/// Where a file is written, the folder of that place, which is there, and what temporary names in it begin with.
fn place_of(path: &Path) -> Result<(PathBuf, PathBuf, String)> {
    // A link goes on pointing where it does.
    let place = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let (folder, prefix) = beside(&place)?;
    // Otherwise the message has the name of the temporary file.
    fs::metadata(&folder).map_err(Error::io(path))?;
    Ok((place, folder, prefix))
}

/// The folder that `path` lies in, and what temporary names beside it begin with.
fn beside(path: &Path) -> Result<(PathBuf, String)> {
    let name = path.file_name().ok_or_else(|| Error::file(path, "has no name; give one that can be made"))?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Long names leave no room for more.
    let name: String = name.to_string_lossy().chars().take(32).collect();
    Ok((folder.to_path_buf(), format!(".{name}.")))
}
