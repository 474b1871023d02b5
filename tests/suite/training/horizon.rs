//! A falling learning rate has one end, fixed when the run begins.

use super::*;
use lookback::training::Stop;
use lookback::training::schedule::Schedule;
use tempfile::TempDir;

fn config() -> Config {
    let mut config = tiny(TRANSFORMER);
    config.training.schedule = Schedule::Cosine;
    config.training.save_every = 4;
    config
}

fn last_rate(config: &Config) -> f64 {
    config.training.learning_rate * config.training.final_fraction
}

#[test]
fn a_finished_run_that_goes_on_keeps_the_last_rate() {
    let dir = TempDir::new().unwrap();
    let run = dir.path().join("run");
    let mut config = config();
    let outcome = train_in(&run, &config).unwrap();
    assert_eq!((outcome.state.update, outcome.state.horizon), (12, Some(12)));
    config.training.max_updates = 20;
    let outcome = train_in(&run, &config).unwrap();
    assert_eq!((outcome.stop, outcome.state.update, outcome.state.horizon), (Stop::Updates, 20, Some(12)));
    let rates = numbers(&run, "train", "learning_rate");
    let last = last_rate(&config);
    assert_eq!(rates.len(), 20);
    assert!(rates[11..].iter().all(|rate| (rate - last).abs() < 1e-12), "{rates:?}");
}

#[test]
fn where_minutes_decide_the_end_is_planned_and_kept() {
    let dir = TempDir::new().unwrap();
    let run = dir.path().join("run");
    let mut config = config();
    config.training.max_updates = 1_000_000;
    config.training.max_minutes = Some(2.0 / 60.0);
    config.training.patience = 0;
    config.training.validate_every = 1000;
    let outcome = train_in(&run, &config).unwrap();
    assert_eq!(outcome.stop, Stop::Minutes);
    let horizon = outcome.state.horizon.expect("planned within the first twentieth of the time");
    assert!((3..1_000_000).contains(&horizon), "{horizon}");
    assert_says(&read(run.join("log.txt")), &[&format!("the learning rate falls until update {horizon}")]);
    let rates = numbers(&run, "train", "learning_rate");
    let highest = rates.iter().copied().fold(0.0, f64::max);
    assert!(rates[rates.len() - 1] < highest, "the rate falls: {rates:?}");
    // More time changes where training ends, and not the schedule.
    config.training.max_minutes = Some(2.2 / 60.0);
    let outcome = train_in(&run, &config).unwrap();
    assert_eq!(outcome.state.horizon, Some(horizon));
}

/// Minutes that are a limit for safety do not keep the rate up.
#[test]
fn where_updates_end_before_the_minutes_the_rate_falls_until_the_last() {
    let dir = TempDir::new().unwrap();
    let run = dir.path().join("run");
    let mut config = config();
    config.training.max_minutes = Some(3600.0);
    let outcome = train_in(&run, &config).unwrap();
    assert_eq!((outcome.stop, outcome.state.update), (Stop::Updates, 12));
    let last = last_rate(&config);
    let rates = numbers(&run, "train", "learning_rate");
    assert!((rates[11] - last).abs() < 1e-12, "{rates:?}");
}

#[test]
fn a_run_whose_minutes_are_taken_away_before_the_end_is_planned_falls_until_its_last_update() {
    let dir = TempDir::new().unwrap();
    let run = dir.path().join("run");
    let mut config = config();
    // Planned after three hours.
    config.training.max_minutes = Some(3600.0);
    let ended = interrupted(&run, &config, 5);
    assert_eq!((ended.state.update, ended.state.horizon), (5, None));
    config.training.max_minutes = None;
    let outcome = train_in(&run, &config).unwrap();
    assert_eq!((outcome.state.update, outcome.state.horizon), (12, Some(12)));
    let last = last_rate(&config);
    assert!((numbers(&run, "train", "learning_rate")[11] - last).abs() < 1e-12);
}

/// A run of format 2 has no horizon in its state: it planned for its last update.
#[test]
fn an_older_run_keeps_the_end_that_it_planned_for() {
    let dir = TempDir::new().unwrap();
    let run = dir.path().join("run");
    let mut config = config();
    train_in(&run, &config).unwrap();
    for name in checkpoints(&run) {
        let folder = run.join("checkpoints").join(name);
        let state = read(folder.join("state.json"));
        let mut old: Value = serde_json::from_str(&state).unwrap();
        old.as_object_mut().unwrap().remove("horizon");
        let old = serde_json::to_string_pretty(&old).unwrap();
        std::fs::write(folder.join("state.json"), &old).unwrap();
        let manifest = read(folder.join("manifest.json")).replace(&sha256(&state), &sha256(&old));
        std::fs::write(folder.join("manifest.json"), rechecked(&manifest)).unwrap();
    }
    let environment = read(run.join("environment.json")).replace("\"format_version\": 4", "\"format_version\": 2");
    assert!(environment.contains("\"format_version\": 2"), "{environment}");
    std::fs::write(run.join("environment.json"), environment).unwrap();
    config.training.max_updates = 16;
    let outcome = train_in(&run, &config).unwrap();
    assert_eq!((outcome.state.update, outcome.state.horizon), (16, Some(12)));
}

fn sha256(text: &str) -> String {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("text");
    std::fs::write(&path, text).unwrap();
    lookback::data::sha256_of_file(path).unwrap()
}
