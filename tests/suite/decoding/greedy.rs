//! Greedy search, and what all ways of decoding share: order, batches, empty sources, caps, prefixes.

use super::mock::{Mock, VOCAB_SIZE};
use super::{assert_same, config, decode_all, decode_one, requests};
use crate::models::ensemble::grown;
use crate::support::{flex, golden};
use lookback::decoding::{DecodingConfig, Hypothesis, Request, SamplingConfig, decode, decode_among};
use lookback::models::{Autoregressive, Ensemble, Seq2Seq};
use lookback::ranks::{Ranks, within_process};

#[test]
fn greedy_search_takes_the_likeliest_word_at_every_step() {
    for seed in 0..50 {
        let mock = Mock::drawn(seed);
        let mut tokens: Vec<u32> = Vec::new();
        let mut total = 0.0;
        let mut is_complete = false;
        while tokens.len() < 6 && !is_complete {
            let row = mock.log_probabilities(&[3, 4], &tokens);
            let best = (2..VOCAB_SIZE).max_by(|a, b| row[*a].total_cmp(&row[*b])).expect("words");
            total += row[best];
            is_complete = best == 2;
            tokens.extend((best != 2).then_some(best as u32));
        }
        let expected = Hypothesis { tokens, log_probability: total, score: total, is_complete };
        assert_same(&format!("seed {seed}"), &decode_one(&mock, &Request::new(vec![3, 4]), &config(6)), &[expected]);
    }
}

#[test]
fn greedy_search_is_a_beam_of_one() {
    // The simple search goes on after the end; without a length penalty nothing better can come.
    for seed in 0..50 {
        let mock = Mock::drawn(seed);
        let expected = mock.simple_beam(&[3, 4], &config(6), 6);
        let found = decode_one(&mock, &Request::new(vec![3, 4]), &config(6));
        if found[0].is_complete {
            assert_same(&format!("seed {seed}"), &found, &expected);
        }
    }
}

#[test]
fn among_equally_likely_words_the_lowest_id_wins() {
    let mock =
        Mock::given(&[(&[], [0.1, 0.1, 0.4, 0.4]), (&[4], [0.3, 0.3, 0.2, 0.2])]).otherwise([0.3, 0.3, 0.2, 0.2]);
    assert_eq!(decode_one(&mock, &Request::new(vec![3]), &config(5))[0].tokens, [4]);
    let beam = decode_one(&mock, &Request::new(vec![3]), &DecodingConfig { beam_size: 2, n_best: 2, ..config(2) });
    assert_eq!(beam[0].tokens, [4]);
}

#[test]
fn the_cap_is_a_part_of_the_source_and_a_constant_and_what_is_cut_says_so() {
    // The end hardly ever comes.
    let mock = Mock::given(&[]).otherwise([1e-9, 0.1, 0.8, 0.1]);
    for beam_size in [1, 2] {
        // 1.5 tokens for each of the source, rounded up, and two more.
        let config = DecodingConfig { beam_size, max_len_factor: Some(1.5), max_len_extra: Some(2), ..config(0) };
        let found = decode_all(&mock, &requests(&[&[3], &[3, 3], &[3, 3, 3, 3, 3]]), &config);
        let lengths: Vec<usize> = found.iter().map(|list| list[0].tokens.len()).collect();
        assert_eq!(lengths, [4, 5, 10], "{beam_size} beams");
        assert!(found.iter().all(|list| !list[0].is_complete), "{beam_size} beams");
    }
    assert_eq!(config(3).cap(9, Some(2)), 2, "the model's limit");
    assert_eq!(config(0).cap(9, None), 1, "at least one token");
}

/// One config for each way of decoding.
fn ways() -> [(&'static str, DecodingConfig); 3] {
    let base = DecodingConfig { length_penalty: 1.0, ..config(6) };
    [
        ("greedy", base.clone()),
        ("beam", DecodingConfig { beam_size: 3, n_best: 2, ..base.clone() }),
        ("sampling", DecodingConfig { n_best: 3, sampling: Some(SamplingConfig::default()), ..base }),
    ]
}

fn mixed() -> Vec<Request> {
    let sources: [&[u32]; 9] =
        [&[3, 3, 3, 3, 3], &[4], &[], &[5, 4, 3], &[4, 4, 4, 4, 4, 4, 4], &[5], &[], &[3, 4], &[5, 5, 5]];
    let mut requests = requests(&sources);
    requests[3].prefix = vec![5, 5];
    requests[5].prefix = vec![3];
    requests
}

#[test]
fn results_come_in_the_order_of_the_requests_however_these_are_batched() {
    let mock = Mock::drawn(1);
    for (way, config) in ways() {
        let expected = decode_all(&mock, &mixed(), &config);
        for (batch_tokens, batch_sentences) in [(1, 128), (12, 128), (4096, 1), (4096, 4), (4096, 7)] {
            let batched = DecodingConfig { batch_tokens, batch_sentences, ..config.clone() };
            assert_eq!(decode_all(&mock, &mixed(), &batched), expected, "{way}, {batch_tokens}, {batch_sentences}");
        }
        // The mock knows its source, so that an exchange would be seen.
        for (request, found) in mixed().iter().zip(&expected).filter(|(request, _)| !request.source.is_empty()) {
            for hypothesis in found {
                let words = hypothesis.tokens.iter().copied().chain(hypothesis.is_complete.then_some(2));
                let log_p = words
                    .enumerate()
                    .map(|(i, word)| mock.log_probabilities(&request.source, &hypothesis.tokens[..i])[word as usize]);
                let log_p: f64 = log_p.sum();
                assert!((log_p - hypothesis.log_probability).abs() < super::TOLERANCE, "{way}: {request:?} {found:?}");
            }
        }
    }
}

#[test]
fn real_models_write_the_same_alone_and_in_a_batch() {
    let config = DecodingConfig { max_len_factor: Some(0.0), max_len_extra: Some(7), ..DecodingConfig::default() };
    let requests = requests(&[&[5, 9, 3], &[4], &[4, 7, 10, 6, 8], &[], &[6, 6]]);
    for case in golden().models.iter() {
        check_alone(&case.name, &case.model(&flex()), &requests, &config);
    }
}

/// Each model of an ensemble goes on with rows and a memory of its own, and reads a prefix by itself.
#[test]
fn models_that_write_together_write_the_same_alone_and_in_a_batch() {
    let config = DecodingConfig { max_len_factor: Some(0.0), max_len_extra: Some(7), ..DecodingConfig::default() };
    let mut requests = requests(&[&[5, 9, 3], &[4], &[4, 7, 10, 6, 8], &[], &[6, 6]]);
    requests[1].prefix = vec![5, 6, 4];
    let mut n_checked = 0;
    for case in golden().models.iter().step_by(3) {
        let model = case.model(&flex());
        let both = Ensemble::new(vec![model.clone(), grown(&model)]);
        check_alone(&format!("two of {}", case.name), &both, &requests, &config);
        // What it writes after a prefix is what it writes without one that begins so.
        let free = decode_all(&both, &requests[..1], &config).remove(0);
        let mut forced = requests[0].clone();
        forced.prefix = free[0].tokens.iter().take(3).copied().collect();
        super::assert_same(&case.name, &decode_all(&both, &[forced.clone()], &config)[0], &free);
        n_checked += usize::from(forced.prefix.len() > 1);
    }
    assert!(n_checked > 10, "{n_checked} prefixes");
}

fn check_alone<M: Autoregressive + Seq2Seq>(name: &str, model: &M, requests: &[Request], config: &DecodingConfig) {
    for beam_size in [1, 3] {
        let config = DecodingConfig { beam_size, n_best: beam_size, ..config.clone() };
        let together = decode_all(model, requests, &config);
        for (request, found) in requests.iter().zip(&together) {
            let alone = decode_all(model, std::slice::from_ref(request), &config).remove(0);
            super::assert_same(&format!("{name}, {beam_size} beams, {:?}", request.source), found, &alone);
        }
    }
}

#[test]
fn an_empty_source_gives_an_empty_target_and_never_enters_the_model() {
    // The mock panics at an empty source.
    for (way, config) in ways() {
        let empty = Hypothesis { tokens: Vec::new(), log_probability: 0.0, score: 0.0, is_complete: true };
        let found = decode_all(&Mock::drawn(1), &mixed(), &config);
        assert_eq!((&found[2], &found[6]), (&vec![empty.clone()], &vec![empty.clone()]), "{way}");
        assert_eq!(decode_all(&Mock::drawn(1), &requests(&[&[]]), &config), [[empty]], "{way}");
        assert!(decode_all(&Mock::drawn(1), &[], &config).is_empty(), "{way}");
    }
}

#[test]
fn a_prefix_begins_every_target_even_beyond_the_cap() {
    let mock = Mock::drawn(4);
    for (way, config) in ways() {
        for prefix in [vec![3], vec![5, 3], vec![4; 9]] {
            let request = Request { source: vec![3, 4], prefix: prefix.clone(), number: None };
            let found = decode_one(&mock, &request, &config);
            assert!(!found.is_empty(), "{way}");
            for hypothesis in found {
                assert!(hypothesis.tokens.starts_with(&prefix), "{way}: {prefix:?} {hypothesis:?}");
                let len = hypothesis.tokens.len() + usize::from(hypothesis.is_complete);
                assert!(len <= 6.max(prefix.len() + 1), "{way}: {prefix:?} {hypothesis:?}");
            }
        }
    }
}

#[test]
fn padding_and_the_start_symbol_are_never_written() {
    // In these tables they have a third of all probability.
    let mock = Mock::given(&[(&[], [0.1, 0.2, 0.3, 0.4]), (&[5], [0.4, 0.2, 0.2, 0.2])]);
    for (way, config) in ways() {
        for hypothesis in decode_one(&mock, &Request::new(vec![3]), &config) {
            assert!(hypothesis.tokens.iter().all(|word| *word >= 3), "{way}: {hypothesis:?}");
        }
    }
}

#[test]
fn progress_is_told_in_finished_sentences() {
    let config = DecodingConfig { batch_sentences: 2, ..config(4) };
    let mut told = Vec::new();
    decode(&Mock::drawn(1), &mixed(), &config, 1, |n| told.push(n));
    assert!(told.is_sorted() && told.len() >= 4, "{told:?}");
    assert_eq!(told.last(), Some(&9), "{told:?}");
    assert!(Mock::drawn(1).limits().target.is_none());
}

/// What a sentence becomes can depend on those in its batch. The number of ranks must not show.
#[test]
fn any_number_of_ranks_decodes_the_batches_of_one_process() {
    let mock = Mock::drawn(7).knowing_its_batch();
    let sources: Vec<Vec<u32>> = (0..23).map(|i| (0..i % 6).map(|j| 3 + (i * i + j) % 3).collect()).collect();
    let requests: Vec<Request> = sources.into_iter().map(Request::new).collect();
    for beam_size in [1, 2] {
        let config = DecodingConfig { beam_size, batch_tokens: 12, ..config(6) };
        let expected = decode_all(&mock, &requests, &config);
        let alone: Vec<_> = requests.iter().map(|request| decode_one(&mock, request, &config)).collect();
        assert_ne!(alone, expected, "batches are to matter");
        for size in [1, 2, 3] {
            std::thread::scope(|scope| {
                for ranks in within_process(size) {
                    let (mock, requests, config, expected) = (&mock, &requests, &config, &expected);
                    scope.spawn(move || {
                        let mut n_own = 0;
                        let found = decode_among(mock, requests, config, 1, &ranks, |n| n_own = n);
                        assert_eq!(&found, expected, "rank {} of {size}", ranks.rank());
                        assert_eq!(n_own == requests.len(), size == 1, "each has a share");
                    });
                }
            });
        }
    }
}
