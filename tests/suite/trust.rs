//! A backend is checked before it is trusted: by this program on the drivers that are there, and by workers that crash and lie.

use crate::support::wgpu;
use crate::training::{BAHDANAU, Finished, assert_says, lookback, succeed, write_tiny};
use lookback::trust::work::{Difference, worst};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// The program in `dir`, with a cache folder of its own and `worker` in the place of the process that checks.
fn run(dir: &Path, worker: Option<&str>, arguments: &[&str]) -> Finished {
    let mut command = lookback(dir, arguments);
    command.env("XDG_CACHE_HOME", dir.join("cache")).env("HOME", dir);
    if let Some(script) = worker {
        let path = dir.join("worker");
        fs::write(&path, format!("#!/bin/sh\necho asked >> {}\n{script}\n", dir.join("asked").display())).unwrap();
        #[cfg(unix)]
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        command.env("LOOKBACK_CHECK_WORKER", path);
    }
    command.output().unwrap().into()
}

/// How often the worker was asked.
fn n_asked(dir: &Path) -> usize {
    fs::read_to_string(dir.join("asked")).map_or(0, |text| text.lines().count())
}

const CRASH: &str = "kill -SEGV $$";
const LIE: &str =
    "echo '{\"model\":\"transformer\",\"difference\":41.3,\"at\":\"the gradient of encoder.1.norm.gamma\"}'";
const ROUND: &str = "echo '{\"model\":\"bahdanau\",\"difference\":0.25,\"at\":\"the loss\",\"bits_of_products\":10}'";
const NONSENSE: &str = "echo 'llvmpipe: this is not JSON'";
const REFUSE: &str = "echo 'cannot open the device' >&2; exit 3";
const AGREE: &str = "echo '{\"model\":\"transformer\",\"difference\":1e-6,\"at\":\"the loss\"}'";

const TRAIN: [&str; 8] = ["train", "tiny.toml", "--backend", "wgpu", "--run", "run", "--set", "training.max_updates=1"];

/// A crash, a lie, nonsense and a refusal end training before it begins; the message says what was seen and what to do.
#[test]
#[cfg(unix)]
fn a_driver_that_crashes_or_lies_is_refused_by_every_command() {
    let Some(_) = wgpu() else { return };
    let dir = TempDir::new().unwrap();
    write_tiny(dir.path(), BAHDANAU);
    fs::write(dir.path().join("in"), "a b\n").unwrap();
    succeed(dir.path(), &["train", "tiny.toml", "--run", "there", "--set", "training.max_updates=1"]);
    let on_gpu = ["--run", "there", "--backend", "wgpu"];
    for (worker, seen) in [
        (CRASH, "the driver ended the process with signal 11"),
        (LIE, "the gradient of encoder.1.norm.gamma of a small model (transformer) differs from flex by 41 times"),
        (ROUND, "by 0.2500 times its largest value, where burn's products keep 10 of the 23 bits of a fraction (TF32)"),
        (NONSENSE, "the check said nothing that could be read"),
        (REFUSE, "exit code 3 (cannot open the device)"),
    ] {
        for arguments in [
            TRAIN.to_vec(),
            [&["translate", "--input", "in"][..], &on_gpu].concat(),
            [&["evaluate"][..], &on_gpu].concat(),
            [&["explain", "a b"][..], &on_gpu].concat(),
            [&["inspect", "states", "--input", "tiny.toml"][..], &on_gpu].concat(),
            vec!["compare", "tiny.toml", "--backend", "wgpu", "--out", "compared"],
        ] {
            let finished = run(dir.path(), Some(worker), &arguments);
            assert_eq!((finished.code, finished.stdout.as_str()), (Some(1), ""), "{arguments:?}: {}", finished.stderr);
            assert_says(
                finished.fault(),
                &["wgpu on ", "driver ", "cannot be trusted: ", seen, "--backend", "--no-check"],
            );
        }
        assert!(!dir.path().join("run").exists(), "nothing has begun");
    }
    // What was refused is not remembered: each command asked anew.
    assert_eq!(n_asked(dir.path()), 5 * 6);
    // Who knows better may go on.
    let anyway = [&["translate", "--input", "in", "--no-check"][..], &on_gpu].concat();
    let finished = run(dir.path(), Some(CRASH), &anyway);
    assert_eq!((finished.code, n_asked(dir.path())), (Some(0), 30), "{}", finished.stderr);
}

#[test]
#[cfg(unix)]
fn what_agrees_is_checked_once_and_again_when_asked() {
    let Some(_) = wgpu() else { return };
    let dir = TempDir::new().unwrap();
    write_tiny(dir.path(), BAHDANAU);
    fs::write(dir.path().join("in"), "a b\n").unwrap();
    // A run that was trained on the CPU: of a GPU only what writes a line is compiled.
    succeed(dir.path(), &["train", "tiny.toml", "--run", "run", "--set", "training.max_updates=1"]);
    let arguments = ["translate", "--input", "in", "--run", "run", "--backend", "wgpu"];
    let finished = run(dir.path(), Some(AGREE), &arguments);
    assert_eq!((finished.code, n_asked(dir.path())), (Some(0), 1), "{}", finished.stderr);
    assert_says(&finished.stderr, &["check    wgpu on ", "driver ", "agrees to 1e-6 after "]);
    let finished = run(dir.path(), Some(CRASH), &arguments);
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""), "it is known, and not asked");
    let finished = run(dir.path(), Some(CRASH), &[&arguments[..], &["--recheck"]].concat());
    assert_eq!(finished.code, Some(1));
    assert_says(finished.fault(), &["signal 11"]);
    // A record that is damaged knows nothing.
    fs::write(dir.path().join("cache/lookback/backends.json"), "[{").unwrap();
    assert_eq!(run(dir.path(), Some(CRASH), &arguments).code, Some(1));
    // Another driver is another adapter.
    run(dir.path(), Some(AGREE), &arguments);
    let record = dir.path().join("cache/lookback/backends.json");
    let text = fs::read_to_string(&record).unwrap();
    let version = text.find("\"driver\": \"").unwrap() + "\"driver\": \"".len();
    fs::write(&record, format!("{}another {}", &text[..version], &text[version..])).unwrap();
    assert_eq!(run(dir.path(), Some(CRASH), &arguments).code, Some(1));
    // Backends of the CPU are checked by no process at all.
    let before = n_asked(dir.path());
    for backend in ["flex", "ndarray"] {
        let finished = run(dir.path(), Some(CRASH), &["evaluate", "--run", "run", "--backend", backend]);
        assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    }
    assert_eq!(n_asked(dir.path()), before);
}

/// No fake: forward, backward and an update of two models on each driver of this machine.
#[test]
fn the_drivers_of_this_machine_agree_with_flex() {
    let Some(_) = wgpu() else { return };
    let dir = TempDir::new().unwrap();
    write_tiny(dir.path(), BAHDANAU);
    let finished = run(dir.path(), None, &TRAIN);
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    assert_says(&finished.stderr, &["check    wgpu on ", "agrees to "]);
}

/// Every family of models by the command, which a test of `backends` compares in this process.
#[test]
#[ignore = "half a minute; CI runs it as a step of its own"]
fn every_model_agrees_on_the_drivers_of_this_machine() {
    let Some(_) = wgpu() else { return };
    let dir = TempDir::new().unwrap();
    let of_check = run(dir.path(), None, &["devices", "--check", "--json", "--backend", "wgpu"]);
    let report: serde_json::Value = serde_json::from_str(&of_check.stdout).unwrap();
    let checks = report["checks"].as_array().unwrap();
    assert_eq!((of_check.code, checks.len()), (Some(0), 8), "{report}");
    assert!(checks.iter().all(|check| check["verdict"] == "agrees" && check["difference"].as_f64().unwrap() < 1e-3));
    assert!(checks.iter().all(|check| check["bits_of_products"].is_null()), "drivers in software multiply in full");
    assert!(!report["backends"][0]["adapters"][0]["driver"].as_str().unwrap().is_empty(), "{report}");
}

/// Debian's Chromium brings a second driver.
#[test]
#[ignore = "half a minute; CI runs it as a step of its own"]
fn every_model_agrees_on_a_second_driver() {
    let second = Path::new("/usr/lib/chromium/vk_swiftshader_icd.json");
    if !second.is_file() {
        assert!(std::env::var_os("CI").is_none(), "CI needs the package chromium for its SwiftShader");
        println!("skipped: there is no {}", second.display());
        return;
    }
    let dir = TempDir::new().unwrap();
    write_tiny(dir.path(), BAHDANAU);
    let mut command = lookback(dir.path(), &TRAIN);
    command
        .env("XDG_CACHE_HOME", dir.path().join("cache"))
        .env("VK_DRIVER_FILES", second)
        .env("VK_ICD_FILENAMES", second);
    let finished = Finished::from(command.output().unwrap());
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    assert_says(&finished.stderr, &["check    wgpu on SwiftShader", "agrees to "]);
    let record = fs::read_to_string(dir.path().join("cache/lookback/backends.json")).unwrap();
    assert_eq!(record.matches("\"device\"").count(), 1, "{record}");
}

#[test]
#[cfg(unix)]
fn a_table_of_checks_has_a_row_for_what_crashed() {
    let Some(_) = wgpu() else { return };
    let dir = TempDir::new().unwrap();
    let finished = run(dir.path(), Some(CRASH), &["devices", "--check"]);
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    let rows: Vec<&str> = finished.stdout.lines().filter(|line| line.ends_with("FAILED")).collect();
    assert_eq!(rows.len(), 2, "ndarray and wgpu:\n{}", finished.stdout);
    assert_says(rows[1], &["wgpu", "signal 11"]);
    assert_says(finished.fault(), &["a backend computes something else than flex, or nothing"]);
}

#[test]
fn the_worst_of_all_is_what_counts_and_no_number_is_worse_than_any() {
    let difference =
        |difference: f64| Difference { model: "m".into(), difference, at: "the loss".into(), bits_of_products: None };
    let found = worst(&[difference(1e-7), difference(2.0), difference(1e-3)]).clone();
    assert!(found.difference == 2.0 && !found.agrees());
    let found = worst(&[difference(1e9), difference(f64::NAN)]).clone();
    assert!(!found.agrees());
    assert_eq!(found.to_string(), "the loss of a small model (m) is not finite");
    assert!(difference(1e-3).agrees() && !difference(1.1e-3).agrees());
}

/// The table of the documents is that of the program.
#[test]
fn the_documents_have_the_table_of_backends() {
    let document = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/guides/gpu.md")).unwrap();
    assert_says(&document, &[&lookback::backend::Backend::table()]);
}
