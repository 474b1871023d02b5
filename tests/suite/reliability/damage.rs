//! Every file of a run, cut off at any place and with any bit turned: refused, or harmless. Never another answer.

use super::campaign;
use crate::training::{
    BAHDANAU, TRANSFORMER, assert_same_end, copy_folder, named, succeed, tiny, train_in, write_tiny,
};
use lookback::decoding::{Request, decode};
use lookback::experiment::{Config, ExportOptions, Run, export};
use lookback::random::{Purpose, Stream};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Turned bits in every file, beside the cuts, for each time that the campaign is longer.
const N_BITS: usize = 8;
/// Cuts of every file.
const N_CUTS: usize = 5;

/// What a user gets from a model: its words with their scores, and how it was to write them.
#[derive(PartialEq)]
struct Answer {
    config: Config,
    checkpoint: String,
    hypotheses: Vec<(Vec<u32>, u64)>,
    text: String,
}

/// Loads the model as `translate` does.
fn answer(run: &Path) -> Result<Answer, String> {
    let run = Run::open(run).map_err(|error| error.to_string())?;
    let adapter = lookback::backend::Backend::Flex.open().expect("flex is there");
    let mut warnings = Vec::new();
    let loaded =
        run.load_model(&adapter, None, |warning: String| warnings.push(warning)).map_err(|error| error.to_string())?;
    if let Some(warning) = warnings.pop() {
        return Err(warning);
    }
    let source = loaded.tokenizers.source().encode("a b c a");
    let found = decode(&loaded.model, &[Request::new(source)], &loaded.config.decoding, 1, |_| ());
    let hypotheses = found[0].iter().map(|h| (h.tokens.clone(), h.log_probability.to_bits())).collect();
    let text = loaded.tokenizers.target().decode(&found[0][0].tokens);
    Ok(Answer { config: loaded.config, checkpoint: loaded.checkpoint, hypotheses, text })
}

pub fn files(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    entries.into_iter().flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// All damages of one file: a text for messages, and the bytes.
pub(super) fn damages(bytes: &[u8], seed: u64) -> Vec<(String, Vec<u8>)> {
    let n_cuts = (N_CUTS * campaign()).min(100);
    let cuts = (0..n_cuts).map(|i| bytes.len() * i / n_cuts).map(|n| (format!("cut at {n}"), bytes[..n].to_vec()));
    let bits = Stream::new(seed, Purpose::Sampling, &[7]);
    let turned = (0..(N_BITS * campaign()) as u64).map(|i| {
        let bit = (bits.unit(i) * (8 * bytes.len()) as f64) as usize;
        let mut damaged = bytes.to_vec();
        damaged[bit / 8] ^= 1 << (bit % 8);
        (format!("bit {bit} turned"), damaged)
    });
    cuts.chain(turned).collect()
}

/// Damages every file of the folder; how many damages were refused, and how many were harmless.
fn check_folder(folder: &Path) -> (usize, usize) {
    let expected = answer(folder).unwrap_or_else(|error| panic!("{error}"));
    let (mut n_refused, mut n_harmless) = (0, 0);
    for (i, path) in files(folder).into_iter().enumerate() {
        let bytes = fs::read(&path).unwrap();
        if bytes.is_empty() {
            continue;
        }
        for (what, damaged) in damages(&bytes, i as u64) {
            fs::write(&path, damaged).unwrap();
            match answer(folder) {
                Ok(found) if found == expected => n_harmless += 1,
                Ok(found) => {
                    panic!("{}, {what}: another answer: {:?} for {:?}", path.display(), found.text, expected.text)
                }
                Err(error) => {
                    assert!(!error.is_empty());
                    n_refused += 1;
                }
            }
        }
        fs::write(&path, bytes).unwrap();
    }
    assert!(answer(folder).is_ok_and(|found| found == expected), "all is put back");
    (n_refused, n_harmless)
}

#[test]
fn a_damaged_run_is_refused_or_answers_as_before() {
    let dir = TempDir::new().unwrap();
    let mut n = (0, 0);
    for (name, model) in [("transformer", TRANSFORMER), ("rnn", BAHDANAU)] {
        let run = dir.path().join(name);
        let mut config = tiny(model);
        config.training.average_checkpoints = 2;
        (config.training.save_every, config.training.keep_checkpoints) = (100, 2);
        train_in(&run, &config).unwrap();
        let out = dir.path().join(format!("{name}-exported"));
        export(&Run::open(&run).unwrap(), &out, &ExportOptions { int8: name == "rnn", checkpoint: None }, |_| ())
            .unwrap();
        for folder in [run, out] {
            let (refused, harmless) = check_folder(&folder);
            n = (n.0 + refused, n.1 + harmless);
        }
    }
    println!("{} damages: {} refused, {} harmless", n.0 + n.1, n.0, n.1);
    assert!(n.0 > 50 && n.1 > 50, "{n:?}");
}

/// The config of a run decides what its numbers mean; without its end it would be read with defaults.
#[test]
fn a_config_that_was_cut_off_or_edited_is_refused_by_every_command_that_reads_it() {
    let dir = TempDir::new().unwrap();
    write_tiny(dir.path(), TRANSFORMER);
    let rotary = ["--set", "model.positions.kind=rotary", "--set", "training.max_updates=2"];
    succeed(dir.path(), &[&["train", "tiny.toml", "--run", "run"][..], &rotary].concat());
    fs::write(dir.path().join("in"), "a b\n").unwrap();
    let path = dir.path().join("run/config.toml");
    let text = fs::read_to_string(&path).unwrap();
    let cut = &text[..text.find("[model.positions]").unwrap()];
    let edited = text.replace("beam_size = 1", "beam_size = 2");
    let headless = text.split_once('\n').unwrap().1;
    let short = headless.split_once("[decoding]").unwrap().0;
    assert!(edited != text);
    for (damaged, fault) in [
        (cut, "is not what was written"),
        (&edited, "is not what was written"),
        (headless, "has lost its first line"),
        (short, "has lost its first line"),
        ("", "has lost its first line"),
    ] {
        fs::write(&path, damaged).unwrap();
        for arguments in [
            &["translate", "--run", "run", "--input", "in"][..],
            &["evaluate", "--run", "run"],
            &["explain", "--run", "run", "a b"],
            &["export", "run", "--run", "run", "--out", "out"],
            &["train", "tiny.toml", "--run", "run"],
            &["train", "tiny.toml", "--run", "other", "--init-from", "run"],
            &["compare", "--run", "run", "--out", "compared"],
        ] {
            let message = crate::training::fail(dir.path(), arguments);
            crate::training::assert_says(&message, &["run/config.toml", fault]);
        }
    }
    fs::write(&path, &text).unwrap();
    succeed(dir.path(), &["translate", "--run", "run", "--input", "in"]);
    // Without an environment there is nothing that says how old the run is: then the file itself has to be whole.
    fs::remove_file(dir.path().join("run/environment.json")).unwrap();
    fs::write(&path, short).unwrap();
    let message = crate::training::fail(dir.path(), &["translate", "--run", "run", "--input", "in"]);
    crate::training::assert_says(&message, &["run/config.toml: has no key decoding: it is not whole"]);
}

#[test]
fn a_tokenizer_or_a_best_checkpoint_of_another_run_is_refused() {
    let dir = TempDir::new().unwrap();
    let [first, second] = ["first", "second"].map(|name| dir.path().join(name));
    let mut config = tiny(BAHDANAU);
    train_in(&first, &config).unwrap();
    config.seed = 9;
    config.data.n_train = 49;
    train_in(&second, &config).unwrap();
    let fault = |run: &Path| answer(run).err().expect("it is refused");
    let taken = dir.path().join("taken");
    copy_folder(&first, &taken);
    fs::copy(second.join("tokenizer.json"), taken.join("tokenizer.json")).unwrap();
    assert!(fault(&taken).contains("tokenizer.json: is not the one that the checkpoint"), "{}", fault(&taken));
    assert!(train_in(&taken, &tiny(BAHDANAU)).is_err(), "nor does training go on with it");

    let taken = dir.path().join("pointed");
    copy_folder(&first, &taken);
    fs::copy(second.join("best"), taken.join("best")).unwrap();
    assert!(fault(&taken).contains("best: does not belong to the checkpoint"), "{}", fault(&taken));
    for outside in ["../../first/checkpoints/000012", "/tmp", "..", ""] {
        fs::write(taken.join("best"), format!("{outside}\n")).unwrap();
        assert!(fault(&taken).contains("best: is damaged"), "{outside}: {}", fault(&taken));
    }
    fs::remove_file(taken.join("best")).unwrap();
    let best = named(&first, "best");
    assert!(fault(&taken).contains(&format!("best: is not there, but {best} was the best")), "{}", fault(&taken));
}

/// Going on from a damaged run ends where the whole run ends, or is refused.
#[test]
fn a_damaged_run_that_goes_on_ends_as_the_whole_one_or_is_refused() {
    let dir = TempDir::new().unwrap();
    let [half, whole] = ["half", "whole"].map(|name| dir.path().join(name));
    let mut config = tiny(BAHDANAU);
    config.training.max_updates = 4;
    train_in(&half, &config).unwrap();
    copy_folder(&half, &whole);
    config.training.max_updates = 12;
    train_in(&whole, &config).unwrap();
    let (mut n_refused, mut n_same) = (0, 0);
    // What can be written anew or is a record for people decides nothing.
    let is_state = |path: &PathBuf| !path.ends_with("log.txt") && !path.to_string_lossy().contains("samples");
    for (i, file) in files(&half).into_iter().filter(is_state).enumerate() {
        let name = file.strip_prefix(&half).unwrap();
        let bytes = fs::read(&file).unwrap();
        if bytes.is_empty() {
            continue;
        }
        let all = damages(&bytes, 100 + i as u64);
        for (what, damaged) in all.into_iter().step_by(if campaign() > 1 { 1 } else { 6 }) {
            let run = dir.path().join("damaged");
            copy_folder(&half, &run);
            fs::write(run.join(name), damaged).unwrap();
            match train_in(&run, &config) {
                Err(_) => n_refused += 1,
                Ok(_) if name.ends_with("metrics.jsonl") => {
                    // Lines of the past that cannot be read are gone; what is learnt is the same.
                    let last = |run: &Path| {
                        fs::read(run.join("checkpoints").join(named(run, "last")).join("model.safetensors")).unwrap()
                    };
                    assert!(last(&run) == last(&whole), "{}, {what}", name.display());
                    n_same += 1;
                }
                Ok(_) => {
                    assert_same_end(&whole, &run, &format!("{}, {what}", name.display()));
                    n_same += 1;
                }
            }
            fs::remove_dir_all(&run).unwrap();
        }
    }
    println!("{} damaged runs: {n_refused} refused, {n_same} ended as the whole one", n_refused + n_same);
    assert!(n_refused > 3 && n_same > 3, "{n_refused} {n_same}");
}
