//! Decoding: a model whose probabilities are known, so that searches and samples can be checked against enumeration.

mod beam;
mod cap;
mod continuation;
mod greedy;
mod mock;
mod sampling;
mod score;

use lookback::decoding::{DecodingConfig, Hypothesis, Request, decode};
use lookback::models::Seq2Seq;
use mock::Mock;

/// How far sums of log-probabilities in 32 bits may be from sums in 64, as a part of the sum where it is more than one: a
/// rounding of some 1e-7 for each word.
const TOLERANCE: f64 = 1e-5;

/// A search without a length penalty whose targets have at most `cap` tokens.
fn config(cap: usize) -> DecodingConfig {
    DecodingConfig {
        length_penalty: 0.0,
        max_len_factor: Some(0.0),
        max_len_extra: Some(cap),
        ..DecodingConfig::default()
    }
}

fn requests(sources: &[&[u32]]) -> Vec<Request> {
    sources.iter().map(|source| Request::new(source.to_vec())).collect()
}

/// The hypotheses of one request.
fn decode_one(mock: &Mock, request: &Request, config: &DecodingConfig) -> Vec<Hypothesis> {
    decode_all(mock, std::slice::from_ref(request), config).remove(0)
}

fn decode_all<M: Seq2Seq>(model: &M, requests: &[Request], config: &DecodingConfig) -> Vec<Vec<Hypothesis>> {
    config.validate().expect("tests use valid configs");
    decode(model, requests, config, 1, |_| ())
}

/// Fails unless both lists have the same words in the same order, and the same scores within [`TOLERANCE`].
#[track_caller]
fn assert_same(what: &str, found: &[Hypothesis], expected: &[Hypothesis]) {
    let words = |list: &[Hypothesis]| -> Vec<(Vec<u32>, bool)> {
        list.iter().map(|hypothesis| (hypothesis.tokens.clone(), hypothesis.is_complete)).collect()
    };
    assert_eq!(words(found), words(expected), "{what}");
    for (found, expected) in found.iter().zip(expected) {
        let pairs = [(found.log_probability, expected.log_probability), (found.score, expected.score)];
        for (a, b) in pairs {
            assert!((a - b).abs() <= TOLERANCE * b.abs().max(1.0), "{what}: {found:?}, {expected:?}");
        }
    }
}
