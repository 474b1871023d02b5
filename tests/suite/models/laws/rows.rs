//! Rows: selected, repeated, shared by the beams of a sentence.

use super::{column, indices, longest, pick, subjects};
use crate::reliability::sampled;
use crate::support::{SAME_TOLERANCE, assert_close};
use lookback::models::weights::to_vec;
use lookback::models::{Autoregressive, Rows};

#[test]
fn selected_rows_go_on_as_the_sentences_they_came_from() {
    // Repeated, in another order, left out.
    let choices: [&[usize]; 3] = [&[2, 0, 0, 1], &[1, 2, 0], &[2]];
    for subject in sampled(subjects(), 3) {
        let words = &subject.case.target_input;
        let all = subject.encode();
        let expected = subject.steps(&all, 1, words);
        for (chosen, changed_at) in choices.iter().flat_map(|chosen| (0..longest(words)).map(move |t| (*chosen, t))) {
            let mut state = subject.model.start(&all, 1);
            for t in 0..changed_at {
                state = subject.step(column(words, t, &subject.device), state, &all).1;
            }
            let rows = indices(chosen.iter().copied(), &subject.device);
            let (memory, mut state) = (all.select(&rows), state.select(&rows));
            for (t, expected) in expected.iter().enumerate().skip(changed_at) {
                let previous = column(words, t, &subject.device).select(0, rows.clone());
                let (logits, next) = subject.step(previous, state, &memory);
                state = next;
                let expected = pick(&to_vec(expected.clone()), subject.vocab_size(), chosen);
                let what = format!("{}: {chosen:?} selected before step {changed_at}, step {t}", subject.what);
                assert_close(&what, &to_vec(logits), &expected, SAME_TOLERANCE);
            }
        }
    }
}

#[test]
fn the_beams_of_a_sentence_are_rows_that_share_its_memory() {
    for subject in subjects() {
        let memory = subject.encode();
        let (first, second) = (&subject.case.target_input, &subject.other_words());
        let alone = [first, second].map(|words| subject.steps(&memory, 1, words));
        let interleaved: Vec<Vec<u32>> = first.iter().zip(second).flat_map(|(a, b)| [a.clone(), b.clone()]).collect();
        let beams = subject.steps(&memory, 2, &interleaved);
        for (t, beams) in beams.into_iter().enumerate() {
            let beams = to_vec(beams);
            for (beam, alone) in alone.iter().enumerate() {
                let chosen: Vec<usize> = (0..first.len()).map(|sentence| 2 * sentence + beam).collect();
                let found = pick(&beams, subject.vocab_size(), &chosen);
                let what = format!("{}: beam {beam}, step {t}", subject.what);
                assert_close(&what, &found, &to_vec(alone[t].clone()), SAME_TOLERANCE);
            }
        }
    }
}

#[test]
fn beams_can_be_exchanged_within_their_sentences_without_touching_the_memory() {
    for subject in subjects() {
        let memory = subject.encode();
        let (first, second) = (&subject.case.target_input, &subject.other_words());
        let interleaved: Vec<Vec<u32>> = first.iter().zip(second).flat_map(|(a, b)| [a.clone(), b.clone()]).collect();
        let expected = subject.steps(&memory, 2, &interleaved);
        // Beam 1 of the first sentence takes over both rows; the other sentences exchange theirs.
        let parents = [1, 1, 3, 2, 5, 4];
        let mut state = subject.model.start(&memory, 2);
        for t in 0..2 {
            state = subject.step(column(&interleaved, t, &subject.device), state, &memory).1;
        }
        let rows = indices(parents, &subject.device);
        let mut state = state.select(&rows);
        for (t, expected) in expected.iter().enumerate().skip(2) {
            let previous = column(&interleaved, t, &subject.device).select(0, rows.clone());
            let (logits, next) = subject.step(previous, state, &memory);
            state = next;
            let expected = pick(&to_vec(expected.clone()), subject.vocab_size(), &parents);
            assert_close(&format!("{}: step {t}", subject.what), &to_vec(logits), &expected, SAME_TOLERANCE);
        }
    }
}
