//! A score function of one's own: attention by distance, which finds the value whose key lies nearest to a query.
//!
//! cargo run --release --example own_score

use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::optim::{AdamConfig, GradientsParams};
use burn::tensor::{Device, Distribution, Tensor};
use lookback::backend::Backend;
use lookback::layers::{Init, Mask};

const N_KEYS: usize = 5;
/// Numbers of a key; all but the first two mean nothing.
const WIDTH: usize = 6;

/// `e_ti = -s |W q_t - W k_i|^2`: the nearest key wins, and `s` says by how much.
#[derive(Module, Debug)]
struct Distance {
    projection: Linear,
    sharpness: Param<Tensor<1>>,
}

impl Distance {
    fn new(device: &Device) -> Self {
        let init = Init::new(1, device);
        Self { projection: init.linear_without_bias(WIDTH, 2, 1), sharpness: init.constant([1], 1.0) }
    }

    /// `[batch, query_len, WIDTH]` and `[batch, key_len, WIDTH]` to `[batch, query_len, key_len]`.
    fn forward(&self, query: Tensor<3>, keys: Tensor<3>) -> Tensor<3> {
        let (query, keys) = (self.projection.forward(query), self.projection.forward(keys));
        let apart = query.unsqueeze_dim::<4>(2) - keys.unsqueeze_dim::<4>(1);
        let squares = apart.square().sum_dim(3).squeeze_dim::<3>(3);
        squares * self.sharpness.val().neg().reshape([1, 1, 1])
    }

    /// What the queries find among the values: `[batch, query_len, d_value]`, and the weights.
    fn attend(&self, query: Tensor<3>, keys: Tensor<3>, values: Tensor<3>, lengths: &[usize]) -> [Tensor<3>; 2] {
        let mask = Mask::padding(lengths, N_KEYS, &keys.device());
        let weights = mask.softmax(self.forward(query, keys).unsqueeze_dim(1)).squeeze_dim::<3>(1);
        [weights.clone().matmul(values), weights]
    }
}

/// Keys, a query near one of them in its first two numbers, values, and the value of the nearest key.
fn examples(n: usize, device: &Device) -> [Tensor<3>; 4] {
    let random = |shape| Tensor::<3>::random(shape, Distribution::Uniform(-1.0, 1.0), device);
    let (keys, query, values) = (random([n, N_KEYS, WIDTH]), random([n, 1, WIDTH]), random([n, N_KEYS, 1]));
    let apart = (keys.clone() - query.clone()).narrow(2, 0, 2).square().sum_dim(2);
    let answer = values.clone().gather(1, apart.argmin(1));
    [query, keys, values, answer]
}

fn main() -> lookback::error::Result<()> {
    let device = Backend::Flex.open()?.device;
    device.seed(1);
    let learning = device.clone().autodiff();
    let (mut score, mut optimizer) = (Distance::new(&device).train(), AdamConfig::new().init());
    for update in 1..=400 {
        let [query, keys, values, answer] = examples(128, &learning);
        let [found, _] = score.attend(query, keys, values, &[N_KEYS; 128]);
        let loss = (found - answer).square().mean();
        if update % 100 == 0 {
            println!("update {update}: squared error {:.4}", loss.clone().into_scalar::<f32>());
        }
        let gradients = GradientsParams::from_grads(loss.backward(), &score);
        score = optimizer.step(0.05, score, gradients);
    }
    let [query, keys, values, answer] = examples(1000, &device);
    let [_, weights] = score.valid().attend(query, keys, values.clone(), &[N_KEYS; 1000]);
    let nearest = values.gather(1, weights.swap_dims(1, 2).argmax(1));
    println!("{} of 1000 nearest keys found", nearest.equal(answer).int().sum().into_scalar::<i64>());
    Ok(())
}
