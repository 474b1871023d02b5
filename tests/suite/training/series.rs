//! Models that answer with numbers: learnt, predicted, measured, resumed, exported, and refused with the place of the fault.

use super::{
    assert_same_end, assert_says, checkpoints, copy_folder, fail, finish, metrics, named, read, succeed, train_in,
};
use crate::support::{assert_close, shared_dir};
use lookback::experiment::Config;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;
use tempfile::TempDir;

pub(super) const FORECAST: &str = r#"
seed = 3
backend = "flex"
[data]
task = { kind = "next-value", min_len = 6, max_len = 14 }
n_train = 4000
n_valid = 50
n_test = 300
[tokenizer]
kind = "numbers"
[model]
kind = "encoder-only"
output = "values"
is_causal = true
d_model = 24
d_feed_forward = 32
n_heads = 2
n_layers = 1
mixer = { kind = "gru" }
positions = { kind = "none" }
dropout_rate = 0.0
[training]
max_updates = 500
batch_tokens = 600
learning_rate = 0.01
warmup_updates = 20
schedule = "cosine"
validate_every = 250
save_every = 250
sample_size = 4
"#;

fn arguments<'a>(run: &'a str, settings: &[&'a str]) -> Vec<&'a str> {
    let settings = settings.iter().flat_map(|setting| ["--set", setting]);
    ["train", "forecast.toml", "--run", run].into_iter().chain(settings).collect()
}

fn train(dir: &Path, run: &str, settings: &[&str]) -> String {
    fs::write(dir.join("forecast.toml"), FORECAST).unwrap();
    succeed(dir, &arguments(run, settings))
}

/// A causal model in `run`; tests must not write into its folder.
static FORECASTER: LazyLock<(TempDir, String)> = LazyLock::new(|| {
    let dir = shared_dir();
    let shown = train(dir.path(), "run", &[]);
    (dir, shown)
});

fn json(dir: &Path, arguments: &[&str]) -> Value {
    serde_json::from_str(&succeed(dir, arguments)).unwrap()
}

fn number(json: &Value, pointer: &str) -> f64 {
    json.pointer(pointer).and_then(Value::as_f64).unwrap_or_else(|| panic!("no {pointer} in {json}"))
}

fn numbers(line: &str) -> Vec<f64> {
    line.split_whitespace().map(|number| number.parse().unwrap()).collect()
}

/// Sources and targets of the test data of [`FORECAST`].
fn test_data() -> Vec<(Vec<f64>, Vec<f64>)> {
    let config: Config = toml::from_str(FORECAST).unwrap();
    let pairs =
        config.data.task.unwrap().generate(lookback::data::Split::Test, config.data.n_test, config.seed).unwrap();
    pairs.into_iter().map(|pair| (numbers(&pair.source), numbers(&pair.target))).collect()
}

/// The mean squared and mean absolute error of a forecast of the test data.
fn errors_of(forecast: impl Fn(usize, &[f64], usize) -> f64) -> [f64; 2] {
    let data = test_data();
    let forecast = &forecast;
    let all = data
        .iter()
        .enumerate()
        .flat_map(|(i, (source, target))| (0..source.len()).map(move |t| forecast(i, source, t) - target[t]));
    let all: Vec<f64> = all.collect();
    let mean = |of: fn(f64) -> f64| all.iter().map(|error| of(*error)).sum::<f64>() / all.len() as f64;
    [mean(|error| error * error), mean(f64::abs)]
}

/// The best forecast that there is, from the page of the task.
fn best(_: usize, source: &[f64], t: usize) -> f64 {
    if t == 0 { 15.0 / 19.0 * source[0] } else { 1.5 * source[t] - 0.9 * source[t - 1] }
}

#[test]
fn a_causal_model_comes_near_the_best_forecast_and_one_that_looks_ahead_passes_it() {
    let [best, _] = errors_of(best);
    let causal = json(FORECASTER.0.path(), &["evaluate", "--run", "run", "--json"]);
    let mse = number(&causal, "/mse");
    assert!(mse < 1.1 * best, "causal: {mse}, the best forecast has {best}");
    // No causal model is better; by chance it may be a little on 3000 steps.
    assert!(mse > 0.95 * best, "causal: {mse}, the best forecast has {best}");
    let last = number(&causal, "/baselines/last_value/mse");
    assert!(mse < 0.35 * last, "causal: {mse}, repeating the last value has {last}");
    let dir = TempDir::new().unwrap();
    train(dir.path(), "run", &["model.is_causal=false"]);
    let both = number(&json(dir.path(), &["evaluate", "--run", "run", "--json"]), "/mse");
    // All that it cannot read off its source is what follows the last step: of ten steps one, with an error of 1 or a little more.
    assert!(both < 0.2 * best, "bidirectional: {both}, the best forecast has {best}");
}

#[test]
fn what_training_shows_and_writes_down_is_about_numbers() {
    let (dir, shown) = &*FORECASTER;
    assert_says(
        shown,
        &[
            "held-out test: MSE ",
            "repeating the value last seen has ",
            "  source ",
            "  model ",
            "lookback predict --run run",
        ],
    );
    let lines = metrics(&dir.path().join("run"));
    for line in &lines {
        for key in ["loss", "mse", "mae", "tokens"] {
            assert!(line[key].is_number(), "{key} is missing: {line}");
        }
        for key in ["perplexity", "token_accuracy", "smoothed_loss", "score"] {
            assert!(line.get(key).is_none(), "{key} means nothing: {line}");
        }
    }
    let last = lines.last().unwrap();
    assert_eq!(last["split"], "valid");
    // The loss is of numbers that are divided by their deviation, the error of those of the data.
    let target = json_of(&dir.path().join("run/tokenizer.json"));
    let deviation = number(&target, "/target/deviation/0");
    assert_close("mse", &[number(last, "/mse")], &[number(last, "/loss") * deviation * deviation], 1e-9);
    let scores =
        json(dir.path(), &["evaluate", "--run", "run", "--split", "valid", "--checkpoint", "000500", "--json"]);
    assert_close(
        "valid",
        &[number(&scores, "/mse"), number(&scores, "/mae")],
        &[number(last, "/mse"), number(last, "/mae")],
        1e-6,
    );
    let sample = read(dir.path().join("run/samples/000500.txt"));
    assert_eq!((sample.matches("source  ").count(), sample.matches("model  ").count()), (4, 4), "{sample}");
    let shown = finish(dir.path(), &["config", "check", "forecast.toml", "--data"]).stdout;
    assert_says(&shown, &["every key and value is right", "training    4000 pairs"]);
}

fn json_of(path: &Path) -> Value {
    serde_json::from_str(&read(path)).unwrap()
}

#[test]
fn evaluate_has_the_errors_of_what_it_writes_and_of_forecasts_without_a_model() {
    let dir = FORECASTER.0.path();
    let out = TempDir::new().unwrap();
    let path = out.path().join("out.txt");
    let scores = json(dir, &["evaluate", "--run", "run", "--json", "--output", path.to_str().unwrap()]);
    let text = read(&path);
    let written: Vec<Vec<f64>> = text.lines().map(numbers).collect();
    let check = |place: &str, expected: [f64; 2], tolerance: f64| {
        let found = ["mse", "mae"].map(|key| number(&scores, &format!("{place}/{key}")));
        assert_close(place, &found, &expected, tolerance);
        assert_close(place, &[number(&scores, &format!("{place}/rmse"))], &[found[0].sqrt()], 1e-12);
    };
    // Line for line beside the data, of which some may be blank.
    let blank = out.path().join("blank.tsv");
    std::fs::write(&blank, "1 2 3\t2 3 4\n\t\n2 3\t3 4\n").unwrap();
    let beside = out.path().join("beside.txt");
    let setting = format!("data.test={{ tsv = {blank:?} }}");
    let arguments = ["evaluate", "--run", "run", "--set", &setting, "--output", beside.to_str().unwrap()];
    succeed(dir, &arguments);
    let lines: Vec<usize> = read(&beside).lines().map(|line| line.split_whitespace().count()).collect();
    assert_eq!(lines, [3, 0, 2]);
    // What is written has six digits behind the point.
    check("", errors_of(|i, _, t| written[i][t]), 1e-5);
    check("/by_channel/0", errors_of(|i, _, t| written[i][t]), 1e-5);
    check("/baselines/last_value", errors_of(|_, source, t| source[t]), 1e-9);
    let mean = number(&json_of(&dir.join("run/tokenizer.json")), "/target/mean/0");
    check("/baselines/training_mean", errors_of(|_, _, _| mean), 1e-9);
    let steps: usize = test_data().iter().map(|(source, _)| source.len()).sum();
    assert_eq!((number(&scores, "/steps"), number(&scores, "/sequences")), (steps as f64, 300.0));
    let places = scores["by_position"].as_array().unwrap();
    assert_eq!(places.iter().map(|place| number(place, "/steps")).sum::<f64>(), steps as f64);
    let ranges: Vec<_> = places.iter().map(|place| (number(place, "/from"), number(place, "/to"))).collect();
    assert_eq!(ranges, [(1.0, 1.0), (2.0, 2.0), (3.0, 4.0), (5.0, 8.0), (9.0, 14.0)]);
    assert!(number(&places[0], "/mse") > 2.0 * number(&places[3], "/mse"), "one value says less than two: {scores}");
    let table = succeed(dir, &["evaluate", "--run", "run"]);
    assert_says(&table, &["the value last seen", "the mean of training", "root MSE", "5-8"]);
}

#[test]
fn predict_writes_numbers_for_numbers_wherever_the_run_is() {
    let dir = FORECASTER.0.path();
    let out = TempDir::new().unwrap();
    fs::write(out.path().join("in.txt"), "1.5 2.5 -3\n\n 0.25\n1.5 2.5 -3 9\n").unwrap();
    let input = out.path().join("in.txt");
    let predict = ["predict", "--run", "run", "--input", input.to_str().unwrap()];
    let text = succeed(dir, &predict);
    let lines: Vec<Vec<f64>> = text.lines().map(numbers).collect();
    assert_eq!(lines.iter().map(Vec::len).collect::<Vec<_>>(), [3, 0, 1, 4]);
    assert_close("what comes later does not matter", &lines[3][..3], &lines[0], 1e-5);
    let objects = succeed(dir, &[&predict[..], &["--json"]].concat());
    let objects: Vec<Value> = objects.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(objects[0]["source"], "1.5 2.5 -3");
    let values: Vec<f64> = (0..3).map(|t| number(&objects[0], &format!("/values/{t}/0"))).collect();
    assert_eq!(values, lines[0]);
    assert_eq!(objects[1]["values"], serde_json::json!([]));
    // An exported model is another folder with the same answers.
    let folder = out.path().join("small");
    succeed(dir, &["export", "run", "--run", "run", "--out", folder.to_str().unwrap()]);
    let card = read(folder.join("README.md"));
    assert_says(&card, &["lookback predict --run . 'NUMBERS'", "validation errors", "MSE"]);
    let is_generated = card.contains("[data.task]");
    assert_eq!(card.contains("n_train = "), is_generated, "how much is generated says nothing of files: {card}");
    let predict = ["predict", "--run", ".", "--input", input.to_str().unwrap()];
    assert_eq!(succeed(&folder, &predict), text);
    let int8 = out.path().join("int8");
    succeed(dir, &["export", "run", "--run", "run", "--int8", "--out", int8.to_str().unwrap()]);
    let rounded: Vec<Vec<f64>> = succeed(&int8, &predict).lines().map(numbers).collect();
    assert_close("in 8 bits", &rounded[3], &lines[3], 0.05);
}

/// Two channels in, three out, of which one never changes; `lines` are sources.
fn write_files(dir: &Path, name: &str, n: usize) {
    let line = |i: usize| {
        let x = |t: usize| (100.0 + 10.0 * (1.3 * (i + t) as f64).sin(), (0.7 * (i * t) as f64).cos());
        let source: Vec<String> = (0..3 + i % 3).map(|t| format!("{},{}", x(t).0, x(t).1)).collect();
        let target: Vec<String> = (0..3 + i % 3).map(|t| format!("{},7,{}", x(t).1, 1000.0 * x(t).0)).collect();
        format!("{}\t{}\n", source.join(" "), target.join(" "))
    };
    fs::write(dir.join(name), (0..n).map(line).collect::<String>()).unwrap();
}

const FILES: &str =
    r#"data={ train = { tsv = "train.tsv" }, valid = { tsv = "valid.tsv" }, test = { tsv = "valid.tsv" } }"#;

#[test]
fn channels_of_files_have_their_own_units() {
    let dir = TempDir::new().unwrap();
    let dir = dir.path();
    write_files(dir, "train.tsv", 300);
    write_files(dir, "valid.tsv", 40);
    let shown = train(dir, "run", &[FILES, "training.max_updates=400"]);
    assert_says(&shown, &["validation: MSE"]);
    let scores = json(dir, &["evaluate", "--run", "run", "--json"]);
    assert!(scores["baselines"]["last_value"].is_null(), "two channels are not three: {scores}");
    // The target is a copy: every channel is learnt, whatever its unit.
    for (channel, deviation) in [(0, 0.7), (2, 7000.0)] {
        let rmse = number(&scores, &format!("/by_channel/{channel}/rmse"));
        assert!(rmse < 0.3 * deviation, "channel {channel}: {rmse}, its deviation is {deviation}");
    }
    let constant = number(&scores, "/by_channel/1/rmse");
    assert!(constant < 0.7, "what never changes: {constant}");
    fs::write(dir.join("in.txt"), "105,0.5 95,-0.5\n").unwrap();
    let found = succeed(dir, &["predict", "--run", "run", "--input", "in.txt"]);
    assert_eq!(found.split_whitespace().map(|step| step.split(',').count()).collect::<Vec<_>>(), [3, 3], "{found}");
}

#[test]
fn a_fault_of_the_data_has_its_file_line_and_step() {
    let dir = TempDir::new().unwrap();
    let dir = dir.path();
    fs::write(dir.join("forecast.toml"), FORECAST).unwrap();
    let good = "1 2 3\t2 3 4\n";
    let fault = |line: &str| {
        fs::write(dir.join("train.tsv"), format!("{good}\n{good}{line}\n")).unwrap();
        fs::write(dir.join("valid.tsv"), good).unwrap();
        fail(dir, &arguments("run", &[FILES]))
    };
    assert_says(&fault("1 x\t2 3"), &["train.tsv:4: source, step 2: \"x\" is not a number"]);
    assert_says(&fault("1 2\t2 nan"), &["train.tsv:4: target, step 2: \"nan\" is not finite"]);
    assert_says(&fault("1 2 3\t2 3"), &["train.tsv:4: the source has 3 steps and the target 2"]);
    assert_says(&fault("1 2,3\t2 3"), &["train.tsv:4: source, step 2 has 2 channels where 1 channel is expected"]);
    assert_says(&fault("1,1 2,1\t2 3"), &["train.tsv:4: source, step 1 has 2 channels"]);
    assert_says(&fault("1e200 -1e200\t2 3"), &["channel 1 are too large to be scaled"]);
    fs::write(dir.join("train.tsv"), good.repeat(3)).unwrap();
    fs::write(dir.join("valid.tsv"), format!("{good}{good}1 2\t3 1e200\n")).unwrap();
    assert_says(
        &fail(dir, &arguments("run", &[FILES])),
        &["valid.tsv:3: target, step 2 is too far from all training data"],
    );
    assert_says(
        &fail(dir, &["config", "check", "forecast.toml", "--data", "--set", FILES]),
        &["valid.tsv:3: target, step 2"],
    );
    // Two files: the fault is in one of them.
    for (name, text) in [("a.src", "1 2\n3 4\n"), ("a.tgt", "2 3\n4 b\n")] {
        fs::write(dir.join(name), text).unwrap();
    }
    let files = r#"data={ train = { source = "a.src", target = "a.tgt" }, valid = { tsv = "valid.tsv" } }"#;
    assert_says(&fail(dir, &arguments("run", &[files])), &["a.tgt:2: target, step 2: \"b\" is not a number"]);
    // Held out of the training files, so that the line is theirs.
    let lines: String =
        (0..300).map(|i| format!("{i} {}\t{} {}\n", i + 1, i + 1, if i == 250 { "?" } else { "5" })).collect();
    fs::write(dir.join("train.tsv"), lines).unwrap();
    let held_out = r#"data={ train = { tsv = "train.tsv" }, hold_out_per_mille = 300 }"#;
    assert_says(&fail(dir, &arguments("run", &[held_out])), &["train.tsv:251: target, step 2: \"?\" is not a number"]);
    assert_says(
        &fail(dir, &arguments("run", &["data.task={ kind = \"copy\" }"])),
        &["data.train: pair 1: source, step 1:"],
    );
    assert_says(
        &fail(dir, &arguments("run", &["model.positions={ kind = \"learned\", max_len = 9 }"])),
        &["model.positions.max_len", "14 steps"],
    );
    let run = FORECASTER.0.path();
    for (line, message) in [
        ("1 2 x", "in.txt:2: step 3: \"x\" is not a number"),
        ("1,2", "in.txt:2: step 1 has 2 channels where 1 channel is expected"),
        ("inf", "in.txt:2: step 1: \"inf\" is not finite"),
        ("1e300", "in.txt:2: step 1 is too far from all training data"),
        // Where it is a number with 32 bits, its square is none.
        ("1 1e25", "in.txt:2: step 2 is too far from all training data"),
    ] {
        let input = dir.join("in.txt");
        fs::write(&input, format!("1 2\n{line}\n")).unwrap();
        let found = fail(run, &["predict", "--run", "run", "--input", input.to_str().unwrap()]);
        assert_says(&found, &[message]);
    }
}

#[test]
fn a_run_of_numbers_goes_on_bit_by_bit() {
    let dir = TempDir::new().unwrap();
    let mut config: Config = toml::from_str(FORECAST).unwrap();
    (config.data.n_train, config.data.n_valid) = (30, 5);
    (config.training.max_updates, config.training.validate_every, config.training.save_every) = (12, 4, 1);
    (config.training.accumulation, config.training.batch_tokens, config.training.keep_checkpoints) = (2, 60, 100);
    let lookback::models::ModelConfig::EncoderOnly(model) = &mut config.model else { panic!("encoder-only") };
    model.dropout_rate = 0.1;
    let whole = dir.path().join("whole");
    train_in(&whole, &config).unwrap();
    let names = checkpoints(&whole);
    for at in [2, 5, 9] {
        let run = dir.path().join(&names[at]);
        copy_folder(&whole, &run);
        for later in &names[at + 1..] {
            fs::remove_dir_all(run.join("checkpoints").join(later)).unwrap();
        }
        train_in(&run, &config).unwrap();
        assert_same_end(&whole, &run, &format!("from {}", names[at]));
    }
    assert_eq!(named(&whole, "last"), named(&dir.path().join(&names[2]), "last"));
}

#[test]
fn what_was_learnt_is_a_start_with_its_own_scale() {
    let (dir, out) = (FORECASTER.0.path(), TempDir::new().unwrap());
    let from = dir.join("run");
    fs::write(out.path().join("forecast.toml"), FORECAST).unwrap();
    let settings = ["training.max_updates=1", "training.learning_rate=0.00001", "seed=9"];
    let arguments = [&arguments("run", &settings)[..], &["--init-from", from.to_str().unwrap()]].concat();
    succeed(out.path(), &arguments);
    assert_eq!(read(out.path().join("run/tokenizer.json")), read(from.join("tokenizer.json")));
    let [then, now] = [dir, out.path()].map(|dir| number(&json(dir, &["evaluate", "--run", "run", "--json"]), "/mse"));
    assert!(now < 1.3 * then, "{now} after {then}");
}

#[test]
fn commands_for_words_name_those_for_numbers() {
    let dir = FORECASTER.0.path();
    for arguments in [
        &["translate", "--run", "run"][..],
        &["explain", "--run", "run", "1 2"],
        &["inspect", "states", "--run", "run", "--input", "forecast.toml", "--out", "states.html"],
    ] {
        assert_says(&fail(dir, arguments), &["run: answers with numbers", "`predict`", "`evaluate`"]);
    }
    assert_says(&fail(dir, &["generate", "--run", "run"]), &["is no language model", "`predict`"]);
    assert_says(&fail(dir, &["compare", "--run", "run"]), &["run answers with numbers", "`lookback evaluate`"]);
    for option in [
        &["--beam", "2"][..],
        &["--metric", "bleu"],
        &["--lowercase"],
        &["--tokenize", "13a"],
        &["--chart", "a.svg"],
        &["--int8"],
    ] {
        let found = fail(dir, &[&["evaluate", "--run", "run"], option].concat());
        assert_says(&found, &[option[0], "has no effect here: the model answers with numbers"]);
    }
    assert_says(&fail(dir, &["evaluate", "--run", "run", "--run", "run"]), &["one at a time"]);
    assert_says(&fail(dir, &["predict", "--run", "run", "--json", "--n-best", "2"]), &["--n-best has no effect here"]);
}

#[test]
fn what_each_step_looks_at_is_drawn() {
    let dir = TempDir::new().unwrap();
    let dir = dir.path();
    let attention =
        ["model.mixer={ kind = \"attention\" }", "model.positions={ kind = \"rotary\" }", "training.max_updates=2"];
    train(dir, "run", &attention);
    fs::write(dir.join("in.txt"), "1.5 2.5 -3\n\n0.25 7\n").unwrap();
    let inspect = ["inspect", "attention", "--run", "run", "--input", "in.txt"];
    let numbers = json(dir, &[&inspect[..], &["--json", "--out", "maps.csv"]].concat());
    assert_eq!((number(&numbers, "/sentences"), numbers["heads"].as_array().unwrap().len()), (2.0, 2));
    assert_says(&read(dir.join("maps.csv")), &["encoder", "2.5"]);
    for name in ["maps.html", "maps.svg"] {
        succeed(dir, &[&inspect[..], &["--out", name]].concat());
        assert_says(&read(dir.join(name)), &["-3"]);
    }
    let found = fail(dir, &[&inspect[..], &["--faithfulness"]].concat());
    assert_says(&found, &["--faithfulness has no effect here: the model answers with numbers"]);
    let found = fail(FORECASTER.0.path(), &["inspect", "attention", "--run", "run"]);
    assert_says(&found, &["no attention", "no map to draw"]);
}

#[test]
fn what_does_not_go_with_numbers_is_refused() {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("forecast.toml"), FORECAST).unwrap();
    let wrong = |setting: &str| fail(dir.path(), &["config", "check", "forecast.toml", "--set", setting]);
    for (setting, key) in [
        ("tokenizer.kind=\"word\"", "model.output: is \"values\""),
        ("model.output=\"tags\"", "tokenizer.kind: is \"numbers\""),
        ("training.criterion=\"score\"", "training.criterion: "),
        ("training.score=\"per\"", "training.score: "),
        ("training.label_smoothing=0.2", "training.label_smoothing: has no effect on numbers"),
        ("data.several_references=true", "data.several_references: "),
        ("tokenizer.shared=true", "shared"),
    ] {
        assert_says(&wrong(setting), &[key]);
    }
    succeed(dir.path(), &["config", "check", "forecast.toml", "--set", "training.label_smoothing=0"]);
}
