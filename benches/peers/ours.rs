//! Our side of `peers.py`, which says what to do line by line and gets a line of JSON for each.
//!
//! `peers FOLDER BACKEND INSTRUCTIONS` reads `FOLDER/case.json`: the model, its vocabularies and the sentences of a batch, or a run folder and
//! sentences for its model.

use burn::module::Module;
use burn::tensor::{Device, Distribution, Tensor};
use lookback::backend::{Adapter, Backend, is_host};
use lookback::data::batch::{Batch, Example};
use lookback::decoding::{DecodingConfig, EarlyStopping, Request, decode};
use lookback::experiment::run::Run;
use lookback::kernels::machine::InstructionSet;
use lookback::layers::Mask;
use lookback::layers::Pass;
use lookback::models::{Model, ModelConfig, PreparedModel, Vocabularies, weights};
use lookback::ops::{self, Body, HeadSizes, Projected};
use lookback::pool::in_pool;
use lookback::training::loss::smoothed_cross_entropy;
use lookback::training::optimizer::{Adam, AdamConfig, GradientSet};
use lookback::training::{UpdatePart, gradients};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::time::Instant;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Deserialize)]
#[serde(untagged)]
// One exists at a time.
#[allow(clippy::large_enum_variant)]
enum Case {
    Made { model: ModelConfig, vocabulary: usize, shared: bool, source: Vec<Vec<u32>>, target: Vec<Vec<u32>> },
    Trained { run: PathBuf, text: Vec<String> },
}

impl Case {
    /// The model, and sources and targets of the batch.
    #[allow(clippy::type_complexity)]
    fn open(self, adapter: &Adapter) -> lookback::error::Result<(Model, Vec<Vec<u32>>, Vec<Vec<u32>>)> {
        match self {
            Self::Made { model, vocabulary, shared, source, target } => {
                let vocabularies = Vocabularies { source: vocabulary, target: vocabulary, shared };
                Ok((model.init(vocabularies, 1, &adapter.device)?, source, target))
            }
            Self::Trained { run, text } => {
                let loaded = Run::open(&run)?.load_model(adapter, None, |warning| eprintln!("{warning}"))?;
                let source = text.iter().map(|text| loaded.tokenizers.source().encode(text)).collect();
                Ok((loaded.model, source, Vec::new()))
            }
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let [folder, backend, instructions] = &arguments[..] else {
        // Nothing to do without the other side.
        println!("run benches/peers/peers.py instead");
        return Ok(());
    };
    if instructions != "auto" {
        let set = InstructionSet::available().into_iter().find(|set| set.name() == instructions);
        set.ok_or_else(|| format!("this machine does not have {instructions}"))?.cap();
    }
    let adapter = backend.parse::<Backend>()?.open()?;
    let case: Case = serde_json::from_slice(&std::fs::read(Path::new(folder).join("case.json"))?)?;
    let (model, source, target) = case.open(&adapter)?;
    let mut side = Side {
        int8: PreparedModel::int8(model.clone()).ok(),
        learning: Some(model.clone().train()),
        prepared: PreparedModel::new(model.clone()),
        model,
        source,
        target,
        device: adapter.device,
        adam: Adam::new(AdamConfig::default()),
        updates: 0,
    };
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |i: usize| words.get(i).and_then(|word| word.parse::<usize>().ok()).unwrap_or(0);
        let answer = match words.first().copied() {
            Some("weights") => {
                let bytes =
                    weights::to_safetensors(&weights::collect(&side.model), &Default::default(), HashMap::new())?;
                std::fs::write(Path::new(folder).join("weights.safetensors"), bytes)?;
                json!(side.model.num_params())
            }
            Some("source") => json!(side.source),
            Some("loss") => side.loss(),
            Some("update") => side.updates(number(1), words.get(2) != Some(&"plain")),
            Some("decode") => {
                let is_given = |word| words.iter().skip(4).any(|given| *given == word);
                side.decode(number(1), number(2), number(3), is_given("int8"), is_given("early"))
            }
            Some("attention") => attention([number(1), number(2), number(3), number(4)], number(5), &side.device),
            _ => json!(null),
        };
        println!("{answer}");
    }
    Ok(())
}

struct Side {
    source: Vec<Vec<u32>>,
    target: Vec<Vec<u32>>,
    /// Where the tensors are on a CPU.
    int8: Option<PreparedModel>,
    prepared: PreparedModel,
    model: Model,
    learning: Option<Model>,
    device: Device,
    adam: Adam,
    updates: u64,
}

impl Side {
    fn batch(&self, device: &Device) -> Batch {
        let pairs = self.source.iter().zip(&self.target);
        let examples: Vec<Example> =
            pairs.map(|(source, target)| Example { source: source.clone(), target: target.clone() }).collect();
        Batch::new(&examples.iter().collect::<Vec<_>>(), device)
    }

    /// The mean loss of the untrained model, without dropout.
    fn loss(&self) -> Value {
        let batch = self.batch(&self.device);
        let logits = self.model.forward_batch(&batch, &mut Pass::inference());
        let sums = smoothed_cross_entropy(logits, &batch.target_ids, 0.1, 1).sums();
        json!(sums.smoothed / sums.n_tokens as f64)
    }

    /// Seconds of each update: forward, backward, clipping, Adam.
    fn updates(&mut self, n: usize, is_fused: bool) -> Value {
        let batch = self.batch(&self.device.clone().autodiff());
        let n_total = batch.n_target_tokens();
        let seconds = (0..n).map(|_| {
            let start = Instant::now();
            self.updates += 1;
            let place = (0, self.updates);
            let batch = batch.clone();
            let part = UpdatePart { batch, n_total, smoothing: 0.1, seed: 1, place, is_fused, replacement_rate: 0.0 };
            in_pool(&self.device.clone(), || {
                let model = self.learning.take().expect("one update at a time");
                let (grads, _) = gradients(&model, &part);
                let grads = GradientSet::new(&model, grads, is_host(&self.device));
                let scale = 1.0 / grads.norm().max(1.0);
                self.learning = Some(self.adam.step(model, grads, scale, 1e-4));
            });
            // On a GPU, Adam may still be computed.
            self.device.sync().expect("the device answers");
            start.elapsed().as_secs_f64()
        });
        json!(seconds.collect::<Vec<_>>())
    }

    /// Seconds for all sources in batches of `batch`, and the words written: at most `max_words`, or as many as the program
    /// allows if that is 0. A batch of 0 is one sentence at a time, each when the one before is there.
    fn decode(&self, beam: usize, batch: usize, max_words: usize, is_int8: bool, early_stopping: bool) -> Value {
        let mut config = DecodingConfig {
            beam_size: beam,
            batch_sentences: batch.max(1) * beam,
            batch_tokens: usize::MAX / 4,
            early_stopping: EarlyStopping::Full(early_stopping),
            ..DecodingConfig::default()
        };
        if max_words > 0 {
            (config.max_len_factor, config.max_len_extra) = (Some(0.0), Some(max_words));
        }
        let requests: Vec<Request> = self.source.iter().map(|source| Request::new(source.clone())).collect();
        let at_once = if batch == 0 { 1 } else { requests.len() };
        let start = Instant::now();
        let found = requests.chunks(at_once).flat_map(|requests| match &self.int8 {
            Some(model) if is_int8 => decode(model, requests, &config, 1, |_| ()),
            _ => decode(&self.prepared, requests, &config, 1, |_| ()),
        });
        let words: Vec<Vec<u32>> = found.map(|hypotheses| hypotheses[0].tokens.clone()).collect();
        json!({ "seconds": start.elapsed().as_secs_f64(), "words": words })
    }
}

/// Seconds of attention alone, forward and backward, and the most memory that it took.
fn attention([batch, len, n_heads, d_head]: [usize; 4], n: usize, device: &Device) -> Value {
    let width = n_heads * d_head;
    let heads = HeadSizes { n_heads, n_key_value_heads: n_heads, d_head };
    let mask = Mask::causal(len, device);
    let input: Tensor<3> = Tensor::random([batch, len, 3 * width], Distribution::Default, &device.clone().autodiff());
    let before = reset_peak();
    let seconds = (0..n).map(|_| {
        let input = input.clone().require_grad();
        let start = Instant::now();
        let output = ops::attention(Projected::Packed(input.clone()), None, heads, &mask, None, Body::Fused);
        let grads = output.sum_dim(2).sum().backward();
        let gradient = input.grad(&grads);
        let seconds = start.elapsed().as_secs_f64();
        assert!(gradient.is_some());
        seconds
    });
    let seconds: Vec<f64> = seconds.collect();
    json!({ "seconds": seconds, "bytes": peak().saturating_sub(before) })
}

fn status(key: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap_or("0 kB");
    line.trim_start_matches(':').split_whitespace().next().and_then(|kb| kb.parse::<usize>().ok()).unwrap_or(0) * 1024
}

/// Forgets the highest use of memory so far; what is in use now.
fn reset_peak() -> usize {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    status("VmRSS")
}

fn peak() -> usize {
    status("VmHWM")
}
