//! Ranks that train a model of one's own, of which one goes astray: it computes nothing, or sees another folder.

use super::mpi::{PATIENCE, can_run, launcher};
use super::own_model::{Line, OfALine, Points, setup};
use super::*;
use burn::tensor::Device;
use lookback::data::batch::Plan;
use lookback::ranks::{Ended, Ranks, of_launcher, within_process};
use lookback::training::{Lessons, Measured, RunFolder, Setup, Trainer, TrainingConfig, fit};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;
use tempfile::TempDir;

/// Points of a line, up to an epoch of which points are no numbers, or do not fit together.
struct Upto {
    epoch: u64,
    fault: Fault,
}

#[derive(Clone, Copy)]
enum Fault {
    NotANumber,
    Panic,
}

impl Lessons<Line> for Upto {
    fn plan(&self, epoch: u64) -> Plan {
        OfALine.plan(epoch)
    }

    fn batch(&self, epoch: u64, numbers: &[u32], device: &Device) -> Result<Points> {
        let [x, y] = OfALine.batch(epoch, numbers, device)?;
        Ok(match self.fault {
            _ if epoch < self.epoch => [x, y],
            Fault::NotANumber => [x, y.mul_scalar(f32::NAN)],
            // Of other lengths: the loss panics.
            Fault::Panic => [x, y.narrow(0, 0, 2)],
        })
    }

    fn n_targets(&self, points: &Points) -> usize {
        OfALine.n_targets(points)
    }

    fn text(&self, epoch: u64, numbers: &[u32]) -> String {
        OfALine.text(epoch, numbers)
    }

    fn measure(&self, model: &Line, ranks: &dyn Ranks) -> Measured {
        OfALine.measure(model, ranks)
    }
}

/// Trains with a rank for each folder, in threads; the errors of those that end with one.
fn train_apart(folders: [&Path; 2], lessons: fn() -> Arc<dyn Lessons<Line>>, training: &TrainingConfig) -> Vec<String> {
    std::thread::scope(|scope| {
        let train = |ranks: Arc<dyn Ranks>, folder: &Path| {
            let result = catch_unwind(AssertUnwindSafe(|| {
                let (training, lessons) = (training.clone(), lessons());
                let setup = Setup { ranks: ranks.clone(), training, lessons, ..setup(folder, 0) };
                fit(Trainer::new(setup)?, Dashboard::None, |own| own)
            }));
            if !matches!(result, Ok(Ok(_))) {
                ranks.give_up();
            }
            match result {
                Ok(result) => result.err().map(|error| error.to_string()),
                Err(panic) => {
                    assert!(panic.is::<Ended>(), "no rank panics");
                    None
                }
            }
        };
        let ranks = within_process(2).into_iter().zip(folders);
        let threads: Vec<_> =
            ranks.map(|(ranks, folder)| scope.spawn(move || train(Arc::new(ranks), folder))).collect();
        threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect()
    })
}

fn of_a_line() -> Arc<dyn Lessons<Line>> {
    Arc::new(OfALine)
}

/// Two folders of one run after so many updates.
fn two_of(dir: &TempDir, training: &TrainingConfig) -> [PathBuf; 2] {
    let folders = ["one", "other"].map(|name| dir.path().join(name));
    let setup = Setup { training: training.clone(), ..setup(&folders[0], 0) };
    fit(Trainer::new(setup).unwrap(), Dashboard::None, |own| own).unwrap();
    copy_folder(&folders[0], &folders[1]);
    folders
}

/// The training of [`setup`], up to so many updates.
fn up_to(dir: &TempDir, max_updates: u64) -> TrainingConfig {
    setup(&dir.path().join("unused"), max_updates).training
}

#[test]
fn ranks_that_go_back_to_other_checkpoints_are_refused() {
    let dir = TempDir::new().unwrap();
    let [one, other] = two_of(&dir, &up_to(&dir, 7));
    // Rank 0 writes a checkpoint after update 14 into its folder, which the other does not see. Two updates make an epoch.
    let lessons = || -> Arc<dyn Lessons<Line>> { Arc::new(Upto { epoch: 8, fault: Fault::NotANumber }) };
    let errors = train_apart([&one, &other], lessons, &up_to(&dir, 100));
    assert!(!errors.is_empty(), "training has gone on");
    let expected = "rank 1 is at update 7 and rank 0 at update 14: all ranks have to see the same run folder";
    assert!(errors.iter().all(|error| error == expected), "{errors:?}");
}

#[test]
fn ranks_average_what_rank_0_averages_or_end() {
    let dir = TempDir::new().unwrap();
    let [one, other] = two_of(&dir, &up_to(&dir, 7));
    let training = TrainingConfig { average_checkpoints: 2, validate_every: 7, ..up_to(&dir, 21) };
    let errors = train_apart([&one, &other], of_a_line, &training);
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_says(&errors[0], &["other/checkpoints/000014"]);
    // Where one of them is damaged, all leave it out.
    let one = dir.path().join("same");
    let training = TrainingConfig { average_checkpoints: 3, ..training };
    assert_eq!(train_apart([&one, &one], of_a_line, &training), Vec::<String>::new());
    let model = one.join("checkpoints/000014/model.safetensors");
    std::fs::write(&model, "damaged").unwrap();
    let training = TrainingConfig { max_updates: 28, average_checkpoints: 3, ..training };
    assert_eq!(train_apart([&one, &one], of_a_line, &training), Vec::<String>::new());
    assert_says(&read(one.join("log.txt")), &["mean of 3 checkpoints", "mean of 2 checkpoints"]);
}

/// The name of the test below, and what tells it that it is one of the ranks which it has started.
const PANICS: &str = "training::own_ranks::a_rank_that_panics_while_it_computes_ends_all_ranks";
const FOLDER: &str = "LOOKBACK_TEST_RANKS_FOLDER";

#[test]
fn a_rank_that_panics_while_it_computes_ends_all_ranks() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return be_a_rank(Path::new(&folder));
    }
    if !can_run() {
        return;
    }
    let dir = TempDir::new().unwrap();
    let mut command = launcher();
    command.args(["-n", "2"]).arg(std::env::current_exe().unwrap()).args(["--exact", PANICS, "--nocapture"]);
    let mut launcher = command.env(FOLDER, dir.path()).spawn().unwrap();
    let start = Instant::now();
    while launcher.try_wait().unwrap().is_none() {
        if start.elapsed() > PATIENCE {
            launcher.kill().unwrap();
            panic!("the ranks do not end");
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let finished: Finished = launcher.wait_with_output().unwrap().into();
    // The launcher's code is that of `MPI_Abort`, where a test that merely fails has 101. Open MPI's own words are not asked for: they do
    // not always arrive whole.
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    assert_says(&finished.stderr, &["panicked at"]);
    let (_, checkpoint) = RunFolder::at(dir.path()).newest_checkpoint(u64::MAX, |fault| panic!("{fault}")).unwrap();
    assert_eq!(checkpoint.state.update, 7, "training goes on from there");
}

/// One of two ranks, the second of which panics in an update after the first checkpoint.
fn be_a_rank(folder: &Path) {
    let ranks = of_launcher().unwrap();
    let lessons: Arc<dyn Lessons<Line>> = match ranks.rank() {
        1 => Arc::new(Upto { epoch: 4, fault: Fault::Panic }),
        _ => Arc::new(OfALine),
    };
    let setup = Setup { ranks, lessons, ..setup(folder, 100) };
    let _ = fit(Trainer::new(setup).unwrap(), Dashboard::None, |own| own);
}
