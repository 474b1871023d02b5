//! Prepared data that are damaged, or not those of the config.

use super::*;

#[test]
fn damaged_shards_are_refused_and_made_anew() {
    let dir = folder(300);
    let (config, _) = configs(&dir, "pairs.toml", &[]);
    let folder = config.data.prepared.clone().unwrap();
    made(&config, 600);
    let whole = bytes_of(&folder);
    let shard = folder.join("000001.shard");
    let bytes = fs::read(&shard).unwrap();
    let flipped = |at: usize| {
        let mut bytes = bytes.clone();
        bytes[at] ^= 4;
        bytes
    };
    // The header, an offset, an id, a checksum; and a shard that is cut off.
    let ids = bytes.len() - 40;
    let cases = [
        (flipped(9), "it is cut off, or no shard"),
        (flipped(90), "a checksum is wrong"),
        (flipped(ids), "a checksum is wrong"),
        (flipped(bytes.len() - 1), "its checksum is not that of the manifest"),
        (bytes[..bytes.len() - 1].to_vec(), "it is cut off, or no shard"),
        (Vec::new(), "000001.shard"),
    ];
    for (i, (damaged, what)) in cases.into_iter().enumerate() {
        fs::write(&shard, damaged).unwrap();
        let fault = train_in(&dir.path().join(format!("run-{i}")), &config).unwrap_err().to_string();
        assert_says(&fault, &["000001.shard", what]);
        let n_kept = made(&config, 600).n_kept;
        assert_eq!(n_kept, 1, "what is before the damage is kept");
        assert!(bytes_of(&folder) == whole, "mended after: {what}");
    }
    fs::remove_file(&shard).unwrap();
    assert_says(&train_in(&dir.path().join("gone"), &config).unwrap_err().to_string(), &["000001.shard"]);
    made(&config, 600);
    for (file, what) in [("manifest.json", "is damaged"), ("tokenizer.json", "SHA-256"), ("valid.jsonl", "SHA-256")] {
        let text = read(folder.join(file));
        let at = text.rfind(|c: char| c.is_ascii_digit()).unwrap();
        let changed = if &text[at..=at] == "1" { "2" } else { "1" };
        fs::write(folder.join(file), format!("{}{changed}{}", &text[..at], &text[at + 1..])).unwrap();
        let fault = train_in(&dir.path().join(file), &config).unwrap_err().to_string();
        assert_says(&fault, &[file, what, "`lookback data prepare CONFIG` makes it anew"]);
        made(&config, 600);
        assert!(bytes_of(&folder) == whole, "mended: {file}");
    }
}

#[test]
fn damage_that_is_met_in_training_ends_it() {
    let dir = folder(20_000);
    let (config, _) = configs(&dir, "pairs.toml", &["tokenizer={ kind = \"char\" }"]);
    let n_pairs = made(&config, 1 << 20).counts.units as usize;
    let shard = config.data.prepared.clone().unwrap().join("000000.shard");
    let mut bytes = fs::read(&shard).unwrap();
    // Behind the lengths, every block but the last, which the checksums stand in too.
    let blocks = (100 + 8 * n_pairs).div_ceil(1 << 16)..(bytes.len() >> 16) - 1;
    assert!(blocks.len() > 3, "{blocks:?}");
    blocks.for_each(|block| bytes[(block << 16) + 9] ^= 1);
    fs::write(&shard, bytes).unwrap();
    let fault = train_in(&dir.path().join("run"), &config).unwrap_err().to_string();
    assert_says(&fault, &["the data cannot be read: ", "000000.shard: is damaged: a checksum is wrong", "anew"]);
}

#[test]
fn shards_of_other_data_are_refused() {
    let dir = folder(100);
    let (config, _) = configs(&dir, "pairs.toml", &[]);
    let run = dir.path().join("run");
    let refused = |overrides: &[&str], parts: &[&str]| {
        let (other, _) = configs(&dir, "pairs.toml", overrides);
        let fault = train_in(&run, &other).unwrap_err().to_string();
        assert_says(&fault, &[&["data.prepared: "], parts].concat());
    };
    const ANEW: &str = "`lookback data prepare CONFIG` makes";
    refused(&[], &["prepared has no prepared data; ", ANEW]);
    made(&config, 1000);
    refused(&["data.filter.max_len=6"], &["was prepared with data.filter = ", "\"max_len\":6", ANEW]);
    refused(&["data.hold_out_per_mille=50"], &["was prepared with data.hold_out_per_mille = ", ANEW]);
    refused(&["data.test.tsv=pairs.tsv"], &["was prepared with data.hold_out_per_mille = ", "[\"valid\",\"test\"]"]);
    refused(&["tokenizer.vocab_size=50"], &["was prepared with tokenizer = ", "\"vocab_size\":50", ANEW]);
    refused(&["data.train.swap=false"], &["was prepared with data.train.swap = true, and here it is false"]);
    // No vocabulary was drawn from part of the data, and so the seed has no say.
    let (other, _) = configs(&dir, "pairs.toml", &["seed=6"]);
    train_in(&dir.path().join("seed"), &other).unwrap();
    // Files that have another time are read; those that are gone are not needed.
    let pairs = dir.path().join("pairs.tsv");
    let text = read(&pairs);
    fs::remove_file(&pairs).unwrap();
    train_in(&dir.path().join("gone"), &config).unwrap();
    fs::write(&pairs, &text).unwrap();
    train_in(&dir.path().join("moved"), &config).unwrap();
    fs::write(&pairs, text.replacen("ba", "bo", 1)).unwrap();
    refused(&[], &["was prepared from another data.train.tsv: ", "pairs.tsv has changed", ANEW]);
    made(&config, 1000);
    train_in(&dir.path().join("anew"), &config).unwrap();
    // A folder with something else in it is nobody's to empty.
    let other = PrepareOptions { out: Some(dir.path().join("anew")), ..in_shards(9) };
    let fault = prepare(&config, &other, &mut silent).unwrap_err().to_string();
    assert_says(&fault, &["is not empty and has no prepared data", "give another --out"]);
    assert!(dir.path().join("anew/config.toml").is_file());
    // So is one whose manifest is of another kind, as exported models have one, and a damaged one among other files.
    for (manifest, beside) in [("{\"format\": 4}", "tokenizer.json"), ("{", "model.safetensors")] {
        let folder = dir.path().join(beside);
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("manifest.json"), manifest).unwrap();
        fs::write(folder.join(beside), "somebody's").unwrap();
        let options = PrepareOptions { out: Some(folder.clone()), ..in_shards(9) };
        let fault = prepare(&config, &options, &mut silent).unwrap_err().to_string();
        assert_says(&fault, &["is not empty and has no prepared data", "give another --out"]);
        assert_eq!(
            (read(folder.join("manifest.json")), read(folder.join(beside))),
            (manifest.into(), "somebody's".into())
        );
    }
    // A damaged one of prepared data is made anew, whatever its user wrote beside a whole one.
    let folder = config.data.prepared.clone().unwrap();
    fs::write(folder.join("NOTES.md"), "mine").unwrap();
    made(&config, 1000);
    assert_eq!(read(folder.join("NOTES.md")), "mine");
    fs::remove_file(folder.join("NOTES.md")).unwrap();
    fs::write(folder.join("manifest.json"), "{").unwrap();
    made(&config, 1000);
    train_in(&dir.path().join("again"), &config).unwrap();
}

#[test]
fn a_run_that_is_fine_tuned_keeps_its_tokenizer() {
    let dir = folder(100);
    let (config, _) = configs(&dir, "pairs.toml", &["training.max_updates=1"]);
    let arguments = ["train", "pairs.toml", "--run", "first", "--set", "training.max_updates=1"];
    made(&config, 1000);
    succeed(dir.path(), &arguments);
    // Other data, whose own vocabulary would be another.
    fs::write(dir.path().join("pairs.tsv"), read(dir.path().join("pairs.tsv")).replace("ba", "zu")).unwrap();
    made(&config, 1000);
    let fault = fail(dir.path(), &["train", "pairs.toml", "--run", "second", "--init-from", "first"]);
    assert_says(&fault, &["another tokenizer than that of the run", "lookback data prepare CONFIG --init-from RUN"]);
    succeed(dir.path(), &["data", "prepare", "pairs.toml", "--init-from", "first"]);
    let tuned = [&["train", "pairs.toml", "--run", "second", "--init-from", "first"], &arguments[4..]].concat();
    succeed(dir.path(), &tuned);
    let fault = fail(dir.path(), &["train", "pairs.toml", "--run", "third"]);
    assert_says(&fault, &["was prepared with the tokenizer of another run"]);
}
