//! Training through its traits alone: a model and lessons that this crate does not know.

use super::*;
use burn::module::{Module, Param};
use burn::tensor::{Device, Distribution, Tensor, TensorData, TensorReadError};
use burn_train::metric::{Metric, MetricAttributes, MetricMetadata, MetricName, SerializedEntry};
use burn_train::{InferenceStep, TrainOutput, TrainStep};
use lookback::data::batch::Plan;
use lookback::error::Result;
use lookback::layers::Pass;
use lookback::ranks::{Alone, Ranks};
use lookback::scoring::Metric as Score;
use lookback::training::checkpoint::Checkpoint;
use lookback::training::loss::{Loss, LossSums};
use lookback::training::{
    Criterion, HeldOut, Lessons, Measured, RunFolder, Setup, Silent, Stats, Stop, Trainable, Trainer, TrainingConfig,
    UpdatePart, fit, learn,
};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use tempfile::TempDir;

/// `y = a x + b`.
#[derive(Module, Debug)]
pub(super) struct Line {
    a: Param<Tensor<1>>,
    b: Param<Tensor<1>>,
}

/// `x` and `y`.
pub(super) type Points = [Tensor<1>; 2];

impl Line {
    fn new(device: &Device) -> Self {
        let zero = || Param::from_tensor(Tensor::zeros([1], device));
        Self { a: zero(), b: zero() }
    }

    fn squared_errors(&self, [x, y]: &Points) -> Tensor<1> {
        let n = x.dims()[0];
        (self.a.val().expand([n]) * x.clone() + self.b.val().expand([n]) - y.clone()).square()
    }
}

fn numbers_of(tensor: Tensor<1>) -> Vec<f32> {
    tensor.into_data().try_to_vec().unwrap()
}

impl Trainable for Line {
    type Batch = Points;

    fn loss(&self, part: &UpdatePart<Points>, _pass: &mut Pass) -> Loss {
        let errors = self.squared_errors(&part.batch);
        let found = numbers_of(errors.clone().detach());
        let sum = found.iter().map(|error| f64::from(*error)).sum();
        let sums = LossSums { smoothed: sum, cross_entropy: sum, n_tokens: found.len(), ..LossSums::default() };
        Loss::known(errors.sum().div_scalar(part.n_total as f64), sums)
    }
}

impl TrainStep for Line {
    type Input = UpdatePart<Points>;
    type Output = Stats;

    fn step(&self, part: UpdatePart<Points>) -> TrainOutput<Stats> {
        learn(self, &part)
    }
}

impl InferenceStep for Line {
    type Input = HeldOut<Self>;
    type Output = Measured;

    fn step(&self, held_out: HeldOut<Self>) -> Measured {
        held_out.examine(self)
    }
}

/// Points of `y = 2 x - 1`, in batches of so many.
pub(super) struct OfALine;

const N_BATCHES: usize = 6;

fn points(numbers: &[u32], device: &Device) -> Points {
    let x: Vec<f32> = numbers.iter().map(|i| *i as f32 / 10.0 - 1.0).collect();
    let y: Vec<f32> = x.iter().map(|x| 2.0 * x - 1.0).collect();
    [x, y].map(|values| Tensor::from_data(TensorData::new(values, [numbers.len()]), device))
}

impl Lessons<Line> for OfALine {
    fn plan(&self, epoch: u64) -> Plan {
        let batch = |batch: u32| (0..5).map(|i| (7 * batch + 3 * i + epoch as u32) % 20).collect::<Vec<u32>>();
        (0..N_BATCHES as u32).map(batch).collect()
    }

    fn batch(&self, _epoch: u64, numbers: &[u32], device: &Device) -> Result<Points> {
        Ok(points(numbers, device))
    }

    fn n_targets(&self, [x, _]: &Points) -> usize {
        x.dims()[0]
    }

    fn text(&self, _epoch: u64, numbers: &[u32]) -> String {
        format!("{numbers:?}\n")
    }

    fn measure(&self, model: &Line, _ranks: &dyn Ranks) -> Measured {
        let errors = numbers_of(model.squared_errors(&points(&[3, 9, 15], &model.a.val().device())));
        let loss = errors.iter().map(|error| f64::from(*error)).sum::<f64>() / errors.len() as f64;
        Measured { stats: Stats { loss, tokens: errors.len(), ..Stats::default() }, sample: format!("{errors:?}\n") }
    }
}

pub(super) fn setup(folder: &Path, updates: u64) -> Setup<Line> {
    let device = lookback::backend::Backend::Flex.open().unwrap().device;
    let training = TrainingConfig {
        max_updates: updates,
        validate_every: 40,
        save_every: 7,
        warmup_updates: 5,
        learning_rate: 0.1,
        accumulation: 4,
        clip_norm: 0.0,
        patience: 0,
        ..TrainingConfig::default()
    };
    Setup {
        training,
        seed: 1,
        width: 1,
        model: Line::new(&device),
        device,
        lessons: Arc::new(OfALine),
        folder: RunFolder::create(folder).unwrap(),
        horizon: None,
        observer: Arc::new(Silent),
        ranks: Arc::new(Alone),
    }
}

/// The checkpoint after one update, whose gradient is shortened to `clip_norm`.
pub(super) fn one_update(folder: &Path, clip_norm: f64) -> Checkpoint {
    let setup = setup(folder, 1);
    let training = TrainingConfig { clip_norm, ..setup.training };
    fit(Trainer::new(Setup { training, ..setup }).unwrap(), Dashboard::None, |own| own).unwrap();
    RunFolder::at(folder).newest_checkpoint(u64::MAX, |fault| panic!("{fault}")).unwrap().1
}

/// Lessons of a line whose validations have these scores, one after the other.
struct Scored(Mutex<VecDeque<f64>>);

impl Lessons<Line> for Scored {
    fn plan(&self, epoch: u64) -> Plan {
        OfALine.plan(epoch)
    }

    fn batch(&self, epoch: u64, numbers: &[u32], device: &Device) -> Result<Points> {
        OfALine.batch(epoch, numbers, device)
    }

    fn n_targets(&self, points: &Points) -> usize {
        OfALine.n_targets(points)
    }

    fn text(&self, epoch: u64, numbers: &[u32]) -> String {
        OfALine.text(epoch, numbers)
    }

    fn measure(&self, _model: &Line, _ranks: &dyn Ranks) -> Measured {
        let score = self.0.lock().unwrap().pop_front().expect("a score for every validation");
        Measured {
            stats: Stats { loss: 1.0, tokens: 1, score: Some(score), ..Stats::default() },
            sample: String::new(),
        }
    }
}

/// Trains with validations of these scores, by which the best checkpoint is told; how many were no better than the best.
pub(super) fn train_with_scores(folder: &Path, score: Score, scores: &[f64]) -> usize {
    let setup = setup(folder, scores.len() as u64);
    let training = TrainingConfig { criterion: Criterion::Score, score, validate_every: 1, ..setup.training };
    let lessons = Arc::new(Scored(Mutex::new(scores.iter().copied().collect())));
    let trainer = Trainer::new(Setup { training, lessons, ..setup }).unwrap();
    fit(trainer, Dashboard::None, |own| own).unwrap().state.stalled
}

fn parameters(folder: &Path) -> Vec<(String, Vec<f32>)> {
    let (_, checkpoint) = RunFolder::at(folder).newest_checkpoint(u64::MAX, |fault| panic!("{fault}")).unwrap();
    checkpoint.model.into_iter().map(|(path, weight)| (path, weight.values)).collect()
}

#[test]
fn a_model_of_ones_own_learns_and_goes_on_to_the_same_numbers_twice_in_one_process() {
    let dir = TempDir::new().unwrap();
    let (whole, parts) = (dir.path().join("whole"), dir.path().join("parts"));
    let train = |folder: &Path, updates| fit(Trainer::new(setup(folder, updates)).unwrap(), Dashboard::None, |own| own);
    std::thread::scope(|scope| {
        scope.spawn(|| train(&whole, 200).unwrap());
        // In the middle of an epoch, and of the groups of four that make an update.
        assert_eq!(train(&parts, 33).unwrap().state.position, 4);
        assert_eq!(train(&parts, 200).unwrap().stop, Stop::Updates);
    });
    let found = parameters(&whole);
    assert_eq!(found, parameters(&parts));
    for ((path, values), expected) in found.iter().zip([("a", 2.0), ("b", -1.0)]) {
        assert_eq!(path, expected.0);
        assert!((values[0] - expected.1).abs() < 1e-3, "{path} is {}", values[0]);
    }
    let lines = read(whole.join("metrics.jsonl"));
    assert!(lines.lines().last().unwrap().contains("\"split\":\"valid\""), "{lines}");
}

/// A metric that cannot be read from its second update on.
#[derive(Clone, Default)]
struct Failing {
    n_updates: usize,
}

impl Metric for Failing {
    type Input = Stats;

    fn name(&self) -> MetricName {
        Arc::new("failing".to_string())
    }

    fn attributes(&self) -> MetricAttributes {
        MetricAttributes::None
    }

    fn update(&mut self, _stats: &Stats, _metadata: &MetricMetadata) -> Result<SerializedEntry, TensorReadError> {
        self.n_updates += 1;
        let n = self.n_updates.min(2);
        let device = Device::default();
        Tensor::<1>::random([n], Distribution::Default, &device).try_into_scalar::<f32>()?;
        Ok(SerializedEntry::new("1".into(), "1".into()))
    }

    fn compute(&mut self) -> Result<SerializedEntry, TensorReadError> {
        Ok(SerializedEntry::new("1".into(), "1".into()))
    }

    fn clear(&mut self) {}
}

#[test]
fn an_error_inside_burn_trains_metrics_ends_training_as_that_error_and_loses_nothing() {
    let dir = TempDir::new().unwrap();
    let trainer = Trainer::new(setup(dir.path(), 1000)).unwrap();
    let error = fit(trainer, Dashboard::None, |own| own.metric_train(Failing::default())).unwrap_err().to_string();
    assert!(error.contains("failing") && error.contains("Expected 1 tensor element"), "{error}");
    assert!(error.ends_with("what was learnt is saved, the same command goes on"), "{error}");
    let updates = Trainer::new(setup(dir.path(), 1000)).unwrap().update();
    assert!((2..100).contains(&updates), "saved after update {updates}");
}
