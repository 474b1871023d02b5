//! A decoder of one's own, with which this crate searches, samples and scores as with its own: it learns to write letters backwards.
//!
//! cargo run --release --example own_decoder

use burn::module::Module;
use burn::nn::{Embedding, Linear, loss::CrossEntropyLossConfig};
use burn::optim::{AdamConfig, GradientsParams};
use burn::tensor::{Device, Int, Tensor, activation::sigmoid};
use lookback::backend::Backend;
use lookback::data::batch::{Batch, Example, Padded};
use lookback::data::tokenizer::{PAD, SPECIALS};
use lookback::decoding::{DecodingConfig, Request, decode};
use lookback::layers::attention::{Alignment, AttentionMemory, ScoreConfig, WindowConfig};
use lookback::layers::{Init, Pass};
use lookback::models::{Autoregressive, Seq2Seq};

const N_LETTERS: u64 = 8;
const MAX_LEN: u64 = 5;
const VOCAB_SIZE: usize = SPECIALS.len() + N_LETTERS as usize;
const WIDTH: usize = 48;

/// A recurrence of one gate over what attention finds: with `x_t = [h_{t-1}; y_{t-1}; c_t]`,
/// `h_t = (1 - z_t) h_{t-1} + z_t tanh(W x_t)` and `z_t = sigmoid(V x_t)`.
#[derive(Module, Debug)]
struct OneGate {
    words: Embedding,
    places: Embedding,
    attention: Alignment,
    candidate_and_gate: Linear,
    readout: Linear,
}

impl OneGate {
    fn new(device: &Device) -> Self {
        let (init, score) = (Init::new(1, device), ScoreConfig::Additive { d_attention: WIDTH });
        Self {
            words: init.embedding(VOCAB_SIZE, WIDTH),
            places: init.embedding(MAX_LEN as usize + 1, WIDTH),
            attention: Alignment::new(&score, &WindowConfig::Global {}, WIDTH, WIDTH, &init),
            candidate_and_gate: init.linear(3 * WIDTH, 2 * WIDTH, 2),
            readout: init.linear(WIDTH, VOCAB_SIZE, 1),
        }
    }
}

impl Autoregressive for OneGate {
    type Memory = AttentionMemory;
    type State = Tensor<2>;

    fn start(&self, memory: &AttentionMemory, n_beams: usize) -> Tensor<2> {
        Tensor::zeros([memory.keys.dims()[0] * n_beams, WIDTH], &memory.keys.device())
    }

    fn step(
        &self,
        previous: Tensor<1, Int>,
        h: Tensor<2>,
        memory: &AttentionMemory,
        pass: &mut Pass,
    ) -> (Tensor<2>, Tensor<2>) {
        let ([rows, _], batch) = (h.dims(), memory.keys.dims()[0]);
        // The hypotheses of a sentence are queries side by side; the window is the whole source, at whatever step.
        let context = self.attention.forward(h.clone().reshape([batch, rows / batch, WIDTH]), &[0], memory, pass);
        let word = self.words.forward(previous.unsqueeze_dim(1)).squeeze_dim(1);
        let made =
            self.candidate_and_gate.forward(Tensor::cat(vec![h.clone(), word, context.reshape([rows, WIDTH])], 1));
        let (candidate, gate) = (made.clone().narrow(1, 0, WIDTH).tanh(), sigmoid(made.narrow(1, WIDTH, WIDTH)));
        let next = h.clone() + gate * (candidate - h);
        (self.readout.forward(next.clone()), next)
    }

    fn device(&self) -> Device {
        self.words.weight.device()
    }
}

impl Seq2Seq for OneGate {
    fn encode(&self, source: &Padded, pass: &mut Pass) -> AttentionMemory {
        let places = Tensor::arange(0..source.len() as i64, &source.ids.device()).unsqueeze::<2>();
        self.attention.prepare(
            self.words.forward(source.ids.clone()) + self.places.forward(places),
            &source.lengths,
            pass,
        )
    }

    fn forward(&self, source: &Padded, target_input: &Padded, pass: &mut Pass) -> Tensor<3> {
        let memory = self.encode(source, pass);
        self.prefill(target_input.ids.clone(), self.start(&memory, 1), &memory, target_input.len(), pass)
            .0
            .expect("all are wanted")
    }
}

fn main() -> lookback::error::Result<()> {
    let (device, mut random) = (Backend::Flex.open()?.device, 7u64);
    let mut below = |n: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 33) % n
    };
    let mut letters =
        || (0..=below(MAX_LEN)).map(|_| SPECIALS.len() as u32 + below(N_LETTERS) as u32).collect::<Vec<u32>>();
    let backwards = |source: &Vec<u32>| source.iter().rev().copied().collect::<Vec<u32>>();
    let learning = device.clone().autodiff();
    let (mut model, mut optimizer) = (OneGate::new(&device).train(), AdamConfig::new().init());
    let cross_entropy = CrossEntropyLossConfig::new().with_pad_tokens(Some(vec![PAD as usize])).init(&learning);
    for update in 1..=200 {
        let sources: Vec<Vec<u32>> = (0..64).map(|_| letters()).collect();
        let examples: Vec<Example> =
            sources.into_iter().map(|source| Example { target: backwards(&source), source }).collect();
        let batch = Batch::new(&examples.iter().collect::<Vec<_>>(), &learning);
        let logits = model.forward(&batch.source, &batch.target_input, &mut Pass::training(1, update, 0));
        let loss = cross_entropy.forward(logits.flatten(0, 1), batch.target_output.ids.flatten(0, 1));
        if update % 50 == 0 {
            println!("update {update}: loss {:.3}", loss.clone().into_scalar::<f32>());
        }
        let gradients = GradientsParams::from_grads(loss.backward(), &model);
        model = optimizer.step(0.005, model, gradients);
    }
    let requests: Vec<Request> = (0..500).map(|_| Request::new(letters())).collect();
    let beam = DecodingConfig { beam_size: 4, ..DecodingConfig::default() };
    let found = decode(&model.valid(), &requests, &beam, 1, |_| ());
    let n_right =
        requests.iter().zip(&found).filter(|(request, found)| found[0].tokens == backwards(&request.source)).count();
    println!("{n_right} of 500 written backwards");
    Ok(())
}
