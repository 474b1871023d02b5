//! The laws of every score with every window, over random shapes, lengths and numbers.

use super::{scores, windows};
use crate::support::{SAME_TOLERANCE, assert_close, flex, random_cases, tensor, weighted_sum};
use burn::module::Module;
use burn::tensor::{Device, Tensor};
use lookback::layers::attention::{Alignment, ScoreConfig, WindowConfig};
use lookback::layers::{Init, Pass, Trace};
use lookback::models::weights::{apply, collect, to_vec};
use lookback::random::{Purpose, Stream};
use proptest::collection::vec;
use proptest::prelude::*;
use std::path::Path;

/// Of decoder and encoder states, so that every score can be made.
const D: usize = 5;

/// Longer than any source here.
const MAX_SOURCE_LEN: usize = 16;

/// The sources and the steps of a case; the numbers are normal, from `seed`.
#[derive(Clone, Debug)]
struct Shape {
    seed: u64,
    lengths: Vec<usize>,
    /// Of the padding beyond the longest source.
    extra: usize,
    steps: Vec<usize>,
    half_width: usize,
}

fn shapes() -> impl Strategy<Value = Shape> {
    (0..1000u64, vec(0..9usize, 1..5), 0..3usize, vec(0..12usize, 1..4), 1..4usize)
        .prop_map(|(seed, lengths, extra, steps, half_width)| Shape { seed, lengths, extra, steps, half_width })
}

/// What one attention makes of a case.
struct Seen {
    weights: Vec<Vec<f32>>,
    contexts: Vec<Vec<f32>>,
    centres: Option<Vec<f32>>,
}

impl Shape {
    fn source_len(&self) -> usize {
        (self.lengths.iter().max().expect("a batch has sentences") + self.extra).max(1)
    }

    fn normals(&self, part: u64, n: usize) -> Vec<f32> {
        let stream = Stream::new(self.seed, Purpose::Initialization, &[99, part]);
        (0..n as u64).map(|i| 1.5 * stream.normal(i) as f32).collect()
    }

    fn layer(&self, score: &ScoreConfig, window: &WindowConfig) -> Alignment {
        let layer = Alignment::new(score, window, D, D, &Init::new(self.seed, &flex()));
        let mut weights = collect(&layer);
        for (i, weight) in weights.values_mut().enumerate() {
            weight.values = self.normals(10 + i as u64, weight.values.len());
        }
        apply(layer, &weights, Path::new("normal numbers")).expect("the module's own shapes")
    }

    /// Each query's row, and each word's.
    fn queries(&self) -> Vec<f32> {
        self.normals(0, self.lengths.len() * self.steps.len() * D)
    }

    fn values(&self) -> Vec<f32> {
        self.normals(1, self.lengths.len() * self.source_len() * D)
    }

    fn see(&self, layer: &Alignment) -> Seen {
        self.see_given(layer, self.queries(), self.values())
    }

    fn see_given(&self, layer: &Alignment, queries: Vec<f32>, values: Vec<f32>) -> Seen {
        let (batch, source_len) = (self.lengths.len(), self.source_len());
        let device = flex();
        let memory = layer.prepare(tensor(values, [batch, source_len, D], &device), &self.lengths, &Pass::inference());
        let query: Tensor<3> = tensor(queries, [batch, self.steps.len(), D], &device);
        let mut trace = Trace::default();
        let contexts = to_vec(layer.forward(query.clone(), &self.steps, &memory, &mut Pass::traced(&mut trace)));
        let unseen = to_vec(layer.forward(query, &self.steps, &memory, &mut Pass::inference()));
        assert_eq!(contexts, unseen, "watching changes nothing, not a bit");
        let rows = |values: &[f32], width: usize| values.chunks(width).map(<[f32]>::to_vec).collect();
        let weights = &trace.get("weights").expect("they are traced").values;
        Seen {
            weights: rows(weights, source_len),
            contexts: rows(&contexts, D),
            centres: trace.get("center").map(|centres| centres.values.clone()),
        }
    }

    /// The length of the sentence that row `row` of the weights looks at.
    fn length(&self, row: usize) -> usize {
        self.lengths[row / self.steps.len()]
    }
}

/// Runs `law` with every score and window on random shapes.
fn for_every_pair(cases: u32, law: impl Fn(&ScoreConfig, &WindowConfig, &Shape)) {
    proptest!(random_cases(cases), |(shape in shapes())| {
        for score in scores(MAX_SOURCE_LEN) {
            for window in windows(shape.half_width) {
                law(&score, &window, &shape);
            }
        }
    });
}

fn is_local_p(window: &WindowConfig) -> bool {
    matches!(window, WindowConfig::LocalP { .. })
}

#[test]
fn weights_sum_to_one_are_zero_on_padding_and_outside_the_window_and_never_all_zero() {
    for_every_pair(40, |score, window, shape| {
        let seen = shape.see(&shape.layer(score, window));
        assert_eq!(seen.centres.is_some(), window.half_width().is_some());
        for (row, weights) in seen.weights.iter().enumerate() {
            let what = format!("{score:?}, {window:?}, {shape:?}, row {row}: {weights:?}");
            let (real, padding) = weights.split_at(shape.length(row));
            assert!(padding.iter().all(|weight| *weight == 0.0), "{what} looks at padding");
            let sum: f32 = real.iter().sum();
            if real.is_empty() {
                assert!(seen.contexts[row].iter().all(|value| *value == 0.0), "{what}: {:?}", seen.contexts[row]);
            } else if is_local_p(window) {
                assert!(sum > 0.0 && sum <= 1.0 + 1e-6, "{what} sums to {sum}");
            } else {
                assert!((sum - 1.0).abs() < 1e-6, "{what} sums to {sum}");
            }
            let Some(centres) = &seen.centres else { continue };
            let half_width = shape.half_width as f32;
            assert!((0.0..=real.len() as f32).contains(&centres[row]), "{what}: centre {}", centres[row]);
            for (i, weight) in real.iter().enumerate() {
                let is_outside = ((i + 1) as f32 - centres[row]).abs() > half_width;
                assert!(!is_outside || *weight == 0.0, "{what} looks outside its window at {}", centres[row]);
            }
            assert!(real.iter().filter(|weight| **weight != 0.0).count() <= 2 * shape.half_width + 1, "{what}");
        }
    });
}

#[test]
fn a_window_is_not_empty_where_its_centre_is_at_either_end() {
    for source_len in 1..6 {
        for half_width in [1, 2] {
            for (vector, expected) in [(1000.0, source_len as f32), (-1000.0, 0.0)] {
                let shape = Shape { seed: 1, lengths: vec![source_len], extra: 2, steps: vec![0], half_width };
                let layer = shape.layer(&ScoreConfig::General {}, &WindowConfig::LocalP { half_width });
                let mut parameters = collect(&layer);
                for (path, weight) in &mut parameters {
                    let value = |i| if path.ends_with("predictor.vector") { vector } else { weight.values[i] };
                    weight.values = (0..weight.values.len()).map(value).collect();
                    if path.ends_with("projection.weight") {
                        weight.values = vec![1.0; D * D];
                    }
                }
                let layer = apply(layer, &parameters, Path::new("an extreme")).expect("the module's own shapes");
                let seen = shape.see_given(&layer, vec![1.0; D], shape.values());
                assert_eq!(seen.centres, Some(vec![expected]));
                let sum: f32 = seen.weights[0][..source_len].iter().sum();
                assert!(sum > 0.0, "S = {source_len}, D = {half_width}, centre {expected}: {:?}", seen.weights);
            }
        }
    }
}

#[test]
fn gradients_are_finite_and_zero_where_nothing_is_seen() {
    for_every_pair(15, |score, window, shape| {
        let device: Device = flex().autodiff();
        let (batch, n, source_len) = (shape.lengths.len(), shape.steps.len(), shape.source_len());
        let layer = shape.layer(score, window).train();
        let query = tensor(shape.queries(), [batch, n, D], &device).require_grad();
        let values = tensor(shape.values(), [batch, source_len, D], &device).require_grad();
        let memory = layer.prepare(values.clone(), &shape.lengths, &Pass::inference());
        let context = layer.forward(query.clone(), &shape.steps, &memory, &mut Pass::inference());
        let grads = weighted_sum(context).backward();
        let what = format!("{score:?}, {window:?}, {shape:?}");
        let of_values = to_vec(values.grad(&grads).expect("a leaf has a gradient"));
        for (i, value) in of_values.iter().enumerate() {
            let is_padding = i / D % source_len >= shape.lengths[i / D / source_len];
            assert!(value.is_finite() && (!is_padding || *value == 0.0), "{what}: value {i} has gradient {value}");
        }
        let of_queries = query.grad(&grads).map(to_vec).unwrap_or_default();
        for (i, value) in of_queries.iter().enumerate() {
            let is_empty = shape.lengths[i / D / n] == 0;
            assert!(value.is_finite() && (!is_empty || *value == 0.0), "{what}: query {i} has gradient {value}");
        }
        for (path, gradient) in crate::support::gradients_by_path(&layer, grads) {
            assert!(gradient.iter().all(|value| value.is_finite()), "{what}: {path} has gradient {gradient:?}");
        }
    });
}

#[test]
fn other_orders_of_the_words_order_the_weights_alike_where_positions_do_not_enter() {
    for_every_pair(15, |score, window, shape| {
        if matches!(score, ScoreConfig::Location { .. }) || window.half_width().is_some() {
            return;
        }
        let layer = shape.layer(score, window);
        let (values, source_len) = (shape.values(), shape.source_len());
        // Word i of n goes where word (2 i + 1) mod n was, or the next one if n is even.
        let order = |i: usize, n: usize| if n % 2 == 1 { (2 * i + 1) % n } else { (i + 1) % n };
        let from = |row: usize, i: usize| {
            let length = shape.lengths[row];
            if i < length { order(i, length) } else { i }
        };
        let moved = (0..shape.lengths.len() * source_len).flat_map(|place| {
            let (row, i) = (place / source_len, place % source_len);
            values[(row * source_len + from(row, i)) * D..][..D].iter().copied()
        });
        let found = shape.see_given(&layer, shape.queries(), moved.collect());
        let straight = shape.see(&layer);
        for row in 0..found.weights.len() {
            let expected: Vec<f32> =
                (0..source_len).map(|i| straight.weights[row][from(row / shape.steps.len(), i)]).collect();
            let what = format!("{score:?}, {shape:?}, row {row}");
            assert_close(&what, &found.weights[row], &expected, SAME_TOLERANCE);
            assert_close(&what, &found.contexts[row], &straight.contexts[row], 1e-4);
        }
    });
}

#[test]
fn a_query_of_a_sentence_alone_is_the_same_whatever_the_padding() {
    for_every_pair(15, |score, window, shape| {
        let layer = shape.layer(score, window);
        let together = shape.see(&layer);
        let (queries, values, source_len) = (shape.queries(), shape.values(), shape.source_len());
        for (row, weights) in together.weights.iter().enumerate() {
            let (sentence, query) = (row / shape.steps.len(), row % shape.steps.len());
            let length = shape.lengths[sentence];
            // Without padding, at its own step, without the other queries.
            let alone = Shape { lengths: vec![length], extra: 0, steps: vec![shape.steps[query]], ..shape.clone() };
            let own = values[sentence * source_len * D..][..alone.source_len() * D].to_vec();
            let seen = alone.see_given(&layer, queries[row * D..][..D].to_vec(), own);
            let what = format!("{score:?}, {window:?}, {shape:?}, row {row}");
            assert_close(&what, &seen.weights[0][..length], &weights[..length], SAME_TOLERANCE);
            assert_close(&what, &seen.contexts[0], &together.contexts[row], SAME_TOLERANCE);
        }
        // One step for all queries is that step for each: the beams of one step.
        let steps = vec![shape.steps[0]; shape.steps.len()];
        let each = Shape { steps: steps.clone(), ..shape.clone() }.see(&layer);
        let memory = layer.prepare(
            tensor(values, [shape.lengths.len(), source_len, D], &flex()),
            &shape.lengths,
            &Pass::inference(),
        );
        let query: Tensor<3> = tensor(queries, [shape.lengths.len(), steps.len(), D], &flex());
        let beams = to_vec(layer.forward(query, &steps[..1], &memory, &mut Pass::inference()));
        assert_eq!(beams, each.contexts.concat(), "{score:?}, {window:?}, {shape:?}");
    });
}
