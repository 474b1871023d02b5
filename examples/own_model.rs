//! Attention in a model of one's own, trained with an optimizer of burn: does the first symbol of a sequence come again?
//!
//! cargo run --release --example own_model

use burn::module::Module;
use burn::nn::{Embedding, Linear, loss::CrossEntropyLossConfig};
use burn::optim::{AdamConfig, GradientsParams};
use burn::tensor::{Device, Int, Tensor, TensorData};
use lookback::backend::Backend;
use lookback::layers::attention::multi_head::{MultiHeadConfig, SelfAttention};
use lookback::layers::position::{AttentionPositions, PositionConfig};
use lookback::layers::{Init, Mask, Pass};

const N_SYMBOLS: usize = 8;
const LEN: usize = 6;
const WIDTH: usize = 32;

/// Symbols with a mark for the first place, one attention, one answer read off the first place.
#[derive(Module, Debug)]
struct ComesAgain {
    symbols: Embedding,
    places: Embedding,
    attention: SelfAttention,
    answer: Linear,
}

impl ComesAgain {
    fn new(device: &Device) -> Self {
        let init = Init::new(1, device);
        Self {
            symbols: init.embedding(N_SYMBOLS, WIDTH),
            places: init.embedding(LEN, WIDTH),
            attention: SelfAttention::new(&MultiHeadConfig::new(WIDTH, 4), &PositionConfig::None {}, &init),
            answer: init.linear(WIDTH, 2, 1),
        }
    }

    /// `[batch, LEN]` ids to `[batch, 2]` scores.
    fn forward(&self, ids: Tensor<2, Int>) -> Tensor<2> {
        let places = Tensor::arange(0..LEN as i64, &ids.device()).unsqueeze::<2>();
        let input = self.symbols.forward(ids) + self.places.forward(places);
        let found = self.attention.forward(input, &Mask::none(), &AttentionPositions::None, &mut Pass::inference());
        self.answer.forward(found.narrow(1, 0, 1).squeeze_dim(1))
    }
}

/// Sequences and their answers, by a small generator of random numbers.
fn examples(n: usize, state: &mut u64, device: &Device) -> (Tensor<2, Int>, Tensor<1, Int>) {
    let mut symbol = || {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (*state >> 33) as i64 % N_SYMBOLS as i64
    };
    let ids: Vec<i64> = (0..n * LEN).map(|_| symbol()).collect();
    let answers: Vec<i64> = ids.chunks(LEN).map(|row| i64::from(row[1..].contains(&row[0]))).collect();
    (
        Tensor::from_data(TensorData::new(ids, [n, LEN]), device),
        Tensor::from_data(TensorData::new(answers, [n]), device),
    )
}

fn main() -> lookback::error::Result<()> {
    let device = Backend::Flex.open()?.device;
    let learning = device.clone().autodiff();
    let (mut model, mut optimizer, mut state) = (ComesAgain::new(&device).train(), AdamConfig::new().init(), 7);
    let cross_entropy = CrossEntropyLossConfig::new().init(&learning);
    for update in 1..=300 {
        let (ids, answers) = examples(128, &mut state, &learning);
        let loss = cross_entropy.forward(model.forward(ids), answers);
        if update % 100 == 0 {
            println!("update {update}: loss {:.3}", loss.clone().into_scalar::<f32>());
        }
        let gradients = GradientsParams::from_grads(loss.backward(), &model);
        model = optimizer.step(0.005, model, gradients);
    }
    let (ids, answers) = examples(1000, &mut state, &device);
    let right = model.valid().forward(ids).argmax(1).squeeze_dim::<1>(1).equal(answers).int().sum();
    println!("{} of 1000 new sequences right", right.into_scalar::<i64>());
    Ok(())
}
