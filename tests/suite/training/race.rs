//! `backend = "auto"` where there are two devices to choose from. A machine with a GPU is not at hand, so that burn's two CPU backends
//! stand for the devices.

use super::*;
use lookback::backend::{Adapter, Backend};
use lookback::experiment::Run;
use lookback::experiment::race::{Race, Work, of_run, of_sentences};
use lookback::training::Observer;
use serde_json::json;
use std::sync::{Arc, Mutex};
use tempfile::TempDir;

/// What is said.
#[derive(Debug, Default)]
struct Listener(Mutex<Vec<String>>);

impl Listener {
    fn heard(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl Observer for Listener {
    fn say(&self, line: &str) {
        self.0.lock().unwrap().push(line.into());
    }
}

fn devices() -> [Adapter; 2] {
    [Backend::Ndarray, Backend::Flex].map(|backend| backend.open().unwrap())
}

/// Trains the tiny Transformer up to so many updates on ndarray, with flex as a rival; what was said.
fn train_beside_a_rival(run: &Path, max_updates: u64) -> Vec<String> {
    let mut config = tiny(TRANSFORMER);
    config.training.max_updates = max_updates;
    let [first, rival] = devices();
    let observer = Arc::new(Listener::default());
    let options = TrainOptions { observer: observer.clone(), rivals: vec![rival], ..TrainOptions::new(run) };
    train(&config, &first, &options).unwrap();
    observer.heard()
}

/// The outcome of a race, as a run folder keeps it.
fn outcome(work: &str, seconds: [f64; 2]) -> Value {
    let time = |(adapter, seconds): (&Adapter, f64)| {
        let (name, driver) = adapter.driver();
        let driver = format!("{name} {driver}").trim().to_string();
        json!({ "backend": adapter.backend.name(), "device": adapter.name, "driver": driver, "seconds": seconds })
    };
    let times: Vec<Value> = devices().iter().zip(seconds).map(time).collect();
    json!([{ "work": work, "version": env!("CARGO_PKG_VERSION"), "times": times }])
}

fn keep(run: &Path, outcome: &Value) {
    std::fs::create_dir_all(run).unwrap();
    std::fs::write(run.join("auto.json"), outcome.to_string()).unwrap();
}

fn kept(run: &Path) -> Value {
    serde_json::from_str(&read(run.join("auto.json"))).unwrap()
}

/// The place of the fastest device in the first outcome that a folder keeps.
fn fastest(outcomes: &Value) -> usize {
    let seconds = |i: usize| outcomes[0]["times"][i]["seconds"].as_f64().unwrap();
    usize::from(seconds(1) < seconds(0))
}

#[test]
fn the_fastest_wins_and_a_time_that_is_no_number_never() {
    let race = |seconds: [f64; 2]| {
        let mut seconds = seconds.into_iter();
        Race::run(Work::Updates, &devices(), |_| Ok(seconds.next().unwrap())).unwrap()
    };
    assert_eq!(race([0.2, 0.1]).winner(), 1);
    assert_eq!(race([0.1, 0.2]).winner(), 0);
    assert_eq!(race([f64::NAN, 3.0]).winner(), 1);
    let [first, second] = devices().map(|adapter| adapter.name);
    assert_eq!(
        race([0.25, 0.125]).to_string(),
        format!("auto     an update takes 0.2500 s on ndarray ({first}) and 0.1250 s on flex ({second}): flex")
    );
}

#[test]
fn a_run_is_trained_where_an_update_is_fastest_and_keeps_the_outcome() {
    let dir = TempDir::new().unwrap();
    let run = dir.path().join("run");
    let said = train_beside_a_rival(&run, 2);
    let races: Vec<&String> = said.iter().filter(|line| line.starts_with("auto     an update takes ")).collect();
    assert_eq!(races.len(), 1, "{said:?}");
    let outcomes = kept(&run);
    let [first, rival] = devices();
    let winner = [&first, &rival][fastest(&outcomes)];
    assert!(races[0].ends_with(&format!(": {}", winner.backend)), "{said:?}");
    let device = format!("device   {} ({})", winner.backend, winner.name);
    assert!(said.contains(&device), "{said:?}");
    assert_eq!(of_run(&Run::open(&run).unwrap(), &first, std::slice::from_ref(&rival)).backend, winner.backend);
    // What has been found out is not measured again.
    let said = train_beside_a_rival(&run, 4);
    assert!(said.contains(&device) && !said.iter().any(|line| line.starts_with("auto")), "{said:?}");
    assert_eq!(kept(&run), outcomes);
}

/// The first update is not counted, and is all that an epoch has here.
#[test]
fn an_epoch_of_one_update_is_timed_as_well() {
    let dir = TempDir::new().unwrap();
    let mut config = tiny(TRANSFORMER);
    config.training.max_updates = 1;
    config.training.batch_tokens = 100_000;
    let [first, rival] = devices();
    train(&config, &first, &TrainOptions { rivals: vec![rival], ..TrainOptions::new(dir.path().join("run")) }).unwrap();
    let outcomes = kept(&dir.path().join("run"));
    for time in outcomes[0]["times"].as_array().unwrap() {
        // Less than any update takes.
        assert!(time["seconds"].as_f64().unwrap() > 1e-4, "{time}");
    }
}

#[test]
fn what_a_folder_keeps_decides_for_as_long_as_the_devices_are_the_same() {
    let dir = TempDir::new().unwrap();
    for (seconds, backend) in [([1.0, 2.0], "ndarray"), ([2.0, 1.0], "flex")] {
        let run = dir.path().join(backend);
        keep(&run, &outcome("updates", seconds));
        let said = train_beside_a_rival(&run, 1);
        assert!(said.iter().any(|line| line.starts_with(&format!("device   {backend} "))), "{said:?}");
        assert!(!said.iter().any(|line| line.starts_with("auto")), "{said:?}");
    }
    for (key, other) in [("device", "another"), ("driver", "of another machine"), ("backend", "wgpu")] {
        let run = dir.path().join(key);
        let mut there = outcome("updates", [1.0, 2.0]);
        there[0]["times"][0][key] = other.into();
        keep(&run, &there);
        let said = train_beside_a_rival(&run, 1);
        assert!(said.iter().any(|line| line.starts_with("auto")), "{said:?}");
        assert_ne!(kept(&run), there);
    }
    // A damaged file is as good as none.
    let run = dir.path().join("damaged");
    std::fs::create_dir(&run).unwrap();
    std::fs::write(run.join("auto.json"), "[{").unwrap();
    assert!(train_beside_a_rival(&run, 1).iter().any(|line| line.starts_with("auto")));
}

#[test]
fn a_run_translates_where_it_translates_fastest() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("run");
    for model in [TRANSFORMER, BAHDANAU] {
        let config = tiny(model);
        train_in(
            &path,
            &Config {
                training: lookback::training::TrainingConfig { max_updates: 1, ..config.training.clone() },
                ..config
            },
        )
        .unwrap();
        let run = Run::open(&path).unwrap();
        let listener = Listener::default();
        let choose = || of_sentences(&run, devices().to_vec(), None, &listener).unwrap();
        let chosen = choose();
        assert_eq!(chosen.backend, devices()[fastest(&kept(&path))].backend);
        assert_eq!(listener.heard().iter().filter(|line| line.starts_with("auto     translating takes ")).count(), 1);
        for (seconds, backend) in [([1.0, 2.0], Backend::Ndarray), ([2.0, 1.0], Backend::Flex)] {
            keep(&path, &outcome("sentences", seconds));
            assert_eq!(choose().backend, backend);
        }
        assert_eq!(listener.heard(), Vec::<String>::new());
        // One device alone has no race, and a look that cannot be kept is no fault.
        std::fs::remove_file(path.join("auto.json")).unwrap();
        let [only, _] = devices();
        assert_eq!(of_sentences(&run, vec![only], None, &listener).unwrap().backend, Backend::Ndarray);
        assert!(!path.join("auto.json").exists() && listener.heard().is_empty());
        std::fs::create_dir(path.join("auto.json")).unwrap();
        choose();
        assert_eq!(listener.heard().len(), 1);
        std::fs::remove_dir_all(&path).unwrap();
    }
}
