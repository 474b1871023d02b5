//! The length cap that is derived from training data.

use crate::support::random_cases;
use lookback::decoding::DecodingConfig;
use proptest::prelude::*;

fn fitted(lengths: &[(usize, usize)]) -> DecodingConfig {
    let mut config = DecodingConfig::default();
    config.fit_cap(lengths.iter().copied());
    config
}

proptest! {
    #![proptest_config(random_cases(200))]

    #[test]
    fn no_training_target_is_cut_nor_one_of_twice_the_length(
        lengths in prop::collection::vec((1_usize..60, 0_usize..200), 1..40)
    ) {
        let config = fitted(&lengths);
        for (source, target) in lengths {
            // Of twice the words on both sides, with one end symbol.
            for (source, target) in [(source, target), (2 * source, 2 * target)] {
                prop_assert!(config.cap(source, None) > target, "{target} words and an end for {source}: {config:?}");
            }
        }
    }
}

#[test]
fn a_corpus_of_equal_lengths_gets_twice_its_length_and_twenty() {
    let lengths: Vec<(usize, usize)> = (1..=20).map(|len| (len, len)).collect();
    let (factor, extra) = fitted(&lengths).length_cap();
    // 1.1 target tokens for each source token, end symbols included.
    assert_eq!((factor, extra), (2.2, 20));
}

/// SCAN's split by length: "jump around left twice", four words and sixteen actions, is in training; "jump around left thrice
/// and jump around right thrice", nine words and forty-eight actions, is tested.
#[test]
fn long_answers_to_short_sources_leave_room_for_longer_ones() {
    let lengths = [(1, 1), (2, 2), (3, 4), (4, 16), (5, 9), (7, 12), (8, 18), (9, 22)];
    assert!(fitted(&lengths).cap(9, None) >= 49, "{:?}", fitted(&lengths));
}

#[test]
fn an_explicit_key_wins() {
    let mut config = DecodingConfig { max_len_factor: Some(3.0), ..DecodingConfig::default() };
    config.fit_cap([(1, 300)].into_iter());
    assert_eq!(config.max_len_factor, Some(3.0));
    assert!(config.max_len_extra.unwrap() >= 20);
    let mut config = DecodingConfig { max_len_extra: Some(1), ..config };
    config.fit_cap([(1, 300)].into_iter());
    assert_eq!((config.max_len_factor, config.max_len_extra), (Some(3.0), Some(1)));
}

#[test]
fn without_training_data_there_is_a_cap_too() {
    let mut config = fitted(&[]);
    assert_eq!(config.cap(10, None), 40);
    config = config.with_cap_of(&fitted(&[(5, 50)]));
    assert!(config.cap(5, None) > 50);
    assert_eq!(config.cap(5, Some(30)), 30, "a model with an end keeps it");
}
