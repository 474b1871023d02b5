//! Prepared data whose checksums are right and whose content is not what `data prepare` writes.

use super::*;

/// Bytes of a shard before its offsets.
const HEADER: usize = 80;
/// Where the header says how long the longest source is.
const LONGEST_SOURCE: usize = 8 + 5 * 8;
/// Bytes with one checksum.
const BLOCK: usize = 1 << 16;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The text of a manifest with the checksum that it ought to have.
fn resealed(text: &str) -> String {
    let start = text.find("\"manifest\": ").unwrap() + "\"manifest\": ".len();
    let manifest = text.trim_end().strip_suffix('}').unwrap()[start..].trim_end();
    // As it is written without spaces: the checksum is that of this.
    let lines = manifest.lines().map(|line| line.trim_start().replacen("\": ", "\":", 1));
    let compact: String = lines.collect();
    let old = text.split("\"sha256\": \"").nth(1).unwrap().split('"').next().unwrap();
    text.replacen(old, &hex(&Sha256::digest(compact)), 1)
}

/// Lets `forge` change the only shard of a folder, and makes all checksums right again.
fn forge(folder: &Path, forge: impl FnOnce(&mut [u8]), replacement: (&str, &str)) {
    let (shard, manifest) = (folder.join("000000.shard"), folder.join("manifest.json"));
    let mut bytes = fs::read(&shard).unwrap();
    let n_blocks = (1..).find(|n| (bytes.len() - 32 * n).div_ceil(BLOCK) == *n).unwrap();
    let body_len = bytes.len() - 32 * n_blocks;
    let (body, table) = bytes.split_at_mut(body_len);
    let before = hex(&Sha256::digest(&*table));
    forge(body);
    let sums: Vec<u8> = body.chunks(BLOCK).flat_map(Sha256::digest).collect();
    table.copy_from_slice(&sums);
    let after = hex(&Sha256::digest(&*table));
    fs::write(&shard, &bytes).unwrap();
    let text = read(&manifest);
    assert_eq!(resealed(&text), text, "this is how manifests are sealed");
    assert!(text.contains(&before) && text.contains(replacement.0));
    fs::write(&manifest, resealed(&text.replace(&before, &after).replace(replacement.0, replacement.1))).unwrap();
}

#[test]
fn ids_that_no_vocabulary_has_and_lengths_that_are_not_true_are_refused() {
    let dir = folder(120);
    for (i, config) in ["pairs.toml", "text.toml"].into_iter().enumerate() {
        let (config, _) = configs(&dir, config, &[]);
        let folder = config.data.prepared.clone().unwrap();
        let unforged = dir.path().join(format!("unforged-{i}"));
        let _ = fs::remove_dir_all(&folder);
        assert_eq!(made(&config, 1 << 20).n_shards, 1);
        copy_folder(&folder, &unforged);
        // The last id, in two bytes.
        forge(
            &folder,
            |body| {
                let n = body.len();
                body[n - 128..].fill(0xff)
            },
            ("\"format\": 1", "\"format\": 1"),
        );
        let fault = train_in(&dir.path().join(format!("ids-{i}")), &config).unwrap_err().to_string();
        assert_says(
            &fault,
            &["000000.shard: is damaged: it has token 65535, and the vocabulary has ", "makes it anew"],
        );
        if config.data.text.is_some() {
            continue;
        }
        // The longest source is what models make room for; offsets say where each begins.
        let manifest = read(unforged.join("manifest.json"));
        let longest = manifest.split("\"longest_source\": ").nth(1).unwrap().split(',').next().unwrap();
        let key = format!("\"longest_source\": {longest},");
        type Forge = fn(&mut [u8]);
        let cases: [(&str, Forge, &str); 3] = [
            ("longest", |body| body[LONGEST_SOURCE..LONGEST_SOURCE + 8].copy_from_slice(&1u64.to_le_bytes()), "1"),
            ("offset", |body| body[HEADER + 4..HEADER + 8].fill(0xff), longest),
            ("beginning", |body| body[HEADER] = 1, longest),
        ];
        for (name, change, new) in cases {
            fs::remove_dir_all(&folder).unwrap();
            copy_folder(&unforged, &folder);
            forge(&folder, change, (&key, &format!("\"longest_source\": {new},")));
            let fault = train_in(&dir.path().join(name), &config).unwrap_err().to_string();
            assert_says(&fault, &["000000.shard: is damaged: its lengths are not those that it says"]);
        }
    }
}

#[test]
fn text_whose_vocabulary_was_drawn_by_a_seed_is_trained_on_with_that_seed_and_with_no_other() {
    let dir = folder(120);
    let (config, _) = configs(&dir, "text.toml", &[]);
    let folder = config.data.prepared.clone().unwrap();
    made(&config, 1 << 20);
    // As it is written where there are more lines than a vocabulary is learnt from.
    let text = read(folder.join("manifest.json"));
    let key = "\"tokenizer\": {";
    let with = |seed: u64| text.replacen(key, &format!("\"seed\": {seed},\n      {key}"), 1);
    fs::write(folder.join("manifest.json"), resealed(&with(3))).unwrap();
    train_in(&dir.path().join("same"), &config).unwrap();
    fs::write(folder.join("manifest.json"), resealed(&with(4))).unwrap();
    let fault = train_in(&dir.path().join("other"), &config).unwrap_err().to_string();
    assert_says(&fault, &["was prepared with seed = 4, and here it is 3"]);
}
