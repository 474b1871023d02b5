//! Fused operations: each the same as the layer written out in burn's operations, forward and backward, dropout included.

use crate::support::{assert_close, closed_form_tensor, gradients_by_path, host_backends, random_cases};
use burn::module::Module;
use burn::tensor::{Device, Tensor};
use lookback::data::batch::{Batch, Example};
use lookback::layers::attention::scaled_dot_product::{AttentionTerms, scaled_dot_product_attention};
use lookback::layers::attention::{AttentionConfig, ScoreConfig, WindowConfig};
use lookback::layers::feed_forward::{Activation, FeedForward};
use lookback::layers::fused::{self, AlignmentScore, Heads, Projected};
use lookback::layers::mixer::{MixerKind, Mixers, SideConfig};
use lookback::layers::recurrent::CellKind;
use lookback::layers::{Init, Mask, Pass};
use lookback::models::readout::ReadoutConfig;
use lookback::models::rnn::{Bridge, Directions};
use lookback::models::weights::{collect, to_vec};
use lookback::models::{Model, ModelConfig, RnnConfig, Vocabularies};
use lookback::training::optimizer::GradientSet;
use lookback::training::{UpdatePart, gradients};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// How far fused and written out may be apart, as a part of the largest element: sums of a thousand 32-bit numbers in
/// another order.
const TOLERANCE: f64 = 3e-5;

fn largest_of<'a>(tensors: impl IntoIterator<Item = &'a Vec<f32>>) -> f32 {
    tensors.into_iter().flatten().fold(0f32, |max, value| value.abs().max(max))
}

/// Compares one of several tensors, of which `largest` is the largest element. A gradient that is zero but for rounding, as
/// that of a key's bias, has no scale of its own: it is measured by a hundredth of that of the others.
fn assert_close_among(what: &str, found: &[f32], expected: &[f32], largest: f32) {
    let with_scale = |values: &[f32]| [values, &[1e-2 * largest]].concat();
    assert_close(what, &with_scale(found), &with_scale(expected), TOLERANCE);
}

/// Compares tensors that have been measured together, each as one of them.
fn assert_all_close(what: &str, names: &[&str], found: &[Vec<f32>], expected: &[Vec<f32>]) {
    assert_eq!(expected.len(), found.len(), "{what}");
    let largest = largest_of(expected);
    for (name, (found, expected)) in names.iter().zip(found.iter().zip(expected)) {
        assert_close_among(&format!("{name} of {what}"), found, expected, largest);
    }
}

/// An attention in several heads.
#[derive(Clone, Debug)]
struct Case {
    batch: usize,
    query_len: usize,
    key_len: usize,
    n_key_value_heads: usize,
    group: usize,
    d_head: usize,
    /// Real keys of each sentence, in thousandths of the length.
    lengths: Option<Vec<usize>>,
    is_causal: bool,
    has_bias: bool,
    dropout_rate: f64,
}

fn cases() -> impl Strategy<Value = Case> {
    // Blocks have 256 queries and 512 keys: lengths on both sides of each.
    let len = prop_oneof![4 => 1usize..12, 1 => 60usize..70, 1 => 254usize..259];
    let key_len = prop_oneof![4 => 1usize..12, 1 => 60usize..70, 1 => 510usize..515];
    let sizes = (1usize..4, len, key_len, 1usize..3, 1usize..4, 1usize..6);
    let lengths = prop::option::of(prop::collection::vec(0usize..=1000, 3));
    (sizes, lengths, any::<bool>(), any::<bool>(), prop_oneof![Just(0.0), Just(0.3)]).prop_map(
        |(
            (batch, query_len, key_len, n_key_value_heads, group, d_head),
            lengths,
            is_causal,
            has_bias,
            dropout_rate,
        )| {
            let is_causal = is_causal && lengths.is_none();
            let key_len = if is_causal { query_len } else { key_len };
            Case {
                batch,
                query_len,
                key_len,
                n_key_value_heads,
                group,
                d_head,
                lengths,
                is_causal,
                has_bias,
                dropout_rate,
            }
        },
    )
}

impl Case {
    fn n_heads(&self) -> usize {
        self.n_key_value_heads * self.group
    }

    fn mask(&self, device: &Device) -> Mask {
        match &self.lengths {
            Some(parts) => {
                let lengths: Vec<usize> = parts[..self.batch].iter().map(|part| part * self.key_len / 1000).collect();
                Mask::padding(&lengths, self.key_len, device)
            }
            None if self.is_causal => Mask::causal(self.query_len, device),
            None => Mask::none(),
        }
    }

    /// Context and the gradients of queries, keys and values, and bias.
    fn measure(&self, is_fused: bool, device: &Device) -> Vec<Vec<f32>> {
        let (width, key_width) = (self.n_heads() * self.d_head, 2 * self.n_key_value_heads * self.d_head);
        let query = closed_form_tensor("query", [self.batch, self.query_len, width], 6.0, device).require_grad();
        let key_value = closed_form_tensor("key", [self.batch, self.key_len, key_width], 6.0, device).require_grad();
        let shape = [1, self.n_heads(), self.query_len, self.key_len];
        let bias = self.has_bias.then(|| closed_form_tensor("bias", shape, 3.0, device).require_grad());
        let mask = self.mask(device);
        let mut pass = Pass::training(1, 2, 3);
        let context = if is_fused {
            let heads = Heads {
                n_heads: self.n_heads(),
                n_key_value_heads: self.n_key_value_heads,
                d_head: self.d_head,
                lengths: mask.lengths(),
                is_causal: mask.is_causal(),
                dropout: pass.next_dropout(self.dropout_rate),
            };
            fused::attention(Projected::Apart(query.clone(), key_value.clone()), bias.clone(), heads)
        } else {
            self.written_out(query.clone(), key_value.clone(), bias.as_ref(), &mask, &mut pass)
        };
        let weights = closed_form_tensor("coefficients", context.dims(), 1.0, device);
        let grads = (context.clone() * weights).sum().backward();
        let mut found = vec![to_vec(context)];
        found.push(to_vec(query.grad(&grads).expect("a leaf has a gradient")));
        found.push(to_vec(key_value.grad(&grads).expect("a leaf has a gradient")));
        found.extend(bias.map(|bias| to_vec(bias.grad(&grads).expect("a leaf has a gradient"))));
        found
    }

    fn written_out(
        &self,
        query: Tensor<3>,
        key_value: Tensor<3>,
        bias: Option<&Tensor<4>>,
        mask: &Mask,
        pass: &mut Pass,
    ) -> Tensor<3> {
        let heads = |tensor: Tensor<3>, n: usize| {
            let [batch, len, _] = tensor.dims();
            tensor.reshape([batch, len, n, self.d_head]).swap_dims(1, 2)
        };
        let width = self.n_key_value_heads * self.d_head;
        let (key, value) = (key_value.clone().narrow(2, 0, width), key_value.narrow(2, width, width));
        let [key, value] = [key, value].map(|part| heads(part, self.n_key_value_heads));
        let terms = AttentionTerms { bias, dropout_rate: self.dropout_rate, ..AttentionTerms::masked(mask) };
        let context = scaled_dot_product_attention(heads(query, self.n_heads()), key, value, &terms, pass);
        let [batch, n_heads, len, d_head] = context.dims();
        context.swap_dims(1, 2).reshape([batch, len, n_heads * d_head])
    }
}

proptest! {
    #![proptest_config(random_cases(96))]

    #[test]
    fn attention_in_blocks_is_attention_written_out(case in cases()) {
        for adapter in host_backends() {
            let device = adapter.device.clone().autodiff();
            let (expected, found) = (case.measure(false, &device), case.measure(true, &device));
            let what = format!("{case:?} on {}", adapter.backend);
            assert_all_close(&what, &["context", "query", "key and value", "bias"], &found, &expected);
        }
    }
}

/// Context and gradients of attention with queries that do not wait for each other.
fn contexts(
    [batch, query_len, source_len, d_key, d_value]: [usize; 5],
    lengths: &[usize],
    score: AlignmentScore,
    is_fused: bool,
    device: &Device,
) -> Vec<Vec<f32>> {
    let leaf = |name, shape| closed_form_tensor::<3>(name, shape, 4.0, device).require_grad();
    let query = leaf("query", [batch, query_len, d_key]);
    let (keys, values) = (leaf("key", [batch, source_len, d_key]), leaf("value", [batch, source_len, d_value]));
    let vector = closed_form_tensor::<2>("vector", [d_key, 1], 4.0, device).require_grad();
    let is_network = score == AlignmentScore::Network;
    let mask = Mask::padding(lengths, source_len, device);
    let context = if is_fused {
        let vector = is_network.then(|| vector.clone());
        fused::contexts(score, query.clone(), keys.clone(), values.clone(), vector, mask.lengths())
    } else {
        let scores = match score {
            AlignmentScore::Dot { scale } => query.clone().matmul(keys.clone().swap_dims(1, 2)).mul_scalar(scale),
            AlignmentScore::Network => {
                let sums = keys.clone().unsqueeze_dim::<4>(1) + query.clone().unsqueeze_dim::<4>(2);
                sums.tanh().matmul(vector.clone().unsqueeze()).squeeze_dim(3)
            }
        };
        mask.softmax(scores.unsqueeze_dim(1)).squeeze_dim::<3>(1).matmul(values.clone())
    };
    let weights = closed_form_tensor("coefficients", context.dims(), 1.0, device);
    let grads = (context.clone() * weights).sum().backward();
    let mut found = vec![to_vec(context)];
    found.extend([query, keys, values].map(|leaf| to_vec(leaf.grad(&grads).expect("a leaf has a gradient"))));
    found.extend(is_network.then(|| to_vec(vector.grad(&grads).expect("a leaf has a gradient"))));
    found
}

proptest! {
    #![proptest_config(random_cases(64))]

    #[test]
    fn contexts_of_all_queries_are_contexts_written_out(
        sizes in [1usize..4, 1usize..6, 1usize..8, 1usize..20, 1usize..20],
        parts in prop::collection::vec(0usize..=1000, 3),
        scale in prop::option::of(0.1f32..2.0),
    ) {
        let lengths: Vec<usize> = parts[..sizes[0]].iter().map(|part| part * sizes[2] / 1000).collect();
        let score = scale.map_or(AlignmentScore::Network, |scale| AlignmentScore::Dot { scale });
        for adapter in host_backends() {
            let device = adapter.device.clone().autodiff();
            let expected = contexts(sizes, &lengths, score, false, &device);
            let found = contexts(sizes, &lengths, score, true, &device);
            let what = format!("{score:?}, {sizes:?}, {lengths:?} on {}", adapter.backend);
            assert_all_close(&what, &["context", "query", "keys", "values", "vector"], &found, &expected);
        }
    }
}

/// The output and the gradients of a feed-forward network, by the name of the input.
fn feed_forward(layer: &FeedForward, shape: [usize; 3], is_fused: bool, device: &Device) -> Vec<Vec<f32>> {
    let input = closed_form_tensor("input", shape, 4.0, &device.clone().autodiff()).require_grad();
    let mut pass = Pass::training(1, 2, 3).fused(is_fused);
    let output = layer.forward(input.clone(), &mut pass);
    let weights = closed_form_tensor("weights", shape, 1.0, &device.clone().autodiff());
    let gradients = (output.clone() * weights).sum().backward();
    let of_input = to_vec(input.grad(&gradients).expect("the input has a gradient"));
    let of_parameters = gradients_by_path(layer, gradients).into_values();
    [to_vec(output), of_input].into_iter().chain(of_parameters).collect()
}

#[test]
fn a_fused_feed_forward_network_is_the_network_written_out() {
    // Widths on both sides of what the instructions take at once; rows enough for more than one task.
    for (d_model, d_inner, rows) in [(3, 5, 7), (16, 33, 40), (8, 64, 700)] {
        for activation in
            [Activation::Relu, Activation::Gelu, Activation::GeluTanh, Activation::Silu, Activation::Swiglu]
        {
            for (rate, adapter) in
                [0.0, 0.3].into_iter().flat_map(|rate| host_backends().into_iter().map(move |a| (rate, a)))
            {
                let device = &adapter.device;
                let layer = FeedForward::new(d_model, d_inner, activation, rate, &Init::new(1, device)).train();
                let shape = [2, rows, d_model];
                let [found, expected] = [true, false].map(|is_fused| feed_forward(&layer, shape, is_fused, device));
                let what = format!("{activation:?}, {d_inner} units, dropout {rate} on {}", adapter.backend);
                let names = ["output", "input", "inner.bias", "inner.weight", "outer.bias", "outer.weight"];
                assert_all_close(&what, &names, &found, &expected);
            }
        }
    }
}

/// Sentences of every length from none to `len` on both sides, `batch` in all: more than one task carries.
fn sentences(batch: usize, len: usize) -> Vec<Example> {
    let ids = |k: usize, len: usize| (0..len).map(|i| 4 + ((i + 5 * k) * 7 % 13) as u32).collect();
    (0..batch).map(|k| Example { source: ids(k, k % (len + 1)), target: ids(k + 3, k * 3 % (len + 1)) }).collect()
}

/// Loss and gradients of one update.
fn measure(model: &Model, examples: &[Example], device: &Device, is_fused: bool) -> (f64, BTreeMap<String, Vec<f32>>) {
    let batch = Batch::new(&examples.iter().collect::<Vec<_>>(), &device.clone().autodiff());
    let n_total = batch.n_target_tokens();
    let place = (3, 4);
    let part = UpdatePart { batch, n_total, smoothing: 0.1, seed: 1, place, is_fused, replacement_rate: 0.0 };
    let (grads, sums) = gradients(model, &part);
    let set = GradientSet::new(model, grads, true);
    let by_path = collect(model).into_keys().map(|path| (path.clone(), set.get(&path).unwrap_or_default()));
    (sums.smoothed, by_path.collect())
}

fn check_update(what: &str, config: &ModelConfig, examples: &[Example], device: &Device) {
    let vocabularies = Vocabularies { source: 17, target: 19, shared: false };
    let model: Model = config.init(vocabularies, 1, device).expect("the config can be used").train();
    let (expected_loss, expected) = measure(&model, examples, device, false);
    let (loss, found) = measure(&model, examples, device, true);
    assert_close(&format!("{what}: loss"), &[loss], &[expected_loss], 1e-6);
    assert_eq!(found.len(), expected.len(), "{what}");
    let largest = largest_of(expected.values());
    for (path, expected) in &expected {
        assert_close_among(&format!("{what}: {path}"), &found[path], expected, largest);
    }
}

#[test]
fn a_fused_update_is_the_update_written_out() {
    for adapter in host_backends() {
        for (name, config) in crate::backends::models() {
            check_update(&format!("{name} on {}", adapter.backend), &config, &sentences(5, 6), &adapter.device);
        }
    }
}

/// A recurrent model; of two layers, its decoder makes its steps one by one, of fused parts.
fn recurrences() -> impl Strategy<Value = RnnConfig> {
    let cell = prop_oneof![Just(CellKind::Vanilla), Just(CellKind::Gru), Just(CellKind::Lstm)];
    let score = prop_oneof![
        Just(ScoreConfig::Dot {}),
        Just(ScoreConfig::ScaledDot {}),
        Just(ScoreConfig::General {}),
        Just(ScoreConfig::Additive { d_attention: 5 }),
        Just(ScoreConfig::Concat { d_attention: 6 }),
    ];
    let window = || WindowConfig::Global {};
    let attention = prop_oneof![
        Just(AttentionConfig::None {}),
        score.clone().prop_map(move |score| AttentionConfig::Bahdanau { score, window: window() }),
        (score, any::<bool>()).prop_map(move |(score, input_feeding)| AttentionConfig::Luong {
            score,
            window: window(),
            input_feeding
        }),
    ];
    let readout = prop_oneof![Just(ReadoutConfig::StateContext {}), Just(ReadoutConfig::DeepOutput { d_maxout: 5 })];
    let encoder = prop_oneof![2 => Just(None), 1 => Just(Some(MixerKind::MinGru)), 1 => Just(Some(MixerKind::Lstm))];
    let shape = (1usize..3, any::<bool>(), any::<bool>(), encoder);
    (cell, attention, readout, shape).prop_map(
        |(cell, attention, readout, (n_layers, reverse_source, starts_at_zero, encoder))| {
            RnnConfig {
                cell,
                encoder: SideConfig { mixer: encoder.map(Mixers::from) },
                n_layers,
                // The width of one direction is that of the decoder, so that any score can compare them.
                directions: Directions::Forward,
                attention,
                reverse_source,
                bridge: if starts_at_zero { Bridge::Zeros } else { Bridge::Learned },
                readout,
                d_embedding: 6,
                d_hidden: 7,
                dropout_rate: 0.2,
                ..RnnConfig::default()
            }
        },
    )
}

proptest! {
    #![proptest_config(random_cases(60))]

    #[test]
    fn a_fused_recurrence_is_its_steps_one_by_one(config in recurrences(), batch in 1usize..40, len in 1usize..7) {
        for adapter in host_backends() {
            let what = format!("{config:?}, {batch} sentences up to {len}, on {}", adapter.backend);
            check_update(&what, &ModelConfig::Rnn(config.clone()), &sentences(batch, len), &adapter.device);
        }
    }
}
