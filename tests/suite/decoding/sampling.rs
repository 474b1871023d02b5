//! Sampling: seeds are fixed, so that a frequency is either right or wrong for good.

use super::mock::{Mock, VOCAB_SIZE};
use super::{config, decode_all, decode_one, requests};
use lookback::decoding::{DecodingConfig, Request, SamplingConfig, decode};

const DRAWS: usize = 10_000;

/// The probabilities of the end and of the words 3, 4 and 5.
const P: [f64; 4] = [0.15, 0.5, 0.3, 0.05];

fn sampled(sampling: SamplingConfig, n_best: usize, cap: usize) -> DecodingConfig {
    DecodingConfig { n_best, sampling: Some(sampling), batch_sentences: DRAWS, batch_tokens: DRAWS * 8, ..config(cap) }
}

/// How often each token comes first, as parts of one.
fn frequencies(sampling: SamplingConfig) -> [f64; 4] {
    let mock = Mock::given(&[(&[], P.map(|p| p as f32))]);
    let requests = vec![Request::new(vec![3]); DRAWS / 4];
    let mut counts = [0usize; VOCAB_SIZE];
    for hypothesis in decode_all(&mock, &requests, &sampled(sampling, 4, 1)).into_iter().flatten() {
        counts[*hypothesis.tokens.first().unwrap_or(&2) as usize] += 1;
    }
    assert_eq!(counts.iter().sum::<usize>(), DRAWS);
    assert_eq!(counts[..2], [0, 0], "padding and the start symbol");
    std::array::from_fn(|i| counts[i + 2] as f64 / DRAWS as f64)
}

#[track_caller]
fn check(sampling: SamplingConfig, expected: [f64; 4]) {
    for (found, p) in frequencies(sampling.clone()).into_iter().zip(expected) {
        // Five standard deviations: a right sampler is outside with one seed in two million.
        let allowed = 5.0 * (p * (1.0 - p) / DRAWS as f64).sqrt();
        assert!((found - p).abs() <= allowed, "{sampling:?}: {found} instead of {p}, {allowed} allowed");
    }
}

fn normalised(values: [f64; 4]) -> [f64; 4] {
    let total: f64 = values.iter().sum();
    values.map(|value| value / total)
}

#[test]
fn words_are_drawn_with_their_probabilities() {
    check(SamplingConfig::default(), P);
}

#[test]
fn the_temperature_divides_the_logits() {
    for temperature in [0.5, 2.0] {
        let sampling = SamplingConfig { temperature, ..SamplingConfig::default() };
        check(sampling, normalised(P.map(|p| p.powf(1.0 / temperature))));
    }
}

#[test]
fn top_k_keeps_the_likeliest_words() {
    check(SamplingConfig { top_k: 2, ..SamplingConfig::default() }, normalised([0.0, 0.5, 0.3, 0.0]));
    check(SamplingConfig { top_k: 99, ..SamplingConfig::default() }, P);
}

#[test]
fn top_p_keeps_the_fewest_words_that_have_the_probability_together() {
    check(SamplingConfig { top_p: 0.45, ..SamplingConfig::default() }, [0.0, 1.0, 0.0, 0.0]);
    check(SamplingConfig { top_p: 0.6, ..SamplingConfig::default() }, normalised([0.0, 0.5, 0.3, 0.0]));
    check(SamplingConfig { top_p: 0.85, ..SamplingConfig::default() }, normalised([0.15, 0.5, 0.3, 0.0]));
    // Of what top-k has left: 0.5 / 0.8 is more than 0.6.
    check(SamplingConfig { top_k: 2, top_p: 0.6, ..SamplingConfig::default() }, [0.0, 1.0, 0.0, 0.0]);
}

#[test]
fn a_temperature_near_zero_and_a_choice_of_one_are_greedy_search() {
    for seed in 0..20 {
        let mock = Mock::drawn(seed);
        let all = requests(&[&[3], &[4, 5], &[5, 5, 5]]);
        let greedy = decode_all(&mock, &all, &config(6));
        for sampling in [
            SamplingConfig { temperature: 1e-6, ..SamplingConfig::default() },
            SamplingConfig { temperature: 1e-310, ..SamplingConfig::default() },
            SamplingConfig { top_k: 1, ..SamplingConfig::default() },
            SamplingConfig { top_p: 1e-9, ..SamplingConfig::default() },
        ] {
            assert_eq!(decode_all(&mock, &all, &sampled(sampling.clone(), 1, 6)), greedy, "{sampling:?}");
        }
    }
}

#[test]
fn the_seed_decides_the_samples_and_the_batch_does_not() {
    let mock = Mock::given(&[]).otherwise([0.2, 0.3, 0.25, 0.25]);
    let all = requests(&[&[3], &[4, 5], &[5, 5, 5], &[4, 5], &[3, 4, 5, 3, 4]]);
    let base = sampled(SamplingConfig::default(), 5, 8);
    let draw = |seed: u64, config: &DecodingConfig| decode(&mock, &all, config, seed, |_| ());
    let expected = draw(1, &base);
    for batch_sentences in [1, 2, 3] {
        assert_eq!(draw(1, &DecodingConfig { batch_sentences, ..base.clone() }), expected, "{batch_sentences} at once");
    }
    assert_ne!(draw(2, &base), expected, "another seed");
    assert_ne!(expected[1], expected[3], "the same sentence at another place");
}

#[test]
fn draws_differ_from_each_other_and_come_likeliest_first() {
    let found = decode_one(&Mock::drawn(1), &Request::new(vec![3]), &sampled(SamplingConfig::default(), 20, 8));
    assert_eq!(found.len(), 20);
    assert!(found.iter().any(|hypothesis| hypothesis.tokens != found[0].tokens), "20 equal draws");
    assert!(found.is_sorted_by(|a, b| a.score >= b.score), "{found:?}");
}

#[test]
fn every_step_has_a_number_of_its_own() {
    let mock = Mock::given(&[]).otherwise([1e-9, 0.5, 0.5, 1e-9]);
    let requests = vec![Request::new(vec![3]); DRAWS];
    let found = decode_all(&mock, &requests, &sampled(SamplingConfig::default(), 1, 2));
    let n_equal = found.iter().filter(|list| list[0].tokens[0] == list[0].tokens[1]).count() as f64;
    // A half, within five standard deviations.
    assert!((n_equal - DRAWS as f64 / 2.0).abs() < 2.5 * (DRAWS as f64).sqrt(), "{n_equal} of {DRAWS} words repeated");
}

#[test]
fn the_second_word_depends_on_the_first() {
    // After 3 comes 4, after 4 comes 3; the state of each row must follow its own words.
    let certain = |word: usize| std::array::from_fn(|i| if i == word { 1.0 } else { 1e-9 });
    let mock = Mock::given(&[(&[], [1e-9, 0.5, 0.5, 1e-9]), (&[3], certain(2)), (&[4], certain(1))]);
    let found = decode_all(&mock, &vec![Request::new(vec![3]); 50], &sampled(SamplingConfig::default(), 2, 2));
    let mut seen: Vec<Vec<u32>> = found.into_iter().flatten().map(|hypothesis| hypothesis.tokens).collect();
    seen.sort();
    seen.dedup();
    assert_eq!(seen, [[3, 4], [4, 3]]);
}
