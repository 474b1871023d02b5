//! Forced decoding, with real models of each family.

use super::mock::Mock;
use super::{TOLERANCE, decode_all, requests};
use crate::support::{golden_with_source, host_backends};
use lookback::data::batch::Example;
use lookback::decoding::{DecodingConfig, Hypothesis, SamplingConfig, score_targets};
use lookback::models::Autoregressive;

fn example(source: &[u32], target: &[u32]) -> Example {
    Example { source: source.to_vec(), target: target.to_vec() }
}

#[test]
fn forced_scores_are_the_log_probabilities_that_decoding_reports() {
    let sources: [&[u32]; 4] = [&[5, 9, 3], &[4], &[4, 7, 10, 6, 8], &[6, 6]];
    let base = DecodingConfig { max_len_factor: Some(0.0), max_len_extra: Some(7), ..DecodingConfig::default() };
    let ways = [
        base.clone(),
        DecodingConfig { beam_size: 4, n_best: 4, ..base.clone() },
        DecodingConfig { n_best: 3, sampling: Some(SamplingConfig { temperature: 1.3, top_k: 9, top_p: 0.9 }), ..base },
    ];
    let (mut n_complete, mut n_cut) = (0, 0);
    for adapter in host_backends() {
        for case in golden_with_source() {
            let model = case.model(&adapter.device);
            for config in &ways {
                let found = decode_all(&model, &requests(&sources), config);
                let pairs: Vec<(&[u32], Hypothesis)> = sources
                    .iter()
                    .zip(found)
                    .flat_map(|(source, list)| list.into_iter().map(|hypothesis| (*source, hypothesis)))
                    .collect();
                let examples: Vec<Example> = pairs.iter().map(|(source, h)| example(source, &h.tokens)).collect();
                for ((source, hypothesis), scores) in pairs.iter().zip(score_targets(&model, &examples, 64)) {
                    assert_eq!(scores.len(), hypothesis.tokens.len() + 1, "a score for each word and for the end");
                    if let Some(n) = model.answer_len(source.len()) {
                        // The end is out of the running there, so that words share its probability.
                        let total: f64 = scores[..n].iter().sum();
                        assert!(hypothesis.log_probability > total, "{}: {hypothesis:?}, forced {total}", case.name);
                        assert!(
                            (hypothesis.tokens.len(), hypothesis.is_complete) == (n, true),
                            "{}: {hypothesis:?}",
                            case.name
                        );
                        continue;
                    }
                    let n_decoded = hypothesis.tokens.len() + usize::from(hypothesis.is_complete);
                    let total: f64 = scores[..n_decoded].iter().sum();
                    let gap = (total - hypothesis.log_probability).abs();
                    let what = format!("{} on {}: {source:?} {hypothesis:?}", case.name, adapter.backend);
                    assert!(gap < TOLERANCE * total.abs().max(1.0), "{what}: forced {total}");
                    if hypothesis.is_complete { n_complete += 1 } else { n_cut += 1 }
                }
            }
        }
    }
    assert!(n_complete > 50 && n_cut > 50, "{n_complete} complete and {n_cut} cut: both kinds must be met");
}

#[test]
fn scores_are_the_logarithms_of_the_tables_probabilities() {
    let mock =
        Mock::given(&[(&[], [0.1, 0.2, 0.3, 0.4]), (&[5], [0.4, 0.2, 0.1, 0.3]), (&[5, 3], [0.7, 0.1, 0.1, 0.1])]);
    let scores = score_targets(&mock, &[example(&[3], &[5, 3]), example(&[4, 4], &[]), example(&[4], &[5])], 4096);
    // What can never follow has a third of all probability in these tables.
    let expected: [&[f64]; 3] = [&[0.4, 0.2, 0.7], &[0.1], &[0.4, 0.4]];
    for (found, expected) in scores.iter().zip(expected) {
        assert_eq!(found.len(), expected.len());
        for (found, p) in found.iter().zip(expected) {
            assert!((found - (p / 1.5).ln()).abs() < TOLERANCE, "{found} instead of ln {}", p / 1.5);
        }
    }
}

#[test]
fn scores_do_not_depend_on_the_batch() {
    let mock = Mock::drawn(1);
    let targets: [&[u32]; 5] = [&[3], &[], &[5, 5, 5, 5, 5, 5], &[4, 3], &[3, 4, 5]];
    let examples: Vec<Example> = targets.iter().enumerate().map(|(i, t)| example(&vec![4; 1 + i % 3], t)).collect();
    let expected = score_targets(&mock, &examples, 4096);
    assert_eq!(expected.iter().map(Vec::len).collect::<Vec<_>>(), [2, 1, 7, 3, 4]);
    for batch_tokens in [1, 8, 20] {
        assert_eq!(score_targets(&mock, &examples, batch_tokens), expected, "{batch_tokens} tokens at once");
    }
}

#[test]
fn perplexity_is_the_inverse_of_the_mean_probability_of_a_token() {
    // Three words and the end, each with probability one quarter.
    let log_probability = 4.0 * 0.25f64.ln();
    let hypothesis = Hypothesis { tokens: vec![3, 4, 5], log_probability, score: 0.0, is_complete: true };
    assert!((hypothesis.perplexity() - 4.0).abs() < 1e-12);
    // Cut: nothing was said of an end.
    let cut = Hypothesis { tokens: vec![3; 4], is_complete: false, ..hypothesis };
    assert!((cut.perplexity() - 4.0).abs() < 1e-12);
}
