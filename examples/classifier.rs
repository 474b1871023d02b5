//! A Transformer encoder in a classifier that burn's own learner trains: are there more ones than zeros?
//!
//! cargo run --release --example classifier

use burn::data::dataloader::{DataLoaderBuilder, batcher::Batcher};
use burn::data::dataset::InMemDataset;
use burn::module::Module;
use burn::nn::{Embedding, EmbeddingConfig, Linear, LinearConfig, loss::CrossEntropyLossConfig};
use burn::optim::AdamConfig;
use burn::tensor::{Device, Int, Tensor, TensorData};
use burn_train::metric::{AccuracyMetric, LossMetric};
use burn_train::{ClassificationOutput, InferenceStep, Learner, SupervisedTraining, TrainOutput, TrainStep};
use lookback::backend::Backend;
use lookback::layers::Pass;
use lookback::models::{TransformerConfig, TransformerEncoder};

const LEN: usize = 9;

#[derive(Module, Debug)]
struct Classifier {
    symbols: Embedding,
    encoder: TransformerEncoder,
    answer: Linear,
}

/// Sequences and their classes.
type Batch = (Tensor<2, Int>, Tensor<1, Int>);

impl Classifier {
    fn classify(&self, (ids, classes): Batch) -> ClassificationOutput {
        let vectors = self.symbols.forward(ids);
        let (lengths, mut pass) = (vec![LEN; vectors.dims()[0]], Pass::of(&vectors));
        let states = self.encoder.forward(vectors, &lengths, &mut pass);
        let scores = self.answer.forward(states.mean_dim(1).squeeze_dim(1));
        let loss = CrossEntropyLossConfig::new().init(&scores.device()).forward(scores.clone(), classes.clone());
        ClassificationOutput::new(loss, scores, classes)
    }
}

impl TrainStep for Classifier {
    type Input = Batch;
    type Output = ClassificationOutput;
    fn step(&self, batch: Batch) -> TrainOutput<ClassificationOutput> {
        let output = self.classify(batch);
        TrainOutput::new(self, output.loss.backward(), output)
    }
}

impl InferenceStep for Classifier {
    type Input = Batch;
    type Output = ClassificationOutput;
    fn step(&self, batch: Batch) -> ClassificationOutput {
        self.classify(batch)
    }
}

/// A number stands for the sequence of its bits.
struct Bits;

impl Batcher<usize, Batch> for Bits {
    fn batch(&self, numbers: Vec<usize>, device: &Device) -> Batch {
        let ids: Vec<i32> = numbers.iter().flat_map(|n| (0..LEN).map(move |bit| (n >> bit & 1) as i32)).collect();
        let classes: Vec<i32> = numbers.iter().map(|n| i32::from(n.count_ones() as usize > LEN / 2)).collect();
        let ids = Tensor::from_data(TensorData::new(ids, [numbers.len(), LEN]), device);
        (ids, Tensor::from_data(TensorData::new(classes, [numbers.len()]), device))
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Backend::Flex.open()?.device;
    device.seed(1);
    let (valid, train): (Vec<usize>, Vec<usize>) = (0..1 << LEN).partition(|n| n % 4 == 0);
    let loader = |numbers: &[usize], device: Device| {
        let builder = DataLoaderBuilder::new(Bits).batch_size(32).shuffle(1).set_device(device);
        builder.build(InMemDataset::new(numbers.to_vec()))
    };
    let config = TransformerConfig { d_model: 16, d_feed_forward: 32, n_heads: 2, ..TransformerConfig::default() };
    let (symbols, answer) = (EmbeddingConfig::new(2, 16).init(&device), LinearConfig::new(16, 2).init(&device));
    let model = Classifier { symbols, encoder: config.init_encoder(&device)?, answer }.train();
    let folder = tempfile::tempdir()?;
    let result = SupervisedTraining::new(
        folder.path(),
        loader(&train, device.clone().autodiff()),
        loader(&valid, device.clone()),
    )
    .metrics((AccuracyMetric::new(), LossMetric::new()))
    .num_epochs(8)
    .launch(Learner::new(model, AdamConfig::new().init(), 0.003));
    let ClassificationOutput { output, targets, .. } = result.model.classify(Bits.batch(valid, &device));
    let right = output.argmax(1).squeeze_dim::<1>(1).equal(targets).int().sum().into_scalar::<i64>();
    println!("{right} of {} new sequences right", 1 << (LEN - 2));
    Ok(())
}
