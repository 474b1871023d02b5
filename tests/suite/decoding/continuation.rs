//! A language model of this crate's traits that has no source at all.

use crate::support::flex;
use burn::tensor::{Device, Int, Tensor, TensorData};
use lookback::decoding::Continuation;
use lookback::layers::Pass;
use lookback::models::{Autoregressive, Rows};

/// Knows the last two words: what comes next is likeliest their sum, around the end of the vocabulary.
struct Sums;

const N_WORDS: usize = 7;

/// The last two words of each row.
#[derive(Clone)]
struct LastTwo(Vec<[usize; 2]>);

fn numbers<const D: usize>(tensor: Tensor<D, Int>) -> Vec<usize> {
    tensor.into_data().iter::<i64>().map(|value| value as usize).collect()
}

impl Rows for LastTwo {
    fn select(&self, rows: &Tensor<1, Int>) -> Self {
        Self(numbers(rows.clone()).into_iter().map(|row| self.0[row]).collect())
    }
}

impl Autoregressive for Sums {
    type Memory = ();
    type State = LastTwo;

    fn start(&self, _memory: &(), n_beams: usize) -> LastTwo {
        LastTwo(vec![[0; 2]; n_beams])
    }

    fn step(&self, previous: Tensor<1, Int>, state: LastTwo, _memory: &(), _pass: &mut Pass) -> (Tensor<2>, LastTwo) {
        let rows = state.0.iter().zip(numbers(previous));
        let state: Vec<[usize; 2]> = rows.map(|([_, before], last)| [*before, last]).collect();
        // The first two entries are padding and the start symbol, which never follow.
        let logit = |[a, b]: [usize; 2], word: usize| if word == 2 + (a + b) % (N_WORDS - 2) { 2.0 } else { 0.0 };
        let logits: Vec<f32> = state.iter().flat_map(|two| (0..N_WORDS).map(|word| logit(*two, word))).collect();
        (Tensor::from_data(TensorData::new(logits, [state.len(), N_WORDS]), &flex()), LastTwo(state))
    }

    fn device(&self) -> Device {
        flex()
    }
}

#[test]
fn a_model_without_a_source_goes_on_with_a_text() {
    let written = |prompt: &[u32], context| -> Vec<u32> {
        Continuation::with_memory(&Sums, (), prompt, context, None, 1).take(6).map(|next| next.id).collect()
    };
    let expected = |mut a: usize, mut b: usize| -> Vec<u32> {
        let next = |_| {
            (a, b) = (b, 2 + (a + b) % (N_WORDS - 2));
            b as u32
        };
        (0..6).map(next).collect()
    };
    assert_eq!(written(&[3, 4], None), expected(3, 4));
    assert_eq!(written(&[6, 6, 2, 3, 4], None), expected(3, 4), "all but the last word of a prompt is read at once");
    assert_eq!(written(&[4], None), expected(0, 4));
    // With room for four words, two are read anew once it is full: as much as this model looks back.
    assert_eq!(written(&[2, 3, 4], Some(4)), expected(3, 4));
}

#[test]
fn known_words_of_several_rows_are_read_by_steps_where_a_model_has_no_other_way() {
    let tokens = Tensor::from_data(TensorData::new(vec![3i32, 4, 5, 2, 6, 6], [2, 3]), &flex());
    let start = LastTwo(vec![[0; 2]; 2]);
    let (logits, state) = Sums.prefill(tokens, start, &(), 2, &mut Pass::inference());
    assert_eq!(state.0, [[4, 5], [6, 6]]);
    let likeliest: Vec<usize> = numbers(logits.unwrap().argmax(2).flatten::<1>(0, 2));
    assert_eq!(likeliest, [[3, 4], [4, 5], [2, 6], [6, 6]].map(|[a, b]| 2 + (a + b) % (N_WORDS - 2)));
}
