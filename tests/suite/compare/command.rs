//! The command from end to end on tiny models: what it writes.

use crate::support::shared_dir;
use crate::training::{
    BAHDANAU, Finished, TRANSFORMER, assert_says, fail, lookback, read, succeed, tiny_text, tiny_text_of,
};
use lookback::report::comparison::measures::tables;
use lookback::report::comparison::{ClaimKind, Comparison, Cost};
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;
use tempfile::TempDir;

/// Measurements of time are not repeated here.
const QUICK: [&str; 4] = ["--max-cost-length", "16", "--per-length", "6"];

/// Two configs with a test set large enough for buckets.
pub(super) fn write_configs(dir: &Path) {
    for (name, model) in [("rnn", BAHDANAU), ("transformer", TRANSFORMER)] {
        let text = tiny_text(model).replace("n_test = 3", "n_test = 30");
        std::fs::write(dir.join(format!("{name}.toml")), text).unwrap();
    }
}

pub(super) fn arguments<'a>(more: &[&'a str]) -> Vec<&'a str> {
    ["compare", "rnn.toml", "transformer.toml"].into_iter().chain(QUICK).chain(more.iter().copied()).collect()
}

/// A finished comparison in `out`, made once; tests must not write into it.
pub(super) static COMPARED: LazyLock<TempDir> = LazyLock::new(|| {
    let dir = shared_dir();
    write_configs(dir.path());
    succeed(dir.path(), &arguments(&["--out", "out"]));
    dir
});

pub(super) fn results(path: &Path) -> Comparison {
    serde_json::from_str(&read(path.join("results.json"))).unwrap()
}

#[test]
fn two_configs_are_trained_measured_and_reported() {
    let dir = COMPARED.path();
    let found = results(&dir.join("out"));
    let names: Vec<&str> = found.contestants.iter().map(|contestant| contestant.name.as_str()).collect();
    assert_eq!(names, ["rnn", "transformer"]);
    assert_eq!((found.task.name.as_str(), found.task.trained_length, found.task.test_sentences), ("copy", 5, 30));
    // The whole, buckets, and 1, 1.5, 2 and 4 times the longest of training.
    let ids: Vec<&str> = found.groups.iter().map(|group| group.id.as_str()).collect();
    assert!(ids.starts_with(&["all"]) && ids.ends_with(&["length-5", "length-8", "length-10", "length-20"]), "{ids:?}");
    assert!(found.groups.iter().all(|group| group.is_seen == (group.from <= 5)));
    assert_eq!(found.quality.len(), 2 * found.groups.len());
    // The two models in every group, and each with itself at the shortest and longest of training, by every score.
    let of = |kind: ClaimKind| found.claims.iter().filter(|claim| claim.kind == kind).count();
    let [models, lengths] = [ClaimKind::Models, ClaimKind::Length].map(of);
    assert_eq!((models, lengths), (found.groups.len() * found.metrics.len(), 2 * found.metrics.len()));
    // Each model beside a level at every length, and at the ends of its sentences.
    assert_eq!((of(ClaimKind::Level), of(ClaimKind::Position)), (2 * (found.groups.len() - 1), 0), "all are short");
    assert!(found.claims.iter().all(|claim| claim.is_of_runs() && !claim.family.is_empty()), "one seed each");
    assert_eq!(found.costs.len(), 4, "two models, an update and a sentence of 16 tokens");
    assert!(found.costs.iter().all(|cost| cost.seconds.is_some_and(|seconds| seconds > 0.0)), "{:?}", found.costs);
    for cost in &found.costs {
        assert!((3..=9).contains(&cost.visits), "{cost:?}");
        let ([low, high], seconds) = (cost.interval.unwrap(), cost.seconds.unwrap());
        assert!(low <= seconds && seconds <= high, "{cost:?}");
        assert!(cost.visits == 9 || high / seconds < 1.051, "visited until it is narrow: {cost:?}");
    }
    if cfg!(target_os = "linux") {
        assert!(found.costs.iter().all(|cost| cost.peak_bytes >= cost.base_bytes && cost.base_bytes.is_some()));
    }
    assert!(found.faults.iter().all(|row| row.omission.is_some()), "both have attention");
    assert!(!found.alignments.is_empty() && found.alignments.iter().all(|sentence| sentence.maps.len() == 2));
    let different: Vec<&str> = found.differences.iter().map(|difference| difference.what.as_str()).collect();
    assert!(different.contains(&"parameters"), "{different:?}");
    assert!(found.same.iter().any(|same| same.what == "order of the batches"), "{:?}", found.differences);
    // The tables say what the data say.
    for table in tables(&found) {
        assert_eq!(read(dir.join(format!("out/report/tables/{}.csv", table.id))), table.csv());
    }
    assert!(dir.join("out/report/index.html").is_file());
}

#[test]
fn finished_runs_are_compared_and_seeds_of_one_experiment_are_one_model() {
    let dir = TempDir::new().unwrap();
    write_configs(dir.path());
    for seed in ["5", "6"] {
        let setting = format!("seed={seed}");
        let run = format!("rnn-{seed}");
        succeed(dir.path(), &["train", "rnn.toml", "--run", &run, "--set", &setting, "--dashboard", "none"]);
    }
    succeed(dir.path(), &["train", "transformer.toml", "--run", "t", "--dashboard", "none"]);
    let runs = ["compare", "--run", "rnn-5", "--run", "rnn-6", "--run", "t", "--max-cost-length", "0", "--out", "out"];
    succeed(dir.path(), &runs);
    let found = results(&dir.path().join("out"));
    assert_eq!(found.contestants.len(), 2);
    assert_eq!(found.contestants[0].seeds, [5, 6]);
    assert!(found.quality[0].scores[0].seed_deviation.is_some());
    assert!(found.costs.is_empty());

    assert_says(&fail(dir.path(), &["compare", "--run", "t", "--run", "t"]), &["t: is given twice"]);
    succeed(dir.path(), &["compare", "--run", "rnn-5", "--max-cost-length", "0", "--out", "alone"]);
    let alone = results(&dir.path().join("alone"));
    assert_eq!(alone.contestants.len(), 1, "one model has a report too");
    assert!(alone.claims.iter().all(|claim| claim.kind != ClaimKind::Models), "{:?}", alone.claims);
    assert_eq!(alone.quality[0].scores[0].score, found.quality[0].scores[0].by_seed[0]);
    assert_says(&fail(dir.path(), &["compare", "--run", "t", "--run", "nowhere"]), &["nowhere: is no folder"]);
    crate::training::copy_folder(&dir.path().join("t"), &dir.path().join("copy"));
    let twins = fail(dir.path(), &["compare", "--run", "t", "--run", "copy"]);
    assert_says(&twins, &["copy: is the same experiment with the same seed as t"]);
}

#[test]
fn text_is_scored_as_its_configs_say_and_cut_where_training_ends() {
    let dir = TempDir::new().unwrap();
    succeed(dir.path(), &["data", "generate", "numbers", "--out", "n", "--pairs", "400", "--max-len", "5"]);
    let files = ["train", "valid", "test"].map(|split| format!("{split} = {{ tsv = \"n/{split}.tsv\" }}\n")).concat();
    for (name, model) in [("rnn", BAHDANAU), ("transformer", TRANSFORMER)] {
        let text = tiny_text(model);
        let (start, rest) = text.split_once("[data]").unwrap();
        let rest = &rest[rest.find("[tokenizer]").unwrap()..];
        let text = format!(
            "{start}[data]\n{files}filter = {{ max_len = 12 }}\n{}",
            rest.replace("batch_tokens = 40", "batch_tokens = 400")
        );
        std::fs::write(dir.path().join(format!("{name}.toml")), text).unwrap();
    }
    let both = ["compare", "rnn.toml", "transformer.toml", "--max-cost-length", "0", "--out", "out"];
    succeed(dir.path(), &[&both[..], &["--set", "training.score=wer"]].concat());
    let found = results(&dir.path().join("out"));
    assert_eq!(found.metrics, ["wer", "sequence_accuracy", "token_accuracy"]);
    assert!(found.same.iter().any(|same| same.what == "score in training" && same.value == "wer"), "{:?}", found.same);
    let trained = found.task.trained_length;
    assert!(trained > 5 && trained <= 12, "{trained}");
    let buckets = found.groups.iter().filter(|group| group.id != "all");
    assert!(buckets.clone().all(|group| group.to <= trained || group.from > trained), "a limit where training ends");
    assert!(buckets.clone().any(|group| !group.is_seen));
    assert!(found.positions.iter().all(|row| row.of == "target") && !found.positions.is_empty());
    assert!(found.thresholds.is_empty() && found.costs.is_empty());
    let message = fail(dir.path(), &["compare", "rnn.toml", "transformer.toml", "--lengths", "5"]);
    assert_says(&message, &["--lengths is for generated tasks"]);
}

#[test]
fn settings_sweeps_tuning_and_equal_parameters_reach_the_runs() {
    let dir = TempDir::new().unwrap();
    write_configs(dir.path());
    let all = [
        "compare",
        "transformer.toml",
        "rnn.toml",
        "--sweep",
        "training.label_smoothing=0.0,0.1",
        "--set",
        "training.validate_every=2",
        "--tune",
        "2",
        "--match-parameters",
        "--budget",
        "updates=4",
        "--max-cost-length",
        "0",
        "--per-length",
        "2",
        "--out",
        "out",
    ];
    succeed(dir.path(), &all);
    let found = results(&dir.path().join("out"));
    assert_eq!(found.contestants.len(), 4);
    assert_eq!(found.contestants[1].name, "transformer label_smoothing=0.1");
    let parameters: Vec<f64> = found.contestants.iter().map(|c| c.parameters as f64).collect();
    assert!(parameters.iter().all(|n| (n / parameters[0] - 1.0).abs() <= 0.05), "{parameters:?}");
    assert_eq!(found.trials.len(), 8);
    assert!(found.contestants.iter().all(|c| c.updates == [4]));
    for contestant in &found.contestants {
        let own: Vec<_> = found.trials.iter().filter(|trial| trial.contestant == contestant.name).collect();
        let chosen: Vec<_> = own.iter().filter(|trial| trial.is_chosen).collect();
        assert_eq!((own.len(), chosen.len()), (2, 1));
        assert_eq!(own[0].learning_rate, 0.01, "the config's own comes first");
        assert!(own.iter().all(|trial| (trial.updates, trial.run_updates) == (4, Some(4))));
        assert_eq!(chosen[0].learning_rate, contestant.learning_rate);
        assert!(own.iter().all(|trial| chosen[0].valid_loss <= trial.valid_loss));
    }
}

#[test]
fn trials_that_end_before_their_first_validation_are_told_apart_all_the_same() {
    let dir = TempDir::new().unwrap();
    write_configs(dir.path());
    let never = ["--budget", "minutes=0.01", "--set", "training.validate_every=10000000"];
    let rest = ["--tune", "2", "--max-cost-length", "0", "--per-length", "2", "--out", "out"];
    let all: Vec<&str> = ["compare", "rnn.toml", "transformer.toml"].into_iter().chain(never).chain(rest).collect();
    succeed(dir.path(), &all);
    let found = results(&dir.path().join("out"));
    assert!(found.curves.iter().all(|curve| curve.valid.is_empty()));
    assert_eq!(found.trials.len(), 4);
    for contestant in &found.contestants {
        let own = || found.trials.iter().filter(|trial| trial.contestant == contestant.name);
        let chosen = own().find(|trial| trial.is_chosen).unwrap();
        assert!(own().all(|trial| trial.updates < 100_000), "made, not planned");
        assert!(own().all(|trial| trial.valid_loss < 100.0 && chosen.valid_loss <= trial.valid_loss));
    }
}

#[test]
fn the_built_in_comparison_is_made_without_a_file() {
    let dir = TempDir::new().unwrap();
    let quick = [
        "compare",
        "--budget",
        "updates=2",
        "--max-cost-length",
        "0",
        "--per-length",
        "2",
        "--set",
        "data.n_train=60",
        "--set",
        "data.n_test=10",
        "--set",
        "data.n_valid=5",
    ];
    let stdout = succeed(dir.path(), &quick);
    assert_says(
        &stdout,
        &["fixed-context", "attention", "transformer", "the report is runs/compare/report/index.html"],
    );
    let found = results(&dir.path().join("runs/compare"));
    let parameters: Vec<usize> = found.contestants.iter().map(|c| c.parameters).collect();
    let (least, most) = (parameters.iter().min().unwrap(), parameters.iter().max().unwrap());
    assert!(*most as f64 <= 1.05 * *least as f64, "{parameters:?}");
}

#[test]
fn models_of_one_config_are_called_after_what_differs() {
    let dir = TempDir::new().unwrap();
    write_configs(dir.path());
    let rest = ["--budget", "updates=2", "--max-cost-length", "0", "--per-length", "2", "--out", "out"];
    let sweep = ["compare", "rnn.toml", "--sweep", "training.label_smoothing=0.0,0.1"];
    succeed(dir.path(), &[&sweep[..], &rest[..]].concat());
    let names: Vec<String> = results(&dir.path().join("out")).contestants.into_iter().map(|c| c.name).collect();
    assert_eq!(names, ["label_smoothing=0.0", "label_smoothing=0.1"]);
}

#[test]
fn lengths_beyond_a_models_positions_are_not_timed_and_the_report_says_why() {
    let dir = TempDir::new().unwrap();
    write_configs(dir.path());
    let set = "model.positions={ kind = \"learned\", max_len = 40 }";
    let rest =
        ["--budget", "updates=2", "--max-cost-length", "64", "--per-length", "2", "--lengths", "4", "--out", "out"];
    succeed(dir.path(), &[&["compare", "transformer.toml", "--set", set][..], &rest].concat());
    let found = results(&dir.path().join("out"));
    let of_updates: Vec<_> = found.costs[..3].iter().map(|cost| (cost.length, cost.unfinished.as_deref())).collect();
    let why = "64 tokens and an end symbol are more than model.positions.max_len = 40";
    assert_eq!(of_updates, [(16, None), (32, None), (64, Some(why))]);
}

#[test]
#[cfg(unix)]
fn a_folder_whose_name_is_no_unicode_is_a_folder() {
    use std::os::unix::ffi::OsStrExt;
    let dir = TempDir::new().unwrap();
    write_configs(dir.path());
    let out = dir.path().join(std::ffi::OsStr::from_bytes(b"o\xff"));
    let mut command = lookback(dir.path(), &arguments(&["--budget", "updates=1", "--out"]));
    let finished = Finished::from(command.arg(&out).output().unwrap());
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    assert!(out.join("results.json").is_file());
}

#[test]
fn models_that_differ_only_in_their_training_are_timed_once() {
    let dir = TempDir::new().unwrap();
    write_configs(dir.path());
    let sweep =
        ["compare", "rnn.toml", "--sweep", "training.learning_rate=0.01,0.02", "--sweep", "model.d_hidden=8,12"];
    let rest = ["--budget", "updates=2", "--max-cost-length", "16", "--per-length", "2", "--out", "out"];
    succeed(dir.path(), &[&sweep[..], &rest[..]].concat());
    let found = results(&dir.path().join("out"));
    let same: Vec<Option<&str>> = found.costs.iter().map(|cost| cost.same_as.as_deref()).collect();
    let [first, second] = [0, 1].map(|i| Some(found.contestants[i].name.as_str()));
    assert_eq!(same, [None, None, None, None, first, first, second, second]);
    for (measured, shared) in found.costs[..4].iter().zip(&found.costs[4..]) {
        let unnamed = |cost: &Cost| Cost { contestant: String::new(), same_as: None, ..cost.clone() };
        assert_eq!(unnamed(measured), unnamed(shared));
    }
    assert!(found.notes.iter().any(|note| note.contains("measured once for each")), "{:?}", found.notes);
    let measured = std::fs::read_dir(dir.path().join("out/measurements")).unwrap();
    let names = measured.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    assert_eq!(names.filter(|name| name.ends_with(".update-16.1.json")).count(), 2);
}

/// Costs are kept for the program that measured them: with a byte more at its end it is another one.
#[cfg(target_os = "linux")]
#[test]
fn another_build_of_the_program_measures_costs_anew() {
    let dir = TempDir::new().unwrap();
    crate::training::copy_folder(COMPARED.path(), dir.path());
    let program = dir.path().join("rebuilt");
    std::fs::copy(env!("CARGO_BIN_EXE_lookback"), &program).unwrap();
    let mut file = std::fs::OpenOptions::new().append(true).open(&program).unwrap();
    std::io::Write::write_all(&mut file, b"\0").unwrap();
    drop(file);
    let place = |name: &str| dir.path().join("out/measurements").join(name);
    let (cost, answers) = (place("rnn.update-16.1.json"), place("rnn-seed5.translations.json"));
    let before = [&cost, &answers].map(read);
    let output = Command::new(&program).args(arguments(&["--out", "out"])).current_dir(dir.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let after = [&cost, &answers].map(read);
    assert_ne!(before[0], after[0], "the cost of another build");
    assert_eq!(before[1], after[1], "what a model writes depends on its parameters");
}

#[test]
fn a_model_that_starts_from_another_run_is_told_apart_from_one_that_does_not() {
    let dir = TempDir::new().unwrap();
    write_configs(dir.path());
    let train = ["train", "rnn.toml", "--dashboard", "none"];
    succeed(dir.path(), &[&train[..], &["--run", "first"]].concat());
    let on = ["--run", "second", "--init-from", "first", "--set", "training.learning_rate=0.02"];
    succeed(dir.path(), &[&train[..], &on].concat());
    let more = ["--run", "third", "--init-from", "first", "--set", "seed=6"];
    succeed(dir.path(), &[&train[..], &more].concat());
    let rest = ["--max-cost-length", "0", "--per-length", "2"];
    succeed(dir.path(), &[&["compare", "--run", "first", "--run", "second", "--out", "out"][..], &rest].concat());
    let found = results(&dir.path().join("out"));
    let start = found.differences.iter().find(|difference| difference.what == "start of training").unwrap();
    assert_eq!(start.values[0], "random parameters");
    assert!(start.values[1].starts_with("parameters of ") && start.values[1].contains("first"), "{start:?}");
    // Two seeds of one experiment, of which the second did not start at random.
    succeed(dir.path(), &[&["compare", "--run", "first", "--run", "third", "--out", "seeds"][..], &rest].concat());
    let found = results(&dir.path().join("seeds"));
    assert_eq!(found.contestants.len(), 1);
    let start = found.same.iter().find(|same| same.what == "start of training").unwrap();
    assert!(start.value.starts_with("random parameters, parameters of "), "{start:?}");
}

#[test]
fn what_is_called_never_seen_was_seen_by_no_contestant() {
    let dir = TempDir::new().unwrap();
    succeed(dir.path(), &["data", "generate", "copy", "--out", "c", "--pairs", "300", "--max-len", "9"]);
    for (name, longest) in [("short", 4), ("long", 8)] {
        let files =
            ["train", "valid", "test"].map(|split| format!("{split} = {{ tsv = \"c/{split}.tsv\" }}\n")).concat();
        let text = tiny_text(TRANSFORMER);
        let (start, rest) = text.split_once("[data]").unwrap();
        let rest = rest[rest.find("[tokenizer]").unwrap()..].replace("batch_tokens = 40", "batch_tokens = 400");
        let text = format!("{start}[data]\n{files}filter = {{ max_len = {longest} }}\n{rest}");
        std::fs::write(dir.path().join(format!("{name}.toml")), text).unwrap();
    }
    let rest = ["--budget", "updates=2", "--max-cost-length", "0"];
    for (order, out) in [(["short.toml", "long.toml"], "one"), (["long.toml", "short.toml"], "other")] {
        succeed(dir.path(), &[&["compare"][..], &order, &rest, &["--out", out]].concat());
        let found = results(&dir.path().join(out));
        assert_eq!(found.task.trained_length, 8, "{order:?}");
        assert!(found.groups.iter().all(|group| group.id == "all" || group.is_seen == (group.from <= 8)));
        assert!(found.groups.iter().any(|group| !group.is_seen), "nine letters were seen by none");
    }
}

#[test]
fn what_is_not_alike_is_told() {
    let dir = TempDir::new().unwrap();
    let lines = |n: usize, words: usize| -> String {
        (0..n).map(|i| format!("{}\tB {}\n", "a ".repeat(1 + i % words).trim(), i % words)).collect()
    };
    for (name, n, words) in [("short.tsv", 12, 3), ("long.tsv", 12, 6), ("valid.tsv", 6, 3), ("test.tsv", 8, 4)] {
        std::fs::write(dir.path().join(name), lines(n, words)).unwrap();
    }
    for (name, train, n_valid, lowercase) in [("one", "short.tsv", 2, true), ("other", "long.tsv", 6, false)] {
        let data = |file: &str| format!("{{ tsv = \"{file}\" }}");
        let keys = format!("train = {}\nvalid = {}\ntest = {}", data(train), data("valid.tsv"), data("test.tsv"));
        let text = tiny_text_of(TRANSFORMER, &keys);
        let text: String =
            text.lines().filter(|line| !line.starts_with("n_")).map(|line| format!("{line}\n")).collect();
        let text = text.replace("shared = true", &format!("lowercase = {lowercase}"));
        let text = text.replace("sample_size = 3", &format!("sample_size = {n_valid}"));
        std::fs::write(dir.path().join(format!("{name}.toml")), text).unwrap();
    }
    let quick = ["compare", "one.toml", "other.toml", "--max-cost-length", "0", "--out", "out"];
    succeed(dir.path(), &quick);
    let found = results(&dir.path().join("out"));
    let notes = found.notes.join("\n");
    assert_says(
        &notes,
        &[
            "The longest source that a model has learnt from has 3 to 6 words: a length counts as seen",
            "All answers and references are scored in lower case, which is all that one can write.",
        ],
    );
    let different: Vec<&str> = found.differences.iter().map(|difference| difference.what.as_str()).collect();
    assert!(different.contains(&"validation data") && different.contains(&"training data"), "{different:?}");
}

#[test]
fn a_run_that_was_trained_on_since_is_reported_as_it_is_now() {
    let dir = TempDir::new().unwrap();
    crate::training::copy_folder(COMPARED.path(), dir.path());
    let before = results(&dir.path().join("out")).contestants[0].updates.clone();
    let more = format!("training.max_updates={}", 2 * before[0]);
    succeed(dir.path(), &["train", "--run", "out/runs/rnn-seed5", "--set", &more, "--dashboard", "none"]);
    succeed(dir.path(), &["compare", "--run", "out/runs/rnn-seed5", "--max-cost-length", "0", "--out", "again"]);
    let after = results(&dir.path().join("again")).contestants[0].updates.clone();
    assert_eq!(after, [2 * before[0]]);
}
