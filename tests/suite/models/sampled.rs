//! Scheduled sampling: in training, a decoder reads some of its own words.

use super::attending::{attending, every_attention};
use crate::support::{SAME_TOLERANCE, assert_close, flex, gradients_by_path, weighted_sum};
use burn::module::Module;
use burn::tensor::{Device, Int, Tensor, TensorData};
use lookback::data::batch::Padded;
use lookback::layers::Pass;
use lookback::layers::attention::AttentionConfig;
use lookback::layers::recurrent::CellKind;
use lookback::models::weights::to_vec;
use lookback::models::{Autoregressive, Model, Seq2Seq};

const LEN: usize = 5;

/// Every eighth attention, so that each placement and most scores occur, and none.
fn models(dropout_rate: f64) -> impl Iterator<Item = (String, Model)> {
    let some = every_attention().into_iter().step_by(8).chain([AttentionConfig::None {}]);
    some.map(move |attention| (format!("{attention:?}"), attending(&attention, CellKind::Gru, dropout_rate, &flex())))
}

fn batch(device: &Device) -> [Padded; 2] {
    let source = [vec![4, 9, 3, 2], vec![7, 2], vec![5, 6, 10, 8, 2]];
    let target = [vec![1, 6, 11], vec![1, 5, 8, 12, 4], vec![1]];
    [Padded::new(&source, 0, device), Padded::new(&target, 0, device)]
}

fn forward(model: &Model, mut pass: Pass) -> Vec<f32> {
    let [source, target] = batch(&flex());
    to_vec(model.forward(&source, &target, &mut pass))
}

fn largest_of(logits: &[f32]) -> i32 {
    let best = (0..logits.len()).max_by(|a, b| logits[*a].total_cmp(&logits[*b]));
    best.expect("a vocabulary has words") as i32
}

/// What a model says, and the words that it has read, if it reads its own word where `is_own(step, row)` says so.
fn by_hand(model: &Model, is_own: impl Fn(usize, usize) -> bool) -> (Vec<Vec<f32>>, Vec<Vec<u32>>) {
    let [source, target] = batch(&flex());
    let given: Vec<i32> = target.ids.clone().into_data().iter::<i32>().collect();
    let memory = model.encode(&source, &mut Pass::inference());
    let mut state = model.start(&memory, 1);
    let (mut rows, mut read) = (vec![Vec::new(); 3], vec![Vec::new(); 3]);
    for step in 0..LEN {
        let word = |row: usize| match step {
            0 => given[row * LEN],
            _ if is_own(step, row) => largest_of(&rows[row][(step - 1) * 13..]),
            _ => given[row * LEN + step],
        };
        let words: Vec<i32> = (0..3).map(word).collect();
        read.iter_mut().zip(&words).for_each(|(read, word): (&mut Vec<u32>, _)| read.push(*word as u32));
        let previous = Tensor::<1, Int>::from_data(TensorData::new(words, [3]), &flex());
        let (logits, next) = model.step(previous, state, &memory, &mut Pass::inference());
        state = next;
        for (row, logits) in rows.iter_mut().zip(to_vec(logits).chunks(13)) {
            row.extend_from_slice(logits);
        }
    }
    (rows, read)
}

#[test]
fn at_rate_zero_it_is_teacher_forcing_to_the_bit() {
    for (what, model) in models(0.3) {
        let forced = forward(&model, Pass::training(1, 2, 3));
        assert_eq!(forward(&model, Pass::training(1, 2, 3).replacing_inputs(0.0)), forced, "{what}");
        assert_ne!(forward(&model, Pass::training(1, 2, 3).replacing_inputs(1.0)), forced, "{what}");
    }
}

#[test]
fn at_rate_one_every_step_reads_the_likeliest_word_of_the_last() {
    for (what, model) in models(0.0) {
        let (expected, read) = by_hand(&model, |_, _| true);
        let found = forward(&model, Pass::training(1, 2, 3).replacing_inputs(1.0));
        assert_close(&what, &found, &expected.concat(), SAME_TOLERANCE);
        assert_ne!(read[1], [1, 5, 8, 12, 4], "{what}: the model would have written the true words");
        assert!(read.iter().all(|words| words[0] == 1), "the start symbol is nobody's word");
    }
}

#[test]
fn in_between_the_draws_of_the_pass_decide() {
    let mut seen = [0, 0];
    for (what, model) in models(0.0) {
        let draws: Vec<Vec<bool>> = {
            let pass = Pass::training(1, 2, 3).replacing_inputs(0.5);
            (0..LEN).map(|step| pass.replaced_inputs(step, 3)).collect()
        };
        draws[1..].iter().flatten().for_each(|drawn| seen[*drawn as usize] += 1);
        let (expected, _) = by_hand(&model, |step, row| draws[step][row]);
        let found = forward(&model, Pass::training(1, 2, 3).replacing_inputs(0.5));
        assert_close(&what, &found, &expected.concat(), SAME_TOLERANCE);
    }
    assert!(seen.iter().all(|n| *n > 0), "{seen:?}");
}

#[test]
fn a_rate_that_draws_nothing_is_teacher_forcing() {
    for (what, model) in models(0.0) {
        let found = forward(&model, Pass::training(1, 2, 3).replacing_inputs(1e-12));
        assert_close(&what, &found, &forward(&model, Pass::training(1, 2, 3)), SAME_TOLERANCE);
    }
}

#[test]
fn outside_training_nothing_is_replaced() {
    for (what, model) in models(0.0) {
        assert!(!Pass::inference().replacing_inputs(1.0).replaces_inputs());
        let forced = forward(&model, Pass::inference());
        assert_eq!(forward(&model, Pass::inference().replacing_inputs(1.0)), forced, "{what}");
    }
}

#[test]
fn no_gradient_flows_through_the_choice_of_a_word() {
    // As if the words that it has read had been given.
    for (what, model) in models(0.0) {
        let (_, read) = by_hand(&model, |_, _| true);
        let model = model.train();
        let device = flex().autodiff();
        let [source, target] = batch(&device);
        let gradients = |target: &Padded, mut pass: Pass| {
            let logits = model.forward(&source, target, &mut pass);
            gradients_by_path(&model, weighted_sum(logits).backward())
        };
        let found = gradients(&target, Pass::training(1, 2, 3).replacing_inputs(1.0));
        let given = gradients(&Padded::new(&read, 0, &device), Pass::inference());
        assert_eq!(found.keys().collect::<Vec<_>>(), given.keys().collect::<Vec<_>>());
        for (path, expected) in &given {
            assert_close(&format!("{what}: {path}"), &found[path], expected, 1e-4);
        }
    }
}

#[test]
fn draws_are_a_function_of_seed_and_place_and_come_at_their_rate() {
    const ROWS: usize = 500;
    let draw = |seed: u64, epoch: u64, part: u64| -> Vec<bool> {
        let pass = Pass::training(seed, epoch, part).replacing_inputs(0.3);
        (0..20).flat_map(|step| pass.replaced_inputs(step, ROWS)).collect()
    };
    let first = draw(7, 3, 1);
    assert_eq!(first, draw(7, 3, 1));
    let n = first.len() as f64;
    let n_drawn = first.iter().filter(|drawn| **drawn).count() as f64;
    // Five standard deviations.
    assert!((n_drawn - 0.3 * n).abs() < 5.0 * (n * 0.21).sqrt(), "{n_drawn} of {n} at rate 0.3");
    for (what, other) in [("seed", draw(8, 3, 1)), ("epoch", draw(7, 4, 1)), ("part", draw(7, 3, 2))] {
        let n_equal = first.iter().zip(&other).filter(|(a, b)| a == b).count() as f64;
        // Independent draws agree with probability 0.3^2 + 0.7^2 = 0.58.
        assert!((n_equal - 0.58 * n).abs() < 5.0 * (n * 0.58 * 0.42).sqrt(), "another {what}: {n_equal} of {n} agree");
    }
    // A layer that drops units takes nothing away from them.
    let mut pass = Pass::training(7, 3, 1).replacing_inputs(0.3);
    pass.dropout(Tensor::<1>::ones([10], &flex()), 0.5);
    assert_eq!(pass.replaced_inputs(0, ROWS), first[..ROWS]);
}
