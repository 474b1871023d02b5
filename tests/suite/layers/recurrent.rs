//! Recurrent cells and the encoder that is made of them.

use super::{Outputs, check_golden, golden_layers, named};
use crate::support::{
    SAME_TOLERANCE, assert_close, check_quotients, closed_form_tensor, flex, host_backends, tensor, weighted_sum,
    with_closed_form,
};
use burn::module::Module;
use burn::tensor::{Device, Int, Tensor};
use lookback::layers::mixer::{Encoded, EncoderShape, MixerKind, RecurrentEncoder};
use lookback::layers::recurrent::{Cell, CellKind, CellState, unbind_steps};
use lookback::layers::{Init, Pass};
use lookback::models::weights::{Weights, apply, collect, to_vec};
use std::path::Path;

const KINDS: [CellKind; 3] = [CellKind::Vanilla, CellKind::Gru, CellKind::Lstm];

fn shape(kind: MixerKind, [d_input, d_hidden]: [usize; 2], n_layers: usize, n_directions: usize) -> EncoderShape {
    EncoderShape {
        mixers: kind.into(),
        d_input,
        d_hidden,
        n_layers,
        n_directions,
        residual: false,
        dropout_rate: 0.0,
        is_reversed: false,
    }
}

/// Every recurrence whose state is a vector.
fn vectors() -> impl Iterator<Item = MixerKind> {
    MixerKind::RECURRENT.into_iter().filter(|kind| kind.has_vector())
}

#[test]
fn cells_are_pytorchs() {
    for case in golden_layers("cell") {
        let kind: CellKind = case.choice("cell");
        let build = |init: &Init| Cell::new(kind, case.number("d_input"), case.number("d_hidden"), init);
        check_golden(case, build, |cell, inputs, pass| {
            let memory = (kind == CellKind::Lstm).then(|| inputs.get::<2>("memory"));
            let state = CellState { hidden: inputs.get::<2>("hidden"), memory };
            let projected = cell.project(inputs.get::<2>("input").unsqueeze_dim(1), pass).squeeze_dim(1);
            let state = cell.step(projected, &state, pass);
            let mut outputs = Outputs::from([named("hidden", state.hidden)]);
            outputs.extend(state.memory.map(|memory| named("memory", memory)));
            outputs
        });
    }
}

#[test]
fn recurrent_encoders_are_pytorchs_over_packed_sequences() {
    for case in golden_layers("recurrent-encoder") {
        let widths = [case.number("d_input"), case.number("d_hidden")];
        let (n_layers, n_directions) = (case.number("n_layers"), case.number("n_directions"));
        let lengths = case.lengths().expect("an encoder reads sentences");
        let build =
            |init: &Init| RecurrentEncoder::new(shape(case.choice("cell"), widths, n_layers, n_directions), init);
        check_golden(case, build, |encoder, inputs, pass| {
            let encoded = encoder.forward(inputs.get::<3>("input"), &lengths, pass);
            let mut outputs = Outputs::from([named("states", encoded.states)]);
            for (i, layer) in encoded.finals.into_iter().enumerate() {
                for (direction, state) in ["forward", "backward"].iter().zip(layer) {
                    outputs.extend([named(&format!("finals.{i}.{direction}.hidden"), state.hidden)]);
                    outputs.extend(state.memory.map(|memory| named(&format!("finals.{i}.{direction}.memory"), memory)));
                }
            }
            outputs
        });
    }
}

/// A cell of width one whose parameters are zero but for those given.
fn small_cell(kind: CellKind, values: &[(&str, &[f32])]) -> Cell {
    let cell = Cell::new(kind, 1, 1, &Init::new(1, &flex()));
    let mut weights: Weights = collect(&cell);
    for (path, weight) in &mut weights {
        let given = values.iter().find(|(name, _)| name == path);
        weight.values = given.map_or(vec![0.0; weight.values.len()], |(_, values)| values.to_vec());
    }
    apply(cell, &weights, Path::new("by hand")).expect("the cell's own shapes")
}

fn step(cell: &Cell, input: f32, hidden: f32, memory: Option<f32>) -> (f32, Option<f32>) {
    let number = |value: f32| tensor(vec![value], [1, 1], &flex());
    let state = CellState { hidden: number(hidden), memory: memory.map(number) };
    let state = cell.step(
        cell.project(number(input).unsqueeze_dim(1), &Pass::inference()).squeeze_dim(1),
        &state,
        &Pass::inference(),
    );
    (to_vec(state.hidden)[0], state.memory.map(|memory| to_vec(memory)[0]))
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

#[test]
fn what_a_gate_keeps_can_be_computed_by_hand() {
    let number = |value: f32| tensor(vec![value], [1, 1], &flex());
    let weights = |n: usize| [0.3, 1.5, -0.7, 0.9][..n].to_vec();
    let recurrent = |n: usize| [-0.2, 0.8, 0.4, 0.1][..n].to_vec();
    for (kind, n) in [(CellKind::Gru, 3), (CellKind::Lstm, 4)] {
        let cell = small_cell(kind, &[("input.weight", &weights(n)), ("recurrent", &recurrent(n))]);
        let state = CellState { hidden: number(0.5), memory: (kind == CellKind::Lstm).then(|| number(2.0)) };
        let projected: Tensor<2> = cell.project(number(0.6).unsqueeze_dim(1), &Pass::inference()).squeeze_dim(1);
        let kept = cell.kept(projected.clone(), &state, &Pass::inference()).expect("it has gates");
        // The second gate of both: the update gate of the one, the forget gate of the other.
        assert_close("kept", &to_vec(kept.clone()), &[sigmoid(1.5 * 0.6 + 0.8 * 0.5)], SAME_TOLERANCE);
        // It is the slope of the new state in the old one, where nothing else of it counts.
        if let Some(memory) = cell.step(projected.clone(), &state, &Pass::inference()).memory {
            let more = CellState { memory: Some(number(3.0)), ..state.clone() };
            let higher = cell.step(projected, &more, &Pass::inference()).memory.unwrap();
            assert_close("slope", &to_vec(higher - memory), &[f64::from(to_vec(kept)[0])], SAME_TOLERANCE);
        }
    }
    let vanilla = small_cell(CellKind::Vanilla, &[]);
    let state = CellState { hidden: number(0.5), memory: None };
    assert!(vanilla.kept(number(0.6), &state, &Pass::inference()).is_none());
}

#[test]
fn a_vanilla_cell_of_width_one_can_be_computed_by_hand() {
    let cell =
        small_cell(CellKind::Vanilla, &[("input.weight", &[2.0]), ("input.bias", &[0.5]), ("recurrent", &[-3.0])]);
    let (hidden, memory) = step(&cell, 0.25, 0.5, None);
    assert_close("h", &[hidden], &[(-0.5f64).tanh()], SAME_TOLERANCE);
    assert!(memory.is_none());
}

#[test]
fn a_gru_of_width_one_can_be_computed_by_hand() {
    // Gates in the order (r, z, n); x = 1, h = 0.5; the reset gate acts after the product.
    let parameters: &[(&str, &[f32])] = &[
        ("input.weight", &[1.0, 2.0, 3.0]),
        ("input.bias", &[0.1, 0.2, 0.3]),
        ("recurrent", &[-1.0, -2.0, -4.0]),
        ("candidate_bias", &[0.7]),
    ];
    let (hidden, _) = step(&small_cell(CellKind::Gru, parameters), 1.0, 0.5, None);
    let (r, z) = (sigmoid(1.1 - 0.5), sigmoid(2.2 - 1.0));
    let n = (3.3 + r * (-2.0 + 0.7)).tanh();
    assert_close("h", &[hidden], &[(1.0 - z) * n + z * 0.5], SAME_TOLERANCE);
    // All zero: the candidate is zero and half of the state stays.
    assert_eq!(step(&small_cell(CellKind::Gru, &[]), 1.0, 0.5, None).0, 0.25);
}

#[test]
fn an_lstm_of_width_one_can_be_computed_by_hand() {
    // Gates in the order (i, f, o, g); x = 1, h = 0.5, c = -2.
    let parameters: &[(&str, &[f32])] = &[
        ("input.weight", &[1.0, 2.0, 3.0, 4.0]),
        ("input.bias", &[0.1, 0.2, 0.3, 0.4]),
        ("recurrent", &[-1.0, -2.0, -4.0, -6.0]),
    ];
    let (hidden, memory) = step(&small_cell(CellKind::Lstm, parameters), 1.0, 0.5, Some(-2.0));
    let (i, f, o, g) = (sigmoid(1.1 - 0.5), sigmoid(2.2 - 1.0), sigmoid(3.3 - 2.0), (4.4f64 - 3.0).tanh());
    let c = f * -2.0 + i * g;
    assert_close("c", &[memory.expect("an LSTM has a memory")], &[c], SAME_TOLERANCE);
    assert_close("h", &[hidden], &[o * c.tanh()], SAME_TOLERANCE);
}

#[test]
fn the_forget_gate_starts_open() {
    let cell = Cell::new(CellKind::Lstm, 5, 3, &Init::new(1, &flex()));
    let bias = &collect(&cell)["input.bias"].values;
    assert_eq!(*bias, [0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
}

#[test]
fn gradients_of_cells_are_difference_quotients() {
    for kind in KINDS {
        let cell = with_closed_form(Cell::new(kind, 3, 5, &Init::new(1, &flex())), 2.0);
        check_quotients(&format!("{kind:?}"), cell, |cell, device| {
            let [input, hidden, memory] = [("input", 3), ("hidden", 5), ("memory", 5)]
                .map(|(path, width)| closed_form_tensor::<2>(path, [2, width], 2.0, device));
            let memory = (kind == CellKind::Lstm).then_some(memory);
            // Two steps, so that the gradient runs through the memory too.
            let projected = cell.project(input.unsqueeze_dim(1), &Pass::inference()).squeeze_dim::<2>(1);
            let state = cell.step(projected.clone(), &CellState { hidden, memory }, &Pass::inference());
            cell.step(projected, &state, &Pass::inference()).hidden
        });
    }
}

fn encoder(kind: MixerKind) -> RecurrentEncoder {
    with_closed_form(RecurrentEncoder::new(shape(kind, [5, 7], 2, 2), &Init::new(1, &flex())), 1.0)
}

fn all_numbers(encoded: &Encoded) -> Vec<f32> {
    let states = encoded.finals.iter().flatten();
    let finals = states.flat_map(|state| [Some(state.hidden.clone()), state.memory.clone()]).flatten();
    std::iter::once(to_vec(encoded.states.clone())).chain(finals.map(to_vec)).flatten().collect()
}

#[test]
fn what_stands_on_padding_changes_nothing_and_learns_nothing() {
    let lengths = [4, 1, 6];
    let is_padding = |i: usize| i / 5 % 6 >= lengths[i / 30];
    for kind in vectors() {
        let encoder = encoder(kind);
        let input = |padding: f32| {
            let mut values = crate::support::closed_form("input", 90, 4.0);
            values.iter_mut().enumerate().filter(|(i, _)| is_padding(*i)).for_each(|(_, value)| *value = padding);
            values
        };
        let read = |padding: f32| {
            let input = tensor(input(padding), [3, 6, 5], &flex());
            all_numbers(&encoder.forward(input, &lengths, &mut Pass::inference()))
        };
        assert_eq!(read(0.0), read(17.0), "{kind:?}");

        let input = tensor(input(1.0), [3, 6, 5], &flex().autodiff()).require_grad();
        let encoded = encoder.clone().train().forward(input.clone(), &lengths, &mut Pass::inference());
        let finals = encoded.finals.iter().flatten().map(|state| weighted_sum(state.hidden.clone()));
        let loss = finals.fold(weighted_sum(encoded.states), |sum, term| sum + term);
        let gradient = to_vec(input.grad(&loss.backward()).expect("a leaf has a gradient"));
        for (i, value) in gradient.iter().enumerate() {
            assert_eq!(*value == 0.0, is_padding(i), "{kind:?}: the gradient of element {i} is {value}");
        }
    }
}

#[test]
fn states_on_padding_are_zero_and_the_last_state_is_the_last_words() {
    let lengths = [4, 1, 6];
    for kind in vectors() {
        let input = closed_form_tensor("input", [3, 6, 5], 4.0, &flex());
        let encoded = encoder(kind).forward(input, &lengths, &mut Pass::inference());
        let states = to_vec(encoded.states);
        let [forward, backward] = [0, 1].map(|i| to_vec(encoded.finals[1][i].hidden.clone()));
        for (row, len) in lengths.into_iter().enumerate() {
            let at = |step: usize| &states[(row * 6 + step) * 14..][..14];
            assert!((len..6).all(|step| at(step).iter().all(|value| *value == 0.0)), "{kind:?}: sentence {row}");
            assert_eq!(at(len - 1)[..7], forward[7 * row..][..7], "{kind:?}: forward ends at the last word");
            assert_eq!(at(0)[7..], backward[7 * row..][..7], "{kind:?}: backward ends at the first word");
        }
    }
}

#[test]
fn what_a_silent_layer_of_an_encoder_has_read_goes_by_it_and_is_not_dropped() {
    for n_directions in [1, 2] {
        let shape =
            EncoderShape { residual: true, dropout_rate: 0.5, ..shape(MixerKind::Vanilla, [5, 7], 3, n_directions) };
        let layer = with_closed_form(RecurrentEncoder::new(shape.clone(), &Init::new(1, &flex())), 2.0);
        let mut weights: Weights = collect(&layer);
        for (_, weight) in weights.iter_mut().filter(|(path, _)| !path.starts_with("layers.0.")) {
            weight.values.fill(0.0);
        }
        let silent = apply(layer, &weights, Path::new("by hand")).expect("the encoder's own shapes");
        let alone = RecurrentEncoder::new(EncoderShape { n_layers: 1, ..shape }, &Init::new(1, &flex()));
        let alone = with_closed_form(alone, 2.0);
        let input = closed_form_tensor("input", [3, 6, 5], 4.0, &flex());
        let lengths = [4, 1, 6];
        for is_fused in [false, true] {
            let expected = alone.forward(input.clone(), &lengths, &mut Pass::inference().fused(is_fused));
            let found = silent.forward(input.clone(), &lengths, &mut Pass::training(1, 2, 3).fused(is_fused));
            assert_eq!(to_vec(found.states), to_vec(expected.states));
            // What the cells of the silent layers carry on is what they said, which is nothing.
            for state in found.finals[1..].iter().flatten() {
                assert_eq!(to_vec(state.hidden.clone()), [0.0; 21]);
            }
        }
    }
}

#[test]
fn steps_come_apart_in_order() {
    for adapter in host_backends() {
        for len in [1, 2, 3, 7, 8] {
            let values: Vec<f32> = (0..2 * len * 3).map(|i| i as f32).collect();
            let steps = unbind_steps(tensor(values.clone(), [2, len, 3], &adapter.device));
            assert_eq!(steps.len(), len);
            assert_eq!(to_vec(Tensor::stack::<3>(steps, 1)), values, "{len} steps on {}", adapter.backend);
        }
    }
}

#[test]
fn selecting_rows_reorders_and_repeats_states() {
    let number = |offset: f32| tensor(vec![offset, offset + 1.0, offset + 2.0], [3, 1], &flex());
    let state = CellState { hidden: number(0.0), memory: Some(number(10.0)) };
    let chosen = state.select(&Tensor::<1, Int>::from_data([2, 0, 2, 1], &flex()));
    assert_eq!(to_vec(chosen.hidden), [2.0, 0.0, 2.0, 1.0]);
    assert_eq!(to_vec(chosen.memory.expect("it had one")), [12.0, 10.0, 12.0, 11.0]);
}

#[test]
fn a_state_starts_at_zero() {
    let device: Device = flex();
    for kind in KINDS {
        let state = Cell::new(kind, 5, 7, &Init::new(1, &device)).start(3, &device);
        assert_eq!(to_vec(state.hidden), [0.0; 21]);
        assert_eq!(state.memory.map(to_vec), (kind == CellKind::Lstm).then(|| vec![0.0; 21]));
    }
}
