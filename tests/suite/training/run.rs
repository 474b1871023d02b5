//! Run folders: locked, continued only as the same experiment, moved, and taken as the start of another.

use super::*;
use lookback::experiment::Run;
use lookback::training::checkpoint::load;
use std::fs;
use tempfile::TempDir;

#[test]
fn a_run_folder_in_use_is_refused() {
    let dir = TempDir::new().unwrap();
    write_tiny(dir.path(), BAHDANAU);
    let held = Run::create(&dir.path().join("run")).unwrap().folder().lock().unwrap();
    let message = fail(dir.path(), &["train", "tiny.toml", "--run", "run"]);
    assert_says(&message, &["run: is in use by another `lookback train`", "--run"]);
    drop(held);
    succeed(dir.path(), &["train", "tiny.toml", "--run", "run", "--set", "training.max_updates=1"]);
}

#[test]
fn a_changed_key_is_refused_by_name_with_both_values() {
    let dir = TempDir::new().unwrap();
    write_tiny(dir.path(), BAHDANAU);
    let begin = ["train", "tiny.toml", "--run", "run", "--set", "training.max_updates=2"];
    succeed(dir.path(), &begin);
    for (setting, old) in [
        ("seed=6", "5"),
        ("data.n_train=51", "50"),
        ("data.task.max_len=6", "5"),
        ("tokenizer.lowercase=true", "false"),
        ("model.d_hidden=13", "12"),
        ("model.dropout_rate=0.3", "0.2"),
        ("training.learning_rate=0.02", "0.01"),
        ("training.batch_tokens=41", "40"),
        ("training.accumulation=3", "2"),
        ("training.optimizer.beta_1=0.8", "0.9"),
        ("training.average_checkpoints=2", "0"),
    ] {
        let message = fail(dir.path(), &[&begin[..], &["--set", setting]].concat());
        let (key, new) = setting.split_once('=').unwrap();
        assert_says(&message, &[&format!("{key}: is {new} here, but the run was begun with {old}"), "--run"]);
    }
    write_tiny(dir.path(), TRANSFORMER);
    assert_says(&fail(dir.path(), &begin), &["here, but the run was begun with"]);
}

#[test]
fn limits_cadence_backend_and_decoding_may_change_and_are_noted() {
    let dir = TempDir::new().unwrap();
    write_tiny(dir.path(), BAHDANAU);
    succeed(dir.path(), &["train", "tiny.toml", "--run", "run", "--set", "training.max_updates=2"]);
    let settings = [
        ("backend", "\"ndarray\""),
        ("decoding.beam_size", "2"),
        ("training.max_updates", "3"),
        ("training.max_minutes", "7.5"),
        ("training.patience", "9"),
        ("training.validate_every", "3"),
        ("training.save_every", "5"),
        ("training.keep_checkpoints", "4"),
        ("training.log_every", "1"),
    ];
    let given: Vec<String> = settings.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let mut arguments = vec!["train", "tiny.toml", "--run", "run"];
    given.iter().for_each(|setting| arguments.extend(["--set", setting]));
    succeed(dir.path(), &arguments);
    let log = read(dir.path().join("run/log.txt"));
    let config = read(dir.path().join("run/config.toml"));
    for (key, value) in settings {
        assert!(log.contains(&format!("continued with {key} = {value}, before ")), "{key} is not noted:\n{log}");
        let last = key.rsplit('.').next().unwrap();
        assert!(config.contains(&format!("{last} = {value}")), "{key} is not taken over:\n{config}");
    }
    assert_eq!(numbers(&dir.path().join("run"), "train", "update"), [1.0, 2.0, 3.0]);
}

/// A config with parallel files in `dir`, and the files.
fn with_files(dir: &Path) {
    let text = tiny_text(BAHDANAU);
    let (before, rest) = text.split_once("task =").unwrap();
    let (_, after) = rest.split_once("n_test = 3\n").unwrap();
    let files = |split: &str| format!("{split} = {{ source = \"{split}.src\", target = \"{split}.tgt\" }}\n");
    let data = format!("dir = \"data\"\n{}{}", files("train"), files("valid"));
    fs::write(dir.join("files.toml"), format!("{before}{data}{after}")).unwrap();
    fs::create_dir_all(dir.join("data")).unwrap();
    for (name, sides) in
        [("train", ["a b\nb\nc a\nb b\n", "b a\nb\na c\nb b\n"]), ("valid", ["a c\nb a\n", "c a\na b\n"])]
    {
        for (side, text) in ["src", "tgt"].iter().zip(sides) {
            fs::write(dir.join(format!("data/{name}.{side}")), text).unwrap();
        }
    }
}

#[test]
fn a_run_that_is_named_alone_goes_on_by_its_own_config() {
    let dir = TempDir::new().unwrap();
    write_tiny(dir.path(), BAHDANAU);
    succeed(dir.path(), &["train", "tiny.toml", "--run", "run", "--set", "training.max_updates=1"]);
    let again = finish(dir.path(), &["train", "--run", "run", "--set", "training.max_updates=3"]);
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    assert_says(&again.stderr, &["all updates made: 3 updates"]);
    assert!(!again.stderr.contains("quick start"), "{}", again.stderr);
    let key = fail(dir.path(), &["train", "--run", "run", "--set", "seed=9"]);
    assert_says(&key, &["seed: is 9 here, but the run was begun with "]);
}

#[test]
fn moved_and_renamed_data_is_accepted_and_changed_data_refused() {
    let dir = TempDir::new().unwrap();
    with_files(dir.path());
    let train = |updates: &str, settings: &[&str]| {
        let updates = format!("training.max_updates={updates}");
        let mut arguments = vec!["train", "files.toml", "--run", "run", "--set", &updates];
        settings.iter().for_each(|setting| arguments.extend(["--set", setting]));
        finish(dir.path(), &arguments)
    };
    assert_eq!(train("2", &[]).code, Some(0));
    let at = |name: &str| dir.path().join(name);
    fs::rename(at("data"), at("moved")).unwrap();
    let finished = train("3", &["data.dir=moved"]);
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    assert_says(&read(at("run/log.txt")), &["continued with data.dir = \"moved\", before \"data\""]);
    // Names whose order is that of target and source.
    fs::rename(at("moved/train.src"), at("moved/z")).unwrap();
    fs::rename(at("moved/train.tgt"), at("moved/a")).unwrap();
    let renamed = ["data.dir=moved", "data.train.source=z", "data.train.target=a"];
    let finished = train("4", &renamed);
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);

    let refused = |settings: &[&str], parts: &[&str]| {
        let finished = train("5", settings);
        assert_eq!(finished.code, Some(1), "{}", finished.stderr);
        assert_says(finished.fault(), parts);
    };
    let swapped = ["data.dir=moved", "data.train.source=a", "data.train.target=z"];
    refused(&swapped, &["data.train: is not the data that the run was begun with", "SHA-256"]);
    let turned = [&renamed[..], &["data.train.swap=true"]].concat();
    refused(&turned, &["data.train.swap: is true here, but the run was begun with false"]);
    fs::write(at("moved/valid.tgt"), "c a\na a\n").unwrap();
    refused(&renamed, &["data.valid: is not the data that the run was begun with"]);
    fs::write(at("moved/valid.tgt"), "c a\na b\n").unwrap();
    fs::write(at("moved/z"), "a b\nb\nc a\nb c\n").unwrap();
    refused(&renamed, &["data.train: is not the data"]);
    fs::remove_file(at("moved/z")).unwrap();
    refused(&renamed, &["moved/z: is not there"]);
}

#[test]
fn other_references_for_validation_are_other_data() {
    let dir = TempDir::new().unwrap();
    with_files(dir.path());
    fs::write(dir.path().join("data/more"), "c c\na a\n").unwrap();
    let train = |updates: &str| {
        let updates = format!("training.max_updates={updates}");
        let more = "data.valid.more_targets=[\"more\"]";
        finish(dir.path(), &["train", "files.toml", "--run", "run", "--set", &updates, "--set", more])
    };
    assert_eq!(train("2").code, Some(0));
    assert_eq!(train("3").code, Some(0));
    fs::write(dir.path().join("data/more"), "c c\nb b\n").unwrap();
    let finished = train("4");
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    assert_says(finished.fault(), &["data.valid: is not the data that the run was begun with"]);
}

#[test]
fn files_of_the_same_name_in_two_folders_are_both_checked() {
    let dir = TempDir::new().unwrap();
    with_files(dir.path());
    for (from, to) in [("train.src", "de"), ("train.tgt", "en")] {
        fs::create_dir_all(dir.path().join("data").join(to)).unwrap();
        fs::rename(dir.path().join("data").join(from), dir.path().join("data").join(to).join("train")).unwrap();
    }
    let files = ["--set", "data.train.source=de/train", "--set", "data.train.target=en/train"];
    let arguments = [&["train", "files.toml", "--run", "run", "--set", "training.max_updates=1"][..], &files].concat();
    succeed(dir.path(), &arguments);
    for side in ["de", "en"] {
        let path = dir.path().join("data").join(side).join("train");
        let text = read(&path);
        fs::write(&path, text.replacen('b', "c", 1)).unwrap();
        assert_says(&fail(dir.path(), &arguments), &["data.train: is not the data"]);
        fs::write(&path, text).unwrap();
    }
}

#[test]
fn a_new_run_starts_from_the_parameters_of_another_with_the_same_tokenizer() {
    let dir = TempDir::new().unwrap();
    let at = |name: &str| dir.path().join(name);
    let mut config = tiny(BAHDANAU);
    train_in(&at("first"), &config).unwrap();
    let theirs = load(&at("first/checkpoints").join(named(&at("first"), "best"))).unwrap().model;
    config.seed = 77;
    config.training.max_updates = 1;
    train_from(&at("second"), &config, Some(&at("first"))).unwrap();
    let ours = load(&at("second/checkpoints/000000")).unwrap();
    assert_eq!(ours.model, theirs);
    assert_ne!(load(&at("second/checkpoints/000001")).unwrap().model, theirs);

    // A process that dies before its first checkpoint; going on needs no --init-from.
    write_tiny(dir.path(), BAHDANAU);
    let train =
        |run: &'static str| ["train", "tiny.toml", "--run", run, "--set", "seed=77", "--set", "training.max_updates=1"];
    let from_first = |run| [&train(run)[..], &["--init-from", "first"]].concat();
    // More than the parameters take, less than the optimizer.
    let finished = finish_on_full_disk(dir.path(), 60, &from_first("third"));
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    assert_says(finished.fault(), &["third/checkpoints/.000001.", "optimizer.safetensors: File too large"]);
    copy_folder(&at("third"), &at("fourth"));
    copy_folder(&at("third"), &at("fifth"));
    succeed(dir.path(), &train("third"));
    assert_same_end(&at("second"), &at("third"), "with and without an end before the first checkpoint");
    // Where it began is known for good, which a comparison has to say.
    let environment = Run::open(&at("third")).unwrap().environment().unwrap();
    assert_eq!(environment.init_from.as_deref(), Some("first"));
    // The same command again begins again, as nothing was learnt yet.
    succeed(dir.path(), &from_first("fourth"));
    assert_same_end(&at("second"), &at("fourth"), "with --init-from twice");
    // Killed before the config was there: what lies in `checkpoints` is nobody's.
    fs::remove_file(at("fifth/config.toml")).unwrap();
    succeed(dir.path(), &train("fifth"));
    assert_ne!(
        load(&at("fifth/checkpoints/000001")).unwrap().model,
        load(&at("second/checkpoints/000001")).unwrap().model
    );
    let fresh = succeed(dir.path(), &train("sixth"));
    assert_eq!(fresh.lines().next(), succeed(dir.path(), &train("sixth")).lines().next());
    assert_same_end(&at("sixth"), &at("fifth"), "a new run");
}

#[test]
#[cfg(unix)]
fn data_that_came_through_a_pipe_have_to_be_the_same_again() {
    let dir = TempDir::new().unwrap();
    let text = tiny_text_of(BAHDANAU, "train = { tsv = \"-\" }\nvalid = { tsv = \"valid.tsv\" }");
    fs::write(dir.path().join("files.toml"), text).unwrap();
    fs::write(dir.path().join("valid.tsv"), "a c\tc a\nb a\ta b\n").unwrap();
    let train = |updates: &str, pairs: &str| {
        let script = format!(
            "printf '{pairs}' | \"$0\" train files.toml --run run --dashboard none --set training.max_updates={updates}"
        );
        let mut shell = std::process::Command::new("sh");
        shell.current_dir(dir.path()).args(["-c", &script, env!("CARGO_BIN_EXE_lookback")]);
        Finished::from(shell.output().unwrap())
    };
    let pairs = "a b\\tb a\\nb\\tb\\nc a\\ta c\\n";
    assert_eq!(train("2", pairs).code, Some(0), "{}", train("2", pairs).stderr);
    let other = train("3", "a b\\tb a\\nb\\tb\\nc b\\tb c\\n");
    assert_says(other.fault(), &["data.train: is not the data that the run was begun with"]);
    assert_eq!(train("3", pairs).code, Some(0));
}

#[test]
fn a_source_that_the_model_cannot_read_is_left_out_at_the_end() {
    let dir = TempDir::new().unwrap();
    write_tiny(dir.path(), TRANSFORMER);
    fs::write(dir.path().join("long.tsv"), format!("a b\ta b\n{0}\t{0}\n", ["a"; 30].join(" "))).unwrap();
    let arguments = [
        "train",
        "tiny.toml",
        "--run",
        "run",
        "--set",
        "training.max_updates=1",
        "--set",
        "data.test={ tsv = \"long.tsv\" }",
        "--set",
        "model.positions={ kind = \"learned\", max_len = 12 }",
    ];
    let finished = finish(dir.path(), &arguments);
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    assert_says(&finished.stderr, &["1 of 2 sources are longer than the model reads"]);
    assert_says(&finished.stdout, &["held-out test: ", " of 1 sequences right"]);
}

#[test]
fn init_from_is_refused_for_another_tokenizer_another_model_and_a_run_that_has_begun() {
    let dir = TempDir::new().unwrap();
    write_tiny(dir.path(), BAHDANAU);
    succeed(dir.path(), &["train", "tiny.toml", "--run", "first", "--set", "training.max_updates=2"]);
    let from = |run: &'static str, setting: &'static str| {
        [
            "train",
            "tiny.toml",
            "--run",
            run,
            "--init-from",
            "first",
            "--set",
            "training.max_updates=1",
            "--set",
            setting,
        ]
    };
    for tokenizer in ["tokenizer.kind=char", "tokenizer.lowercase=true"] {
        let message = fail(dir.path(), &from("second", tokenizer));
        assert_says(&message, &["tokenizer: differs from that of first", "only be fine-tuned with its own tokenizer"]);
    }
    let message = fail(dir.path(), &from("second", "model.d_hidden=14"));
    assert_says(
        &message,
        &["model: parameters of first do not fit this model: model.d_hidden is 14 here and 12 there"],
    );
    let message = fail(dir.path(), &["train", "tiny.toml", "--run", "second", "--init-from", "nowhere"]);
    assert_says(&message, &["nowhere: is no folder"]);
    assert!(!dir.path().join("second/config.toml").exists(), "a refused start has not begun");
    let message = fail(dir.path(), &from("first", "seed=5"));
    assert_says(&message, &["first: has begun already; --init-from is for a new run", "--run"]);
    succeed(dir.path(), &from("second", "model.dropout_rate=0.5"));
}

#[test]
fn a_run_on_flex_does_not_look_for_vulkan() {
    let dir = TempDir::new().unwrap();
    write_tiny(dir.path(), BAHDANAU);
    let without_vulkan = |arguments: &[&str]| -> Finished {
        let mut command = lookback(dir.path(), arguments);
        // The loader finds no driver, and would say that somebody has called it.
        for variable in ["VK_DRIVER_FILES", "VK_ICD_FILENAMES"] {
            command.env(variable, "/nonexistent");
        }
        command.env("VK_LOADER_DEBUG", "all").output().unwrap().into()
    };
    fs::write(dir.path().join("in"), "a b\n").unwrap();
    for arguments in [
        &["train", "tiny.toml", "--run", "run", "--set", "training.max_updates=2"][..],
        &["train", "tiny.toml", "--run", "run", "--set", "training.max_updates=3"],
        &["translate", "--run", "run", "--input", "in"],
        &["evaluate", "--run", "run"],
    ] {
        let finished = without_vulkan(arguments);
        assert_eq!(finished.code, Some(0), "{arguments:?}: {}", finished.stderr);
        for trace in ["vulkan", "Vulkan", "ICD", "wgpu"] {
            assert!(!finished.stderr.contains(trace), "{arguments:?} touches Vulkan: {}", finished.stderr);
        }
    }
}
