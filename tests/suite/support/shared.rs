//! Folders that several tests share: nothing runs when a process of tests ends, so the next one removes them.

use std::fs::{self, File};
use std::mem::forget;
use std::path::Path;
use std::sync::Once;
use tempfile::{Builder, TempDir};

/// What the folders' names begin with.
const PREFIX: &str = "lookback-tests-";

/// A folder for as long as the process lives. The first one removes those of processes that have ended.
pub fn shared_dir() -> TempDir {
    static SWEPT: Once = Once::new();
    let all = std::env::temp_dir();
    SWEPT.call_once(|| sweep(&all));
    shared_dir_in(&all)
}

/// A folder in `all`, and beside it a lock that this process holds.
fn shared_dir_in(all: &Path) -> TempDir {
    let lock = Builder::new().prefix(PREFIX).suffix(".lock").tempfile_in(all).unwrap();
    let (file, path) = lock.keep().unwrap();
    file.lock().unwrap();
    forget(file);
    Builder::new().prefix(path.file_stem().unwrap()).rand_bytes(0).tempdir_in(all).unwrap()
}

/// Removes the folders of processes that have ended, whose locks are free.
fn sweep(all: &Path) {
    for entry in fs::read_dir(all).unwrap().flatten() {
        let path = entry.path();
        let is_lock = path.extension().is_some_and(|extension| extension == "lock");
        if !is_lock || !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        // Somebody else's cannot be opened, or not removed; theirs is not ours to care for.
        let is_over = File::options().write(true).open(&path).is_ok_and(|file| file.try_lock().is_ok());
        if is_over && fs::remove_dir_all(path.with_extension("")).is_ok() {
            let _ = fs::remove_file(path);
        }
    }
}

#[test]
fn the_folder_of_an_ended_process_is_removed_and_no_other() {
    let all = TempDir::new().unwrap();
    let held = shared_dir_in(all.path());
    let ended = all.path().join(format!("{PREFIX}1.lock"));
    fs::write(&ended, "").unwrap();
    fs::create_dir_all(all.path().join(format!("{PREFIX}1/run"))).unwrap();
    fs::create_dir(all.path().join("another")).unwrap();
    fs::write(all.path().join("another.lock"), "").unwrap();
    sweep(all.path());
    let mut left: Vec<_> = fs::read_dir(all.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    left.sort();
    let others = ["another", "another.lock"].map(|name| all.path().join(name));
    assert_eq!(left, [&others[..], &[held.path().to_path_buf(), held.path().with_extension("lock")]].concat());
}
