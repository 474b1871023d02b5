//! Files of a corpus: lines, pairs of two kinds, gzip.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lookback::data::series::SeriesPair;
use lookback::data::{SplitFiles, read_lines, read_pairs};
use std::cell::RefCell;
use std::fs;
use std::path::PathBuf;

thread_local! {
    static FOLDER: RefCell<Option<tempfile::TempDir>> = const { RefCell::new(None) };
}

/// The file `name`, in memory where the system has such a folder.
fn file(name: &str, bytes: &[u8]) -> PathBuf {
    FOLDER.with_borrow_mut(|folder| {
        let folder = folder.get_or_insert_with(|| {
            tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a folder for files")
        });
        let path = folder.path().join(name);
        fs::write(&path, bytes).expect("a file");
        path
    })
}

fuzz_target!(|data: &[u8]| {
    let (kind, data) = data.split_first().unwrap_or((&0, &[]));
    let whole = file("whole", data);
    if let Ok(lines) = read_lines(&whole) {
        assert!(lines.iter().all(|line| !line.contains('\n')));
    }
    let mut tsv = SplitFiles::tsv(&whole);
    (tsv.swap, tsv.ignore_extra_columns) = (kind & 1 > 0, kind & 2 > 0);
    let pairs = read_pairs(&tsv);
    let half = data.len() / 2;
    let parallel = read_pairs(&SplitFiles::parallel(file("source", &data[..half]), file("target", &data[half..])));
    for pair in pairs.into_iter().chain(parallel).flatten() {
        let _ = SeriesPair::parse(&pair, [None; 2]);
    }
});
