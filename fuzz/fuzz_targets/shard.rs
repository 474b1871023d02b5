//! A shard of prepared data. Its checksums are made right, so that what is behind them is reached.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lookback::data::shards::{Examples, Shard, Tokens};
use sha2::{Digest, Sha256};
use std::cell::RefCell;
use std::fs;

/// Bytes with one checksum.
const BLOCK: usize = 1 << 16;
const NAME: &str = "000000.shard";

thread_local! {
    static FOLDER: RefCell<Option<tempfile::TempDir>> = const { RefCell::new(None) };
}

fuzz_target!(|data: &[u8]| {
    let (largest, body) = data.split_first().unwrap_or((&0, &[]));
    let vocabulary = usize::from(*largest) + 1;
    let is_known = |ids: &[u32]| ids.iter().all(|id| (*id as usize) < vocabulary);
    let sums = body.chunks(BLOCK).flat_map(Sha256::digest);
    let bytes: Vec<u8> = body.iter().copied().chain(sums).collect();
    FOLDER.with_borrow_mut(|folder| {
        let folder = folder.get_or_insert_with(|| {
            tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a folder for files")
        });
        let folder = folder.path();
        // A new file each time: one that is mapped is not to change.
        let _ = fs::remove_file(folder.join(NAME));
        fs::write(folder.join(NAME), bytes).expect("a file");
        let Some(entry) = Shard::whole(folder, NAME) else { return };
        if let Ok(pairs) = Examples::open(folder, &[entry.clone()], [vocabulary; 2]) {
            let longest = pairs.longest();
            for (i, lengths) in pairs.lengths().enumerate() {
                assert!(lengths.0 <= longest.0 && lengths.1 <= longest.1);
                if let Ok(pair) = pairs.get(i) {
                    assert_eq!((pair.source.len(), pair.target.len()), lengths);
                    assert!(is_known(&pair.source) && is_known(&pair.target));
                }
            }
        }
        if let Ok(text) = Tokens::open(folder, &[entry], vocabulary)
            && let Ok(ids) = text.read(0..text.len())
        {
            assert!(ids.len() == text.len() && is_known(&ids));
        }
    });
});
