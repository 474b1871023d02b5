//! Beam search.

use super::mock::{Mock, WORDS};
use super::{TOLERANCE, assert_same, config, decode_all, decode_one, requests};
use crate::support::random_cases;
use lookback::decoding::{DecodingConfig, EarlyStopping, Request, StopRule};
use proptest::prelude::*;

const CAP: usize = 4;

/// More beams than there are targets of [`CAP`] tokens: 40 complete and 81 cut.
const ALL: usize = 130;

const PENALTIES: [f64; 3] = [0.0, 1.0, -0.7];

#[test]
fn a_beam_that_is_wide_enough_finds_the_best_of_all_targets() {
    for seed in 0..4 {
        let mock = Mock::drawn(seed);
        for length_penalty in PENALTIES {
            for n_best in [1, 2, 7, ALL] {
                let length_penalty_start = if seed % 2 == 0 { 5.0 } else { 0.0 };
                let config =
                    DecodingConfig { beam_size: ALL, n_best, length_penalty, length_penalty_start, ..config(CAP) };
                let mut expected = mock.all_targets(&[3, 5], &[], &config, CAP);
                assert_eq!(expected.len(), 121);
                expected.truncate(n_best);
                let found = decode_one(&mock, &Request::new(vec![3, 5]), &config);
                assert_same(&format!("seed {seed}, penalty {length_penalty}, {n_best} best"), &found, &expected);
            }
        }
    }
}

#[test]
fn two_beams_find_what_greedy_search_misses() {
    // Greedy: 3, then the end, 0.5 * 0.4 = 0.2. Better: 4, then the end, 0.4 * 0.9 = 0.36.
    let mock =
        Mock::given(&[(&[], [0.05, 0.5, 0.4, 0.05]), (&[3], [0.4, 0.2, 0.2, 0.2]), (&[4], [0.9, 0.05, 0.03, 0.02])]);
    let request = Request::new(vec![3]);
    let greedy = decode_one(&mock, &request, &config(5));
    let beam = decode_one(&mock, &request, &DecodingConfig { beam_size: 2, ..config(5) });
    assert_eq!((greedy[0].tokens.as_slice(), beam[0].tokens.as_slice()), ([3].as_slice(), [4].as_slice()));
    // What can never follow has a third of all probability at each step.
    for (found, expected) in [(&greedy[0], 0.2f64 / 2.25), (&beam[0], 0.36 / 2.25)] {
        assert!((found.log_probability - expected.ln()).abs() < TOLERANCE, "{found:?}");
    }
}

#[test]
fn the_length_penalty_decides_between_short_and_long() {
    // The end at once has 0.3; 3 and the end have 0.6 * 0.4 = 0.24, and 3 3 with its end 0.6 * 0.5 * 0.9 = 0.27.
    let mock = Mock::given(&[
        (&[], [0.3, 0.6, 0.05, 0.05]),
        (&[3], [0.4, 0.5, 0.05, 0.05]),
        (&[3, 3], [0.9, 0.05, 0.03, 0.02]),
    ]);
    for (length_penalty, expected) in [(0.0, vec![]), (2.0, vec![3, 3]), (-1.0, vec![])] {
        let config = DecodingConfig { beam_size: 3, length_penalty, ..config(4) };
        let found = decode_one(&mock, &Request::new(vec![3]), &config);
        assert_eq!(found[0].tokens, expected, "penalty {length_penalty}");
    }
}

#[test]
fn a_search_goes_on_while_a_long_target_can_still_win() {
    // The end at once: ln 0.4, and ln 0.2 for the word 3, which in 8 tokens comes to -4.45 over a penalty of 10.
    let table: [(&[u32], [f32; 4]); 2] = [(&[], [0.6, 0.3, 0.05, 0.05]), (&[3; 7], [1.0, 1e-9, 1e-9, 1e-9])];
    let mock = Mock::given(&table).otherwise([1e-9, 1.0, 1e-9, 1e-9]);
    let config = DecodingConfig { beam_size: 2, length_penalty: 3.0, ..config(8) };
    assert_eq!(decode_one(&mock, &Request::new(vec![3]), &config)[0].tokens, [3; 7]);
}

#[test]
fn early_stopping_takes_the_best_of_the_first_that_end() {
    // The end at once: ln 0.4; after the word 3: ln 0.225 over 1.6. Then two have ended, while in 8 tokens the word 3 comes to
    // ln 0.25 over a penalty of 10.
    let table: [(&[u32], [f32; 4]); 3] =
        [(&[], [0.4, 0.5, 0.08, 0.02]), (&[3], [0.45, 0.5, 0.03, 0.02]), (&[3; 7], [1.0, 1e-9, 1e-9, 1e-9])];
    let mock = Mock::given(&table).otherwise([1e-9, 1.0, 1e-9, 1e-9]);
    for (early_stopping, expected) in [(false, vec![3; 7]), (true, vec![])] {
        let config = DecodingConfig {
            beam_size: 2,
            length_penalty: 3.0,
            early_stopping: EarlyStopping::Full(early_stopping),
            ..config(8)
        };
        let found = decode_one(&mock, &Request::new(vec![3]), &config);
        assert_eq!(found[0].tokens, expected, "early stopping: {early_stopping}");
    }
}

#[test]
fn the_rule_of_thumb_does_not_see_that_a_hypothesis_can_gain_by_growing() {
    // The end at once: ln 0.5 = -0.69; after the word 3: ln 0.27 over 1.6, -0.82. The open one is at ln 0.16 over 1.6, -1.16, and
    // would come to ln 0.16 over 10.
    let table: [(&[u32], [f32; 4]); 3] =
        [(&[], [0.5, 0.45, 0.03, 0.02]), (&[3], [0.6, 0.35, 0.03, 0.02]), (&[3; 7], [1.0, 1e-9, 1e-9, 1e-9])];
    let mock = Mock::given(&table).otherwise([1e-9, 1.0, 1e-9, 1e-9]);
    let present = EarlyStopping::Rule(StopRule::PresentLength);
    for (early_stopping, expected) in [(EarlyStopping::Full(false), vec![3; 7]), (present, vec![])] {
        let config = DecodingConfig { beam_size: 2, length_penalty: 3.0, early_stopping, ..config(8) };
        let found = decode_one(&mock, &Request::new(vec![3]), &config);
        assert_eq!(found[0].tokens, expected, "{early_stopping:?}");
    }
    // With an open one that is better as it is, it goes on.
    let table: [(&[u32], [f32; 4]); 3] =
        [(&[], [0.4, 0.5, 0.08, 0.02]), (&[3], [0.45, 0.5, 0.03, 0.02]), (&[3; 7], [1.0, 1e-9, 1e-9, 1e-9])];
    let mock = Mock::given(&table).otherwise([1e-9, 1.0, 1e-9, 1e-9]);
    let config = DecodingConfig { beam_size: 2, length_penalty: 3.0, early_stopping: present, ..config(8) };
    assert_eq!(decode_one(&mock, &Request::new(vec![3]), &config)[0].tokens, [3; 7]);
}

#[test]
fn a_search_that_prefers_short_targets_still_waits_for_the_next_word() {
    // The end at once: ln 0.033 = -3.4. After the word 3, ln 0.33, it comes to -1.5 over 0.73; at the cap, over 0.2.
    let mock = Mock::given(&[(&[], [0.05, 0.5, 0.03, 0.02])]).otherwise([1.0, 1e-9, 1e-9, 1e-9]);
    let config = DecodingConfig { beam_size: 2, length_penalty: -2.0, ..config(8) };
    assert_eq!(decode_one(&mock, &Request::new(vec![3]), &config)[0].tokens, [3]);
}

#[test]
fn a_score_is_the_log_probability_over_the_length_penalty() {
    for (length_penalty, expected) in [(0.0, 1.0), (1.0, 8.0 / 6.0), (2.0, 64.0 / 36.0), (-1.0, 6.0 / 8.0)] {
        let config = DecodingConfig { length_penalty, ..config(5) };
        assert!((config.penalty(3) - expected).abs() < 1e-12, "penalty {length_penalty}");
        assert_eq!(config.penalty(1), 1.0, "one token is the unit");
        let from_nothing = DecodingConfig { length_penalty_start: 0.0, ..config.clone() };
        assert!((from_nothing.penalty(3) - 3f64.powf(length_penalty)).abs() < 1e-12, "from 0, {length_penalty}");
        let config = DecodingConfig { beam_size: 3, n_best: 3, ..config };
        for hypothesis in decode_one(&Mock::drawn(3), &Request::new(vec![4]), &config) {
            let len = hypothesis.tokens.len() + usize::from(hypothesis.is_complete);
            let expected = hypothesis.log_probability / config.penalty(len);
            assert!((hypothesis.score - expected).abs() < TOLERANCE, "{hypothesis:?}");
        }
    }
}

#[test]
fn the_n_best_are_sorted_and_distinct() {
    for seed in 0..20 {
        let config = DecodingConfig { beam_size: 5, n_best: 5, length_penalty: 1.0, ..config(6) };
        let found = decode_one(&Mock::drawn(seed), &Request::new(vec![4, 4]), &config);
        assert_eq!(found.len(), 5);
        for (better, worse) in found.iter().zip(&found[1..]) {
            assert!((better.is_complete, better.score) >= (worse.is_complete, worse.score), "seed {seed}: {found:?}");
        }
        for (i, one) in found.iter().enumerate() {
            assert!(found[..i].iter().all(|other| other.tokens != one.tokens), "seed {seed}: {found:?}");
        }
    }
}

#[test]
fn at_the_cap_a_complete_target_comes_before_a_better_one_that_was_cut() {
    let mock = Mock::given(&[(&[], [0.1, 0.9, 0.05, 0.05]), (&[3], [0.01, 0.9, 0.05, 0.04])]);
    let found = decode_one(&mock, &Request::new(vec![3]), &DecodingConfig { beam_size: 2, n_best: 2, ..config(2) });
    assert_eq!((found[0].tokens.as_slice(), found[0].is_complete), ([].as_slice(), true));
    assert_eq!((found[1].tokens.as_slice(), found[1].is_complete), ([3, 3].as_slice(), false));
    assert!(found[1].score > found[0].score, "{found:?}");
}

#[test]
fn a_prefix_is_forced_on_every_beam_and_counts() {
    for seed in 0..4 {
        let mock = Mock::drawn(seed);
        for prefix in [vec![5], vec![4, 3], vec![3, 3, 3]] {
            let config = DecodingConfig { beam_size: ALL, n_best: 4, length_penalty: 1.0, ..config(CAP) };
            let mut expected = mock.all_targets(&[3, 5], &prefix, &config, CAP);
            expected.truncate(4);
            let found =
                decode_one(&mock, &Request { source: vec![3, 5], prefix: prefix.clone(), number: None }, &config);
            assert_same(&format!("seed {seed}, prefix {prefix:?}"), &found, &expected);
            let request = Request { source: vec![3, 5], prefix: prefix.clone(), number: None };
            let narrow = decode_one(&mock, &request, &DecodingConfig { beam_size: 2, n_best: 2, ..config });
            assert!(narrow.iter().all(|hypothesis| hypothesis.tokens.starts_with(&prefix)), "{narrow:?}");
        }
    }
}

#[test]
fn sentences_that_end_at_different_steps_do_not_disturb_each_other() {
    let sources: Vec<Vec<u32>> =
        (0..12).map(|i| WORDS.iter().cycle().take(1 + i % 5).map(|w| 3 + (w + i as u32) % 3).collect()).collect();
    let requests: Vec<Request> = sources.iter().cloned().map(Request::new).collect();
    for length_penalty in PENALTIES {
        let mock = Mock::drawn(5);
        let config = DecodingConfig { beam_size: 3, n_best: 3, length_penalty, ..config(6) };
        for (request, found) in requests.iter().zip(decode_all(&mock, &requests, &config)) {
            assert_same("together and alone", &found, &decode_one(&mock, request, &config));
        }
    }
}

#[test]
fn a_model_is_never_asked_for_more_than_it_can_take() {
    // The mock panics beyond its limit; 7 tokens are asked for, 4 can be had.
    let mock = Mock::drawn(2).up_to(4);
    for beam_size in [1, 3] {
        let config = DecodingConfig { beam_size, n_best: beam_size, ..config(7) };
        for found in decode_all(&mock, &requests(&[&[3], &[4, 5]]), &config) {
            assert!(found.iter().all(|h| h.tokens.len() + usize::from(h.is_complete) <= 4), "{found:?}");
        }
    }
}

proptest! {
    #![proptest_config(random_cases(200))]
    #[test]
    fn stopping_early_loses_nothing(
        seed in 0u64..1_000_000,
        source in prop::collection::vec(3u32..6, 1..4),
        beam_size in 2usize..8,
        share in 0.0f64..1.0,
        length_penalty in -3.0f64..3.0,
        cap in 1usize..7,
        sharpness in 1.0f64..6.0,
    ) {
        let n_best = 1 + (share * (beam_size - 1) as f64).round() as usize;
        let config = DecodingConfig { beam_size, n_best, length_penalty, ..config(cap) };
        let mock = Mock::drawn(seed).sharpened(sharpness);
        let expected = mock.simple_beam(&source, &config, cap);
        assert_same("with and without a stop rule", &decode_one(&mock, &Request::new(source), &config), &expected);
    }

    #[test]
    fn the_best_of_all_targets_is_no_worse_than_the_greedy_one(
        seed in 0u64..1_000_000,
        length_penalty in -1.5f64..2.0,
    ) {
        let config = DecodingConfig { length_penalty, ..config(CAP) };
        let (mock, request) = (Mock::drawn(seed), Request::new(vec![4, 3]));
        let greedy = decode_one(&mock, &request, &config).remove(0);
        let best = decode_one(&mock, &request, &DecodingConfig { beam_size: ALL, ..config }).remove(0);
        prop_assert!(best.is_complete, "some target of the table is complete");
        prop_assert!(!greedy.is_complete || best.score >= greedy.score, "{best:?} {greedy:?}");
    }
}
