//! Writes that fail: nothing half-written is taken for whole, and what was there before stays.

use super::campaign;
use super::damage::files;
use crate::cli::trained;
use crate::training::{
    BAHDANAU, assert_same_end, assert_says, checkpoints, fail, finish, finish_on_full_disk, read, succeed,
    tiny_text_of, write_tiny,
};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Training on a disk that is full at each of many sizes: whichever write fails, the run goes on to the same end.
#[test]
#[cfg(unix)]
fn whichever_write_of_training_fails_the_run_goes_on_to_the_same_end() {
    let dir = TempDir::new().unwrap();
    write_tiny(dir.path(), BAHDANAU);
    fn train(run: &str) -> [&str; 6] {
        ["train", "tiny.toml", "--dashboard", "none", "--run", run]
    }
    succeed(dir.path(), &train("whole"));
    // Blocks of 512 bytes: from the first byte of the tokenizer to beyond the largest file, the optimizer.
    let sizes: Vec<u64> = if campaign() > 1 { (0..90).collect() } else { vec![0, 1, 2, 20, 50, 70] };
    let mut n_failed = 0;
    for size in sizes {
        let run = format!("full-{size}");
        let arguments = train(&run);
        let finished = finish_on_full_disk(dir.path(), size, &arguments);
        if finished.code != Some(0) {
            n_failed += 1;
            assert_eq!(finished.code, Some(1), "{size}: {}", finished.stderr);
            assert_says(finished.fault(), &[&run, "File too large"]);
        }
        if dir.path().join(&run).join("checkpoints").is_dir() {
            let left = checkpoints(&dir.path().join(&run));
            assert!(left.iter().all(|name| !name.starts_with('.')), "{size}: {left:?} is left");
        }
        succeed(dir.path(), &arguments);
        assert_same_end(&dir.path().join("whole"), &dir.path().join(&run), &run);
    }
    assert!(n_failed >= 5, "only {n_failed} writes failed");
}

/// Data prepared on a disk that is full at each of many sizes: it goes on to the same files.
#[test]
#[cfg(unix)]
fn whichever_write_of_preparing_fails_it_goes_on_to_the_same_files() {
    let dir = TempDir::new().unwrap();
    let pairs: String = (0..900).map(|i| format!("a w{} b\tb x{} a\n", i % 23, i % 17)).collect();
    fs::write(dir.path().join("pairs.tsv"), pairs).unwrap();
    let text = tiny_text_of(BAHDANAU, "train.tsv = \"pairs.tsv\"\nhold_out_per_mille = 200");
    fs::write(dir.path().join("text.toml"), text).unwrap();
    let prepare = |out: &str| {
        let to = format!("data.prepared={out}");
        ["data", "prepare", "text.toml", "--shard-tokens", "1500", "--set", &to].map(str::to_string)
    };
    let made = |out: &str| -> Vec<(PathBuf, Vec<u8>)> {
        let folder = dir.path().join(out);
        let all = files(&folder).into_iter();
        all.map(|path| (path.strip_prefix(&folder).unwrap().into(), fs::read(&path).unwrap())).collect()
    };
    let whole = prepare("whole");
    succeed(dir.path(), &whole.each_ref().map(String::as_str));
    let sizes: Vec<u64> = if campaign() > 1 { (0..24).collect() } else { vec![0, 1, 3, 6, 10] };
    let mut n_failed = 0;
    for size in sizes {
        let out = format!("full-{size}");
        let arguments = prepare(&out);
        let arguments = arguments.each_ref().map(String::as_str);
        let finished = finish_on_full_disk(dir.path(), size, &arguments);
        if finished.code != Some(0) {
            n_failed += 1;
            assert_eq!(finished.code, Some(1), "{size}: {}", finished.stderr);
            assert_says(finished.fault(), &[&out, "File too large"]);
            // What there is of it is not taken for whole.
            let train = ["train", "text.toml", "--run", "none", "--set", arguments[6]];
            assert_says(&fail(dir.path(), &train), &[&out]);
        }
        succeed(dir.path(), &arguments);
        assert!(made(&out) == made("whole"), "{size}: other files");
    }
    assert!(n_failed >= 4, "only {n_failed} writes failed");
}

/// Whatever is written besides: what was there before is still there, to the last byte.
#[test]
#[cfg(unix)]
fn results_that_do_not_fit_leave_what_was_there_before() {
    let dir = trained();
    fs::write(dir.join("lines"), "a b c\n".repeat(400)).unwrap();
    for (arguments, output) in [
        (&["inspect", "attention", "--run", "run", "--input", "lines", "--out", "kept.html"][..], "kept.html"),
        (&["inspect", "attention", "--run", "run", "--input", "lines", "--out", "kept.png"], "kept.png"),
        (&["inspect", "states", "--run", "run", "--input", "lines", "--out", "kept.svg"], "kept.svg"),
        (&["explain", "--run", "run", "a b c", "--html", "kept.explain.html"], "kept.explain.html"),
        (&["evaluate", "--run", "run", "--split", "train", "--output", "kept.txt"], "kept.txt"),
    ] {
        fs::write(dir.join(output), "before\n").unwrap();
        let finished = finish_on_full_disk(dir, 1, arguments);
        assert_eq!(finished.code, Some(1), "{arguments:?}: {}", finished.stderr);
        assert_says(finished.fault(), &[output, "File too large"]);
        assert_eq!(read(dir.join(output)), "before\n", "{arguments:?}");
        succeed(dir, arguments);
        assert!(fs::metadata(dir.join(output)).unwrap().len() > 512, "{output} is larger than the disk was");
    }
    assert!(temporary(dir).is_empty(), "{:?} is left", temporary(dir));
}

fn temporary(dir: &Path) -> Vec<String> {
    let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    names.filter(|name| name.ends_with(".tmp")).collect()
}

#[test]
#[cfg(unix)]
fn a_set_of_files_that_was_not_finished_is_not_there() {
    let dir = TempDir::new().unwrap();
    let generate = ["data", "generate", "copy", "--pairs", "200", "--out", "copied"];
    // Enough for validation and test, not for training.
    let finished = finish_on_full_disk(dir.path(), 2, &generate);
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    assert_says(finished.fault(), &["copied/train.tsv: File too large"]);
    assert_eq!(fs::read_dir(dir.path().join("copied")).unwrap().count(), 0);
    succeed(dir.path(), &generate);
    assert_eq!(fs::read_dir(dir.path().join("copied")).unwrap().count(), 4);
    let exported = ["export", "run", "--run", "run", "--out", "exported-full"];
    let finished = finish_on_full_disk(trained(), 2, &exported);
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    assert!(!trained().join("exported-full").exists() && temporary(trained()).is_empty());
    succeed(trained(), &exported);
}

#[test]
fn a_folder_that_disappears_is_an_error_that_names_it() {
    let dir = TempDir::new().unwrap();
    write_tiny(dir.path(), BAHDANAU);
    let train = ["train", "tiny.toml", "--run", "run"];
    succeed(dir.path(), &[&train[..], &["--set", "training.max_updates=2"]].concat());
    fs::remove_dir_all(dir.path().join("run/checkpoints")).unwrap();
    fs::write(dir.path().join("run/checkpoints"), "no folder").unwrap();
    assert_says(&fail(dir.path(), &train), &["run/checkpoints"]);
    fs::remove_file(dir.path().join("run/checkpoints")).unwrap();
    // Nothing is left to go on from, but for a record of it.
    assert_says(&fail(dir.path(), &train), &["run/checkpoints/000002: is not there any more"]);
    fs::remove_dir_all(dir.path().join("run")).unwrap();
    succeed(dir.path(), &train);
    fs::write(dir.path().join("file"), "").unwrap();
    for out in ["file/below", "nowhere/below/picture.svg"] {
        let arguments = ["inspect", "states", "--run", "run", "--input", "tiny.toml", "--out", out];
        let finished = finish(dir.path(), &arguments);
        assert_eq!(finished.code, Some(1), "{out}: {}", finished.stderr);
        assert!(!finished.stderr.contains("panicked"), "{}", finished.stderr);
    }
}

#[test]
fn nothing_that_is_read_is_written_over() {
    let dir = trained();
    fs::write(dir.join("precious"), "a b\nc\n").unwrap();
    for arguments in [
        &["translate", "--run", "run", "--input", "precious", "--output", "precious"][..],
        &["translate", "--run", "run", "--input", "precious", "--output", "./../precious-link"],
        &["translate", "--run", "run", "--input", "lines-of", "--prefixes", "precious", "--output", "precious"],
    ] {
        let link = dir.parent().unwrap().join("precious-link");
        #[cfg(unix)]
        if !link.exists() {
            std::os::unix::fs::symlink(dir.join("precious"), &link).unwrap();
        }
        fs::write(dir.join("lines-of"), "a b\nc\n").unwrap();
        assert_says(&fail(dir, arguments), &["is read and would be written over", "--output"]);
        assert_eq!(read(dir.join("precious")), "a b\nc\n");
        let _ = fs::remove_file(link);
    }
    let files = TempDir::new().unwrap();
    write_tiny(files.path(), BAHDANAU);
    succeed(files.path(), &["train", "tiny.toml", "--run", "run", "--set", "training.max_updates=1"]);
    let before = read(files.path().join("run/config.toml"));
    let arguments = ["compare", "tiny.toml", "--out", "run", "--set", "training.max_updates=1"];
    assert_says(&fail(files.path(), &arguments), &["run: is a run folder", "--out"]);
    assert_eq!(read(files.path().join("run/config.toml")), before);
    assert!(!files.path().join("run/measurements").exists());
}
