//! Prepared data: the same bytes as without them, also after an interruption.

mod changed;
mod forged;
mod refused;

use super::*;
use lookback::experiment::{PrepareOptions, Prepared, Preparing, prepare};
use std::fs;
use tempfile::TempDir;

/// Pairs of which the filter leaves some out, and a thousandth part of the sources many.
const PAIRS: &str = r#"
seed = 5
backend = "flex"
[data]
hold_out_per_mille = 60
prepared = "prepared"
[data.train]
tsv = "pairs.tsv"
swap = true
[data.filter]
max_len = 7
[tokenizer]
kind = "bpe"
vocab_size = 60
[training]
max_updates = 12
batch_tokens = 120
accumulation = 2
learning_rate = 0.01
warmup_updates = 3
validate_every = 4
save_every = 1
keep_checkpoints = 100
sample_size = 3
"#;

/// Plain text of lines that begin with spaces too, which a tokenizer of bytes keeps together.
const TEXT: &str = r#"
seed = 3
backend = "flex"
[data]
hold_out_per_mille = 100
prepared = "prepared"
[data.text]
train = ["first.txt", "second.txt"]
context = 12
[tokenizer]
kind = "byte-bpe"
vocab_size = 300
[model]
kind = "decoder-only"
reads_source = false
d_model = 16
d_feed_forward = 24
n_heads = 2
n_layers = 1
dropout_rate = 0.1
[training]
max_updates = 12
batch_tokens = 60
accumulation = 2
label_smoothing = 0.0
warmup_updates = 3
validate_every = 4
save_every = 1
keep_checkpoints = 100
"#;

/// A folder with the data of [`PAIRS`] and [`TEXT`], and both configs.
fn folder(n: usize) -> TempDir {
    let dir = TempDir::new().unwrap();
    let line = |i: usize| format!("w{} {} tab", i % 17, "ba ".repeat(i % 9));
    let pairs: String = (0..n).map(|i| format!("{}\tx{i} {}\n", line(i), i * i % 13)).collect();
    fs::write(dir.path().join("pairs.tsv"), pairs + "\n\tblank\n").unwrap();
    let lines = (0..n).map(|i| format!("{}{}\n", " ".repeat(usize::from(i % 5 == 3)), line(i)));
    let lines: Vec<String> = lines.collect();
    fs::write(dir.path().join("first.txt"), lines[..n / 2].concat() + "\n").unwrap();
    fs::write(dir.path().join("second.txt"), lines[n / 2..].concat()).unwrap();
    for (name, text) in [("pairs.toml", format!("{PAIRS}{TRANSFORMER}")), ("text.toml", TEXT.to_string())] {
        fs::write(dir.path().join(name), text).unwrap();
    }
    dir
}

/// The config of a file, with and without prepared data.
fn configs(dir: &TempDir, name: &str, overrides: &[&str]) -> (Config, Config) {
    let overrides: Vec<String> = overrides.iter().map(|text| text.to_string()).collect();
    let with = Config::load(Some(&dir.path().join(name)), &overrides).unwrap();
    let mut without = with.clone();
    without.data.prepared = None;
    (with, without)
}

fn silent(_: Preparing) -> Result<()> {
    Ok(())
}

/// In shards of so many tokens.
fn in_shards(shard_tokens: usize) -> PrepareOptions {
    PrepareOptions { shard_tokens, ..PrepareOptions::default() }
}

fn made(config: &Config, shard_tokens: usize) -> Prepared {
    prepare(config, &in_shards(shard_tokens), &mut silent).unwrap()
}

/// The files of a folder, but for the lock.
fn bytes_of(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read(&path).unwrap()))
        .filter(|(name, _)| name != "lock")
        .collect();
    files.sort();
    files
}

/// Trains with and without prepared data, and goes on with either from the middle of the other.
fn trains_to_the_same_bytes(dir: &TempDir, with: &Config, without: &Config) {
    let [whole, prepared] = ["whole", "from-shards"].map(|name| dir.path().join(name));
    train_in(&whole, without).unwrap();
    train_in(&prepared, with).unwrap();
    assert_same_end(&whole, &prepared, "with prepared data");
    assert_eq!(read(whole.join("tokenizer.json")), read(prepared.join("tokenizer.json")));
    let sums = |run: &Path| {
        let environment: Value = serde_json::from_str(&read(run.join("environment.json"))).unwrap();
        environment["data_sha256"].clone()
    };
    assert_eq!(sums(&whole), sums(&prepared), "what a run writes down of its data");
    let names = checkpoints(&whole);
    for (name, from, config) in [(&names[4], &whole, with), (&names[7], &prepared, without)] {
        let run = dir.path().join(format!("continued-{name}"));
        copy_folder(from, &run);
        for later in names.iter().filter(|other| *other > name) {
            fs::remove_dir_all(run.join("checkpoints").join(later)).unwrap();
        }
        train_in(&run, config).unwrap();
        assert_same_end(&whole, &run, &format!("continued from {name}"));
    }
}

#[test]
fn pairs_are_learnt_in_the_same_order_from_shards() {
    let dir = folder(300);
    let (with, without) = configs(&dir, "pairs.toml", &[]);
    let made = made(&with, 200);
    assert!(made.n_shards > 5 && made.dropped > 20, "{made:?}");
    trains_to_the_same_bytes(&dir, &with, &without);
}

#[test]
fn generated_pairs_are_learnt_in_the_same_order_from_shards() {
    let dir = TempDir::new().unwrap();
    let without = tiny(BAHDANAU);
    let mut with = without.clone();
    with.data.prepared = Some(dir.path().join("prepared"));
    assert_eq!(made(&with, 40).counts.units, 50);
    trains_to_the_same_bytes(&dir, &with, &without);
    let other = Config { seed: 6, ..with };
    let fault = train_in(&dir.path().join("seed"), &other).unwrap_err().to_string();
    assert_says(&fault, &["data.prepared: ", "was prepared with seed = 5, and here it is 6"]);
}

#[test]
fn plain_text_is_learnt_in_the_same_order_from_shards() {
    for kind in ["byte-bpe", "bpe"] {
        let dir = folder(200);
        let setting = format!("tokenizer.kind={kind}");
        let (with, without) = configs(&dir, "text.toml", &[&setting]);
        assert!(made(&with, 200).n_shards > 5);
        trains_to_the_same_bytes(&dir, &with, &without);
    }
}

#[test]
fn hidden_words_are_learnt_in_the_same_order_from_shards() {
    let dir = folder(200);
    let text = read(dir.path().join("text.toml"));
    let model = "kind = \"encoder-only\"\noutput = \"masked-words\"";
    let text = text.replace("kind = \"decoder-only\"\nreads_source = false", model).replace("byte-bpe", "bpe");
    fs::write(dir.path().join("masked.toml"), text).unwrap();
    let (with, without) = configs(&dir, "masked.toml", &[]);
    made(&with, 200);
    trains_to_the_same_bytes(&dir, &with, &without);
    let (other, _) = configs(&dir, "text.toml", &["tokenizer.kind=bpe"]);
    let fault = train_in(&dir.path().join("no-masks"), &other).unwrap_err().to_string();
    assert_says(&fault, &["masked-words\" = true, and here it is false"]);
}

#[test]
fn preparing_that_was_cut_off_goes_on_and_ends_in_the_same_bytes() {
    for name in ["pairs.toml", "text.toml"] {
        let dir = folder(5000);
        let (config, _) = configs(&dir, name, &["tokenizer={ kind = \"char\" }"]);
        let folder = config.data.prepared.clone().unwrap();
        let n_shards = made(&config, 10_000).n_shards;
        assert!(n_shards > 4, "{n_shards} shards");
        let whole = bytes_of(&folder);
        let again = made(&config, 10_000);
        assert_eq!((again.n_kept, bytes_of(&folder)), (n_shards, whole.clone()), "nothing is left to do");
        // What a kill leaves: the beginning, and some shards.
        fs::remove_dir_all(&folder).unwrap();
        let stop = |at: Preparing| match at.what {
            "tokenizing" => Err(lookback::error::Error::message("cut off")),
            _ => Ok(()),
        };
        let fault = prepare(&config, &in_shards(10_000), &mut { stop }).unwrap_err().to_string();
        assert_eq!(fault, "cut off");
        let cut_off = dir.path().join("cut-off");
        copy_folder(&folder, &cut_off);
        let fault = train_in(&dir.path().join("run"), &config).unwrap_err().to_string();
        assert_says(&fault, &["is not finished; `lookback data prepare CONFIG` goes on with it"]);
        for n_left in [0, 1, n_shards - 1, n_shards] {
            fs::remove_dir_all(&folder).unwrap();
            copy_folder(&cut_off, &folder);
            for (shard, bytes) in whole.iter().filter(|(name, _)| name.ends_with(".shard")).take(n_left) {
                fs::write(folder.join(shard), bytes).unwrap();
            }
            assert_eq!(made(&config, 10_000).n_kept, n_left);
            assert!(bytes_of(&folder) == whole, "{name}: other bytes after {n_left} shards");
        }
    }
}

#[cfg(unix)]
#[test]
fn a_kill_loses_at_most_a_shard() {
    let dir = folder(60_000);
    let by_letters = "tokenizer={ kind = \"char\" }";
    let arguments = ["data", "prepare", "pairs.toml", "--set", by_letters, "--shard-tokens", "100000"];
    let with_out = |out: &'static str| [&arguments[..], &["--out", out]].concat();
    let mut killed = lookback(dir.path(), &with_out("killed")).stdout(std::process::Stdio::null()).spawn().unwrap();
    let first = dir.path().join("killed/000000.shard");
    while !first.exists() && killed.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let _ = killed.kill();
    killed.wait().unwrap();
    assert!(first.exists());
    succeed(dir.path(), &with_out("killed"));
    let said = succeed(dir.path(), &with_out("whole"));
    assert_says(&said, &["whole: ", " pairs, ", " left out by the filter, ", "train with --set data.prepared=whole"]);
    assert!(bytes_of(&dir.path().join("killed")) == bytes_of(&dir.path().join("whole")));
    let said = succeed(dir.path(), &with_out("whole"));
    assert_says(&said, &["of them from before"]);
}
