//! Every file of prepared data, cut off at any place and with any bit turned: refused, or the same model is trained.

use super::campaign;
use super::damage::{damages, files};
use crate::training::{BAHDANAU, assert_same_end, tiny_text_of, train_in};
use lookback::data::shards::{Examples, Shard, Tokens};
use lookback::experiment::{Config, PrepareOptions, prepare};
use sha2::{Digest, Sha256};
use std::fs;
use tempfile::TempDir;

#[test]
fn damaged_prepared_data_are_refused_or_train_the_same_model() {
    let dir = TempDir::new().unwrap();
    let pairs: String = (0..60).map(|i| format!("a w{} b\tb x{} a\n", i % 23, i % 17)).collect();
    fs::write(dir.path().join("pairs.tsv"), pairs).unwrap();
    let (pairs, folder) = (dir.path().join("pairs.tsv"), dir.path().join("prepared"));
    let keys = format!("train.tsv = {pairs:?}\nhold_out_per_mille = 200\nprepared = {folder:?}");
    let mut config: Config = toml::from_str(&tiny_text_of(BAHDANAU, &keys)).unwrap();
    (config.training.max_updates, config.training.save_every) = (6, 100);
    let options = PrepareOptions { shard_tokens: 120, ..PrepareOptions::default() };
    assert!(prepare(&config, &options, &mut |_| Ok(())).unwrap().n_shards > 1);
    let whole = dir.path().join("whole");
    train_in(&whole, &config).unwrap();
    let (mut n_refused, mut n_harmless) = (0, 0);
    let run = dir.path().join("damaged");
    for (i, path) in files(&folder).into_iter().enumerate() {
        let bytes = fs::read(&path).unwrap();
        if bytes.is_empty() {
            continue;
        }
        let all = damages(&bytes, 200 + i as u64);
        for (what, damaged) in all.into_iter().step_by(if campaign() > 1 { 1 } else { 2 }) {
            fs::write(&path, damaged).unwrap();
            match train_in(&run, &config) {
                Err(error) => {
                    assert!(!error.to_string().is_empty());
                    n_refused += 1;
                }
                Ok(_) => {
                    assert_same_end(&whole, &run, &format!("{}, {what}", path.display()));
                    n_harmless += 1;
                }
            }
            let _ = fs::remove_dir_all(&run);
        }
        fs::write(&path, bytes).unwrap();
    }
    println!("{} damages: {n_refused} refused, {n_harmless} harmless", n_refused + n_harmless);
    assert!(n_refused > 20, "{n_refused}, {n_harmless}");
    train_in(&run, &config).unwrap();
    assert_same_end(&whole, &run, "all is put back");
}

/// Found by fuzzing: the numbers of a text were read as the lengths of pairs.
#[test]
fn a_shard_of_text_is_not_taken_for_pairs() {
    let dir = TempDir::new().unwrap();
    let numbers = [4u64, 2, 5, 0, 0, 0, 0, 0, 0];
    let ids = [2u32, 4, 5, 2, 6];
    let mut bytes = b"LBSHARD1".to_vec();
    bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    bytes.extend(ids.iter().flat_map(|id| id.to_le_bytes()));
    let sum = Sha256::digest(&bytes);
    bytes.extend(sum);
    fs::write(dir.path().join("000000.shard"), bytes).unwrap();
    let entry = Shard::whole(dir.path(), "000000.shard").expect("its checksum is right");
    let text = Tokens::open(dir.path(), std::slice::from_ref(&entry), 10).unwrap();
    assert_eq!(text.read(0..text.len()).unwrap(), ids);
    let fault = Examples::open(dir.path(), &[entry], [10, 10]).unwrap_err().to_string();
    assert!(fault.contains("000000.shard") && fault.contains("it has a text, and no pairs"), "{fault}");
}
