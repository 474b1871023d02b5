//! `export run`, and what inference takes.

use super::{pipe, trained};
use crate::training::{TRANSFORMER, assert_says, copy_folder, fail, finish, named, read, succeed, write_tiny};
use serde_json::Value;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

const LINES: &str = "a b c\nd e\nb a d c\n";

/// What the model in `run` makes of [`LINES`], with the warnings.
fn translated(run: &Path) -> (String, String) {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("in"), LINES).unwrap();
    let finished = finish(dir.path(), &["translate", "--run", run.to_str().unwrap(), "--input", "in"]);
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    (finished.stdout, finished.stderr)
}

fn export(out: &Path, more: &[&str]) -> u64 {
    succeed(trained(), &[&["export", "run", "--run", "run", "--out", out.to_str().unwrap()], more].concat());
    fs::read_dir(out).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum()
}

#[test]
fn an_exported_model_is_small_and_all_that_inference_takes() {
    let dir = TempDir::new().unwrap();
    let out = dir.path().join("model");
    export(&out, &[]);
    let mut names: Vec<String> =
        fs::read_dir(&out).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["README.md", "config.toml", "manifest.json", "model.safetensors", "tokenizer.json"]);
    assert_eq!(translated(&out), (pipe(&["translate", "--run", "run"], LINES), String::new()));
    let folder = out.to_str().unwrap();
    let scores = |run: &str| -> Value {
        serde_json::from_str(&succeed(trained(), &["evaluate", "--run", run, "--json"])).unwrap()
    };
    assert_eq!(scores(folder), scores("run"));
    succeed(trained(), &["explain", "--run", folder, "a b c"]);
    succeed(trained(), &["inspect", "attention", "--run", folder, "--sentences", "1"]);
    write_tiny(dir.path(), &TRANSFORMER.replace("dropout_rate = 0.2", "dropout_rate = 0.0"));
    let tuned = ["train", "tiny.toml", "--run", "tuned", "--init-from", folder, "--set", "training.max_updates=1"];
    succeed(dir.path(), &tuned);
    let card = read(out.join("README.md"));
    assert_says(
        &card,
        &[
            "| checkpoint | 000150, after 150 updates |",
            "validation perplexity",
            "kind = \"copy\"",
            "lookback translate --run .",
        ],
    );
}

#[test]
#[cfg(unix)]
fn an_empty_folder_is_filled_by_whatever_name_it_is_given() {
    use std::os::unix::fs::MetadataExt;
    let dir = TempDir::new().unwrap();
    let run = trained().join("run");
    let export = |from: &Path, out: &str| {
        succeed(from, &["export", "run", "--run", run.to_str().unwrap(), "--out", out]);
    };
    for (folder, link, out) in [("one", "first", "first"), ("two", "second", "second/")] {
        fs::create_dir(dir.path().join(folder)).unwrap();
        std::os::unix::fs::symlink(folder, dir.path().join(link)).unwrap();
        export(dir.path(), out);
        assert!(dir.path().join(link).is_symlink(), "{out}: a link stays a link");
        assert!(dir.path().join(folder).join("manifest.json").is_file(), "{out}: the folder behind it has the files");
    }
    let here = dir.path().join("here");
    fs::create_dir(&here).unwrap();
    let place = |folder: &Path| fs::metadata(folder).unwrap().ino();
    let before = place(&here);
    export(&here, ".");
    assert_eq!(place(&here), before, "who stands in it sees the files");
    assert_eq!(translated(&here), translated(&dir.path().join("one")));
    let mut left: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["first", "here", "one", "second", "two"]);
}

#[test]
fn eight_bits_make_a_smaller_folder_that_translates_as_the_rounded_model() {
    let dir = TempDir::new().unwrap();
    let (floats, bytes) = (dir.path().join("floats"), dir.path().join("bytes"));
    let sizes = (export(&floats, &[]), export(&bytes, &["--int8"]));
    assert!(sizes.1 < sizes.0, "{sizes:?}");
    assert_eq!(translated(&bytes), (pipe(&["translate", "--run", "run", "--int8"], LINES), String::new()));
    assert_says(&read(bytes.join("README.md")), &["8 bits"]);
}

#[test]
fn an_exported_model_is_checked_and_never_overwritten_or_trained_on() {
    let dir = TempDir::new().unwrap();
    let out = dir.path().join("model");
    export(&out, &[]);
    let folder = out.to_str().unwrap();
    let message = fail(trained(), &["export", "run", "--run", "run", "--out", folder]);
    assert_says(&message, &["holds something already"]);
    write_tiny(dir.path(), TRANSFORMER);
    assert_says(&fail(dir.path(), &["train", "tiny.toml", "--run", folder]), &["is an exported model", "--init-from"]);
    assert!(!out.join("checkpoints").exists());
    for name in ["config.toml", "tokenizer.json", "model.safetensors"] {
        let damaged = dir.path().join(format!("damaged-{name}"));
        copy_folder(&out, &damaged);
        let mut content = fs::read(damaged.join(name)).unwrap();
        // A blank at the end changes nothing that is read, and still is not what was exported.
        content.push(b'\n');
        fs::write(damaged.join(name), content).unwrap();
        let message = fail(trained(), &["translate", "--run", damaged.to_str().unwrap(), "--input", "tiny.toml"]);
        assert_says(&message, &[name, "SHA-256"]);
    }
}

#[test]
fn a_run_translates_without_the_optimizer_and_without_its_other_files() {
    let dir = TempDir::new().unwrap();
    let expected = pipe(&["translate", "--run", "run"], LINES);
    let checkpoint = Path::new("checkpoints").join(named(&trained().join("run"), "best"));
    // Without the optimizer, or with one that is damaged, nothing is missing.
    let run = dir.path().join("without-optimizer");
    copy_folder(&trained().join("run"), &run);
    fs::remove_file(run.join(&checkpoint).join("optimizer.safetensors")).unwrap();
    fs::write(run.join(&checkpoint).join("optimizer.json"), "damaged").unwrap();
    assert_eq!(translated(&run), (expected.clone(), String::new()));
    // With the four files alone it translates too, and says that it could not check them.
    let run = dir.path().join("four-files");
    fs::create_dir_all(run.join(&checkpoint)).unwrap();
    for file in ["config.toml", "tokenizer.json", "best"] {
        fs::copy(trained().join("run").join(file), run.join(file)).unwrap();
    }
    let model = checkpoint.join("model.safetensors");
    fs::copy(trained().join("run").join(&model), run.join(&model)).unwrap();
    let (text, warnings) = translated(&run);
    assert_eq!(text, expected);
    assert_says(&warnings, &["has no manifest.json beside it"]);
    assert_eq!(warnings.lines().count(), 1);
}
