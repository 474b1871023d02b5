//! Checkpoints: damage is noticed and survived, pointers and numbers of checkpoints are right, averages are averages.

use super::*;
use lookback::experiment::{Run, export};
use lookback::models::weights::{from_safetensors, to_safetensors};
use lookback::training::Stop;
use lookback::training::checkpoint::{TrainingState, load, save};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::fs;
use tempfile::TempDir;

/// A finished tiny run of 12 updates, with all its checkpoints.
fn finished() -> (TempDir, PathBuf) {
    let dir = TempDir::new().unwrap();
    let run = dir.path().join("run");
    train_in(&run, &tiny(BAHDANAU)).unwrap();
    (dir, run)
}

/// Sets a parameter of the checkpoint to NaN and lets the manifest agree.
fn poison(folder: &Path) {
    let path = folder.join("model.safetensors");
    let bytes = fs::read(&path).unwrap();
    let mut weights = from_safetensors(&bytes, &path).unwrap();
    weights.get_mut("source_embedding.weight").unwrap().values[3] = f32::NAN;
    let poisoned = to_safetensors(&weights, &BTreeMap::new(), HashMap::new()).unwrap();
    let hash = |bytes: &[u8]| Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let manifest = folder.join("manifest.json");
    let text = read(&manifest);
    assert!(text.contains(&hash(&bytes)), "the manifest lists the model's SHA-256");
    fs::write(manifest, rechecked(&text.replace(&hash(&bytes), &hash(&poisoned)))).unwrap();
    fs::write(path, poisoned).unwrap();
}

fn truncate(path: PathBuf) {
    let bytes = fs::read(&path).unwrap();
    fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
}

/// Changes one byte, and not the length.
fn edit(path: PathBuf) {
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(path, bytes).unwrap();
}

/// Ways to damage a checkpoint: the file that is named then, and what is said of it.
type Damage = (&'static str, &'static str, fn(&Path));
const DAMAGES: [Damage; 7] = [
    ("model.safetensors", "is not what was saved", |folder| truncate(folder.join("model.safetensors"))),
    ("optimizer.safetensors", "is not what was saved", |folder| edit(folder.join("optimizer.safetensors"))),
    ("optimizer.json", "is not what was saved", |folder| fs::write(folder.join("optimizer.json"), "{}").unwrap()),
    ("state.json", "No such file", |folder| fs::remove_file(folder.join("state.json")).unwrap()),
    ("manifest.json", "is damaged", |folder| truncate(folder.join("manifest.json"))),
    ("manifest.json", "No such file", |folder| fs::remove_file(folder.join("manifest.json")).unwrap()),
    ("model.safetensors", "source_embedding.weight that is not finite", poison),
];

#[test]
fn every_damage_is_noticed_named_and_answered_with_the_checkpoint_before() {
    let (dir, whole) = finished();
    for (i, (file, fault, damage)) in DAMAGES.into_iter().enumerate() {
        let path = dir.path().join(i.to_string());
        copy_folder(&whole, &path);
        damage(&path.join("checkpoints/000012"));
        let mut warnings = Vec::new();
        let (folder, checkpoint) =
            Run::open(&path).unwrap().newest_checkpoint(u64::MAX, |warning| warnings.push(warning)).unwrap();
        assert_eq!((folder, checkpoint.state.update), (path.join("checkpoints/000011"), 11), "{file} {fault}");
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert_says(&warnings[0], &["checkpoints/000012", file, fault, "trying the checkpoint before it"]);
        train_in(&path, &tiny(BAHDANAU)).unwrap();
        assert_same_end(&whole, &path, fault);
    }
}

#[test]
fn the_program_warns_of_a_damaged_checkpoint_and_goes_on_from_the_one_before() {
    let (dir, whole) = finished();
    write_tiny(dir.path(), BAHDANAU);
    let run = dir.path().join("damaged");
    copy_folder(&whole, &run);
    truncate(run.join("checkpoints/000012/model.safetensors"));
    edit(run.join("checkpoints/000011/model.safetensors"));
    let finished = finish(dir.path(), &["train", "tiny.toml", "--run", "damaged"]);
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let warnings: Vec<&str> = finished.stderr.lines().filter(|line| line.starts_with("warning: ")).collect();
    assert_eq!(warnings.len(), 2, "{}", finished.stderr);
    assert_says(warnings[0], &["damaged/checkpoints/000012/model.safetensors", "is not what was saved"]);
    assert_says(warnings[1], &["damaged/checkpoints/000011/model.safetensors", "is not what was saved"]);
    assert_says(&finished.stderr, &["starting at update 11"]);
    assert_same_end(&whole, &run, "after two damaged checkpoints");
}

#[test]
fn a_damaged_best_checkpoint_is_refused_and_others_are_there_for_those_who_name_them() {
    let (dir, run) = finished();
    let best = named(&run, "best");
    edit(run.join("checkpoints").join(&best).join("model.safetensors"));
    fs::write(dir.path().join("in"), "a b\n").unwrap();
    let message = fail(dir.path(), &["translate", "--run", "run", "--input", "in"]);
    assert_says(&message, &[&best, "is not what was saved", "--checkpoint NAME", "000003, "]);
    let of_another = succeed(dir.path(), &["translate", "--run", "run", "--input", "in", "--checkpoint", "000003"]);
    assert_eq!(of_another.lines().count(), 1);
    let message = fail(dir.path(), &["translate", "--run", "run", "--input", "in", "--checkpoint", "nine"]);
    assert_says(&message, &["run: has no checkpoint nine; there are 000001, 000002"]);
    // An optimizer is nothing to inference.
    let (dir, run) = finished();
    fs::write(dir.path().join("in"), "a b\n").unwrap();
    let before = succeed(dir.path(), &["translate", "--run", "run", "--input", "in", "--json"]);
    edit(run.join("checkpoints").join(named(&run, "best")).join("optimizer.safetensors"));
    let found = finish(dir.path(), &["translate", "--run", "run", "--input", "in", "--json"]);
    assert_eq!((found.stdout, found.stderr.as_str()), (before, ""));
}

#[test]
fn a_run_whose_checkpoints_are_all_damaged_is_an_error_and_not_a_new_beginning() {
    let (dir, run) = finished();
    write_tiny(dir.path(), BAHDANAU);
    for name in checkpoints(&run) {
        truncate(run.join("checkpoints").join(name).join("model.safetensors"));
    }
    let before = metrics(&run);
    let message = fail(dir.path(), &["train", "tiny.toml", "--run", "run"]);
    assert_says(&message, &["run/checkpoints: has no whole checkpoint left", "--run"]);
    assert_eq!(metrics(&run), before, "nothing is begun anew");
    fs::write(dir.path().join("in"), "a b\n").unwrap();
    let message = fail(dir.path(), &["translate", "--run", "run", "--input", "in"]);
    assert_says(&message, &["run/checkpoints/", "is not what was saved", "--checkpoint NAME"]);
}

#[test]
fn a_damaged_checkpoint_does_not_crowd_out_the_whole_ones_after_a_fall_back() {
    let (_dir, run) = finished();
    edit(run.join("checkpoints/000012/model.safetensors"));
    let mut config = tiny(BAHDANAU);
    config.training.keep_checkpoints = 1;
    // Too short for any update: what is saved is where it stands, at 11.
    config.training.max_minutes = Some(1e-9);
    assert_eq!(train_in(&run, &config).unwrap().stop, Stop::Minutes);
    let (_, checkpoint) = Run::open(&run).unwrap().newest_checkpoint(u64::MAX, |warning| panic!("{warning}")).unwrap();
    assert_eq!(checkpoint.state.update, 11);
    assert_eq!(named(&run, "last"), "000011");
}

#[test]
fn numbers_that_are_not_finite_are_not_saved() {
    let (dir, run) = finished();
    let mut model = load(&run.join("checkpoints/000012")).unwrap().model;
    model.get_mut("source_embedding.weight").unwrap().values[0] = f32::INFINITY;
    let folder = dir.path().join("000013");
    let message = save(&folder, &model, None, &TrainingState::default()).unwrap_err().to_string();
    assert_says(&message, &["000013: was not written", "source_embedding.weight", "not finite"]);
    assert!(!folder.exists());
}

#[test]
#[cfg(unix)]
fn a_disk_that_is_full_in_the_middle_of_a_file_leaves_the_checkpoint_before_and_the_run_goes_on() {
    let (dir, whole) = finished();
    write_tiny(dir.path(), BAHDANAU);
    let train = ["train", "tiny.toml", "--run", "full", "--dashboard", "none"];
    succeed(dir.path(), &[&train[..], &["--set", "training.max_updates=4"]].concat());
    // Half the size of a model.
    let finished = finish_on_full_disk(dir.path(), 8, &train);
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    assert_says(finished.fault(), &["full/checkpoints/.000005.", "model.safetensors: File too large"]);
    let run = dir.path().join("full");
    assert_eq!(checkpoints(&run), ["000001", "000002", "000003", "000004"], "nothing half-written is left");
    let (_, checkpoint) = Run::open(&run).unwrap().newest_checkpoint(u64::MAX, |warning| panic!("{warning}")).unwrap();
    assert_eq!((checkpoint.state.update, named(&run, "last")), (4, "000004".into()));
    succeed(dir.path(), &train);
    assert_same_end(&whole, &run, "after a failed save");
}

#[test]
fn last_is_the_newest_and_best_has_the_least_validation_loss() {
    let (_dir, run) = finished();
    let losses = numbers(&run, "valid", "loss");
    let updates = numbers(&run, "valid", "update");
    let best = losses.iter().zip(&updates).min_by(|a, b| a.0.total_cmp(b.0)).unwrap().1;
    assert_eq!(updates, [4.0, 8.0, 12.0]);
    assert_eq!(named(&run, "best"), format!("{best:06}"));
    assert_eq!(named(&run, "last"), "000012");
}

#[test]
fn pointers_that_a_kill_left_behind_are_put_right() {
    let (_dir, run) = finished();
    let right = ["last", "best"].map(|name| read(run.join(name)));
    fs::write(run.join("last"), "000011\n").unwrap();
    fs::remove_file(run.join("best")).unwrap();
    train_in(&run, &tiny(BAHDANAU)).unwrap();
    assert_eq!(["last", "best"].map(|name| read(run.join(name))), right);
}

#[test]
fn as_many_checkpoints_are_kept_as_asked_for_and_the_best_besides() {
    let dir = TempDir::new().unwrap();
    let run = dir.path().join("run");
    let mut config = tiny(BAHDANAU);
    config.training.keep_checkpoints = 2;
    // Nothing changes: no validation is better than the first.
    config.training.learning_rate = 1e-30;
    config.training.criterion = lookback::training::Criterion::Score;
    train_in(&run, &config).unwrap();
    assert_eq!(named(&run, "best"), "000004", "{:?}", numbers(&run, "valid", "score"));
    assert_eq!(checkpoints(&run), ["000004", "000011", "000012"]);
}

#[test]
fn what_a_kept_checkpoint_knows_as_the_best_is_kept_too_so_that_training_goes_on_from_it() {
    let dir = TempDir::new().unwrap();
    let run = dir.path().join("run");
    let mut config = tiny(BAHDANAU);
    config.training.keep_checkpoints = 3;
    train_in(&run, &config).unwrap();
    assert_eq!(named(&run, "best"), "000012", "{:?}", numbers(&run, "valid", "loss"));
    assert_eq!(checkpoints(&run), ["000008", "000010", "000011", "000012"]);
    let right = fs::read(run.join("checkpoints/000012/model.safetensors")).unwrap();
    truncate(run.join("checkpoints/000012/model.safetensors"));
    train_in(&run, &config).unwrap();
    assert_eq!(named(&run, "best"), "000012");
    assert_eq!(fs::read(run.join("checkpoints/000012/model.safetensors")).unwrap(), right);
    // Earlier programs kept it only while it was the best.
    std::fs::remove_dir_all(run.join("checkpoints/000008")).unwrap();
    truncate(run.join("checkpoints/000012/model.safetensors"));
    train_in(&run, &config).unwrap();
    assert_eq!(named(&run, "best"), "000012");
    Run::open(&run).unwrap().parameters(None, |warning| panic!("{warning}")).unwrap();
}

#[test]
fn of_equal_scores_that_with_the_lower_loss_is_the_best() {
    let dir = TempDir::new().unwrap();
    let run = dir.path().join("run");
    let mut config = tiny(BAHDANAU);
    config.training.criterion = lookback::training::Criterion::Score;
    // Nobody knows an answer after a few updates, and all of them are wrong.
    config.training.score = lookback::scoring::Metric::SequenceAccuracy;
    train_in(&run, &config).unwrap();
    let (scores, losses) = (numbers(&run, "valid", "score"), numbers(&run, "valid", "loss"));
    assert!(scores.len() > 1 && scores.iter().all(|score| *score == scores[0]), "{scores:?}");
    let least = losses.iter().copied().fold(f64::INFINITY, f64::min);
    assert!(losses[0] > least, "the first is not the best: {losses:?}");
    let updates = numbers(&run, "valid", "update");
    let best = updates[losses.iter().position(|loss| *loss == least).unwrap()];
    assert_eq!(named(&run, "best"), format!("{best:06}"), "{losses:?}");
}

#[test]
fn the_average_of_checkpoints_is_their_mean_and_becomes_the_best_where_it_is_better() {
    let dir = TempDir::new().unwrap();
    let run = dir.path().join("run");
    let mut config = tiny(BAHDANAU);
    config.training.keep_checkpoints = 1;
    config.training.validate_every = 2;
    config.training.average_checkpoints = 3;
    // Jumps to and fro around a minimum, whose middle is better.
    config.training.learning_rate = 0.05;
    config.training.max_updates = 40;
    train_in(&run, &config).unwrap();
    assert_says(&read(run.join("log.txt")), &["mean of 3 checkpoints: loss ", "better than any of them"]);
    assert_eq!(named(&run, "best"), "averaged-000040");
    // The card of its export has its own numbers, and not those of the last checkpoint.
    let own: serde_json::Value =
        serde_json::from_str(&read(run.join("checkpoints/averaged-000040/validation.json"))).unwrap();
    let perplexity = own["perplexity"].as_f64().unwrap();
    assert!(perplexity < *numbers(&run, "valid", "perplexity").last().unwrap());
    let exported = dir.path().join("exported");
    export(&Run::open(&run).unwrap(), &exported, &Default::default(), |warning| panic!("{warning}")).unwrap();
    assert_says(&read(exported.join("README.md")), &[&format!("| validation perplexity | {perplexity:.3} ")]);
    let model = |name: &str| load(&run.join("checkpoints").join(name)).unwrap().model;
    let parts = ["000036", "000038", "000040"].map(model);
    let mean = model("averaged-000040");
    assert_eq!(mean.len(), parts[0].len());
    for (path, weight) in &mean {
        for (i, value) in weight.values.iter().enumerate() {
            let by_hand = parts.iter().map(|part| part[path].values[i] as f64).sum::<f64>() / 3.0;
            // One rounding to 32 bits.
            assert!((by_hand - *value as f64).abs() <= 1e-7 * by_hand.abs(), "{path}[{i}]: {value}, by hand {by_hand}");
        }
    }
    let losses = numbers(&run, "valid", "loss");
    let adapter = config.backend.open().unwrap();
    let loaded = Run::open(&run).unwrap().load_model(&adapter, None, |warning| panic!("{warning}")).unwrap();
    assert_eq!(loaded.checkpoint, "averaged-000040");
    let pairs = config.data.task.as_ref().unwrap().generate(lookback::data::Split::Valid, 7, config.seed).unwrap();
    let examples = lookback::experiment::dataset::encode(&pairs, &loaded.tokenizers);
    let sums = lookback::experiment::validate(&loaded.model, &examples, 40, &lookback::ranks::Alone);
    let loss = sums.cross_entropy / sums.n_tokens as f64;
    assert!(losses.iter().all(|other| loss < *other), "{loss} is not below {losses:?}");
}

#[test]
fn a_damaged_checkpoint_is_left_out_of_the_average() {
    let dir = TempDir::new().unwrap();
    let run = dir.path().join("run");
    let mut config = tiny(BAHDANAU);
    config.training.average_checkpoints = 3;
    train_in(&run, &config).unwrap();
    edit(run.join("checkpoints/000008/model.safetensors"));
    train_in(&run, &config).unwrap();
    let log = read(run.join("log.txt"));
    let counts: Vec<&str> = log.lines().filter_map(|line| line.strip_prefix("mean of ")?.split(' ').next()).collect();
    assert_eq!(counts, ["3", "2"]);
}
