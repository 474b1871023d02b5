//! Intervals, p-values, deviations, exponents, crossings, buckets, positions.

use super::{scored, test_set, written};
use lookback::backend::Backend;
use lookback::compare::measure::alignments::chosen;
use lookback::compare::measure::cell::memory;
use lookback::compare::measure::claims::claims;
use lookback::compare::measure::faults;
use lookback::compare::measure::growth::{exponent, exponent_interval, last_crossing};
use lookback::compare::measure::positions::{needed, positions};
use lookback::compare::measure::quality::{self, Scored, deviation, quality};
use lookback::compare::measure::translations::Translation;
use lookback::compare::test_set::TestSet;
use lookback::compare::tuning::{self, candidate, settings, trial_updates};
use lookback::compare::{Budget, Sweep, sweep::combinations};
use lookback::data::{Pair, TaskConfig};
use lookback::experiment::Config;
use lookback::layers::mixer::{MixerKind, SideConfig};
use lookback::models::costs::Costs;
use lookback::models::{RnnConfig, TransformerConfig, Vocabularies};
use lookback::report::comparison::measures::curves::band;
use lookback::scoring::{Bootstrap, Metric, Verdict};
use serde::Deserialize;

#[derive(Deserialize)]
struct Golden {
    means: Vec<Mean>,
    deviations: Vec<Deviation>,
    fits: Vec<Fit>,
    pairs: Vec<Paired>,
}

#[derive(Deserialize)]
struct Mean {
    values: Vec<u8>,
    mean: f64,
    interval: [f64; 2],
}

#[derive(Deserialize)]
struct Deviation {
    values: Vec<f64>,
    deviation: f64,
}

#[derive(Deserialize)]
struct Fit {
    lengths: Vec<f64>,
    seconds: Vec<f64>,
    exponent: f64,
}

#[derive(Deserialize)]
struct Paired {
    references: Vec<String>,
    baseline: Vec<String>,
    system: Vec<String>,
    sacrebleu: SacreBleu,
}

#[derive(Deserialize)]
struct SacreBleu {
    baseline: f64,
    system: f64,
    p_value: f64,
}

fn golden() -> Golden {
    serde_json::from_str(include_str!("../../golden/comparison.json")).unwrap()
}

fn metrics(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| name.to_string()).collect()
}

#[test]
fn intervals_of_accuracies_are_those_of_scipy() {
    for case in golden().means {
        let pairs: Vec<Pair> = case.values.iter().map(|_| Pair::new("a", "right")).collect();
        let texts: Vec<String> =
            case.values.iter().map(|v| if *v == 1 { "right".into() } else { "wrong".into() }).collect();
        let test = test_set(pairs);
        let scored = scored("model", &texts, &test.pairs);
        let bootstrap = Bootstrap { n_samples: 4000, seed: 3 };
        let rows = quality(&scored, &test, &metrics(&["sequence_accuracy"]), &bootstrap).unwrap();
        let score = &rows[0].scores[0];
        assert!((score.score - case.mean).abs() < 1e-12);
        // Ends of a 95 % interval from some thousand resamples move by about a thirtieth of its width.
        // Wilson's interval, which this is, is drawn towards a half by as much as two sentences more of either kind would.
        let allowed = 0.06 * (case.interval[1] - case.interval[0]) + 2.0 / case.values.len() as f64;
        for (found, expected) in [score.low, score.high].into_iter().zip(case.interval) {
            assert!((found - expected).abs() <= allowed, "{found} instead of {expected}");
        }
    }
}

#[test]
fn deviations_and_exponents_are_those_of_numpy() {
    let golden = golden();
    for case in golden.deviations {
        assert!((deviation(&case.values).unwrap() - case.deviation).abs() < 1e-12);
    }
    assert_eq!(deviation(&[1.0]), None, "one seed has no spread");
    for case in golden.fits {
        let points: Vec<(f64, f64)> = case.lengths.into_iter().zip(case.seconds).collect();
        assert!((exponent(&points).unwrap() - case.exponent).abs() < 1e-9);
    }
    assert_eq!(exponent(&[(16.0, 1.0)]), None, "one length has no slope");
    // Between two lengths, one the double of the other, the slope is a difference of binary logarithms.
    let half = |places: [[f64; 3]; 2], n: usize| {
        let [low, high] = exponent_interval(&[(8.0, places[0]), (16.0, places[1])], &[n; 2]).unwrap();
        assert!((low + high - 4.0).abs() < 1e-12, "{low} {high}");
        (high - low) / 2.0
    };
    // Of many measurements the squares of the halves add up; of three, Student's factors for 2 and for 4 degrees of freedom come in.
    assert!((half([[0.5, 1.0, 2.0], [1.0, 4.0, 16.0]], 1_000_001) - 5f64.sqrt()).abs() < 1e-4);
    assert!((half([[0.5, 1.0, 2.0], [2.0, 4.0, 8.0]], 3) - 2f64.sqrt() * 2.776_445 / 4.302_653).abs() < 1e-5);
    assert_eq!(exponent_interval(&[(16.0, [1.0; 3])], &[3]), None);
}

#[test]
fn paired_bootstrap_of_bleu_agrees_with_sacrebleu() {
    for case in golden().pairs {
        let pairs: Vec<Pair> = case.references.iter().map(|text| Pair::new("a", text)).collect();
        let test = test_set(pairs);
        let contestants =
            [scored("baseline", &case.baseline, &test.pairs), scored("system", &case.system, &test.pairs)];
        let bootstrap = Bootstrap { n_samples: 2000, seed: 5 };
        let claim = &claims(&contestants, &test, &metrics(&["bleu"]), &bootstrap).unwrap()[0];
        assert!((claim.estimate - (case.sacrebleu.system - case.sacrebleu.baseline)).abs() < 1e-9, "{claim:?}");
        // A claim asks both directions at once, and is a little more careful.
        let p = claim.p_value.unwrap();
        assert!((p - 2.0 * case.sacrebleu.p_value).abs() < 0.03 + 0.5 * case.sacrebleu.p_value, "{p}, {claim:?}");
    }
}

#[test]
fn two_equal_models_are_never_significant_and_a_damaged_copy_is() {
    let pairs: Vec<Pair> = (0..300).map(|i| Pair::new(format!("a {i}"), format!("b {i} c {} d", i % 7))).collect();
    let right: Vec<String> = pairs.iter().map(|pair| pair.target.clone()).collect();
    // Every tenth sentence is cut.
    let damaged: Vec<String> = right
        .iter()
        .enumerate()
        .map(|(i, text)| if i % 10 == 0 { text[..text.len() - 2].to_string() } else { text.clone() })
        .collect();
    let test = test_set(pairs);
    let all = metrics(&["sequence_accuracy", "token_accuracy", "bleu", "chrf"]);
    let test_of = |system: &[String]| {
        let contestants = [scored("model", &right, &test.pairs), scored("copy", system, &test.pairs)];
        claims(&contestants, &test, &all, &Bootstrap::default()).unwrap()
    };
    for claim in test_of(&right) {
        assert!(claim.verdict != Verdict::Different && claim.p_value == Some(1.0), "{claim:?}");
    }
    for claim in test_of(&damaged) {
        assert!(claim.verdict == Verdict::Different && claim.estimate < 0.0, "{claim:?}");
    }
}

#[test]
fn a_score_of_several_seeds_is_their_mean_and_has_their_spread() {
    let pairs = vec![Pair::new("a", "x"), Pair::new("b", "y")];
    let test = test_set(pairs);
    let seeds = [["x", "y"], ["x", "n"], ["n", "n"]].map(|texts| written(&texts.map(String::from)));
    let scored = Scored::new("model", &seeds, &test.references, false).unwrap();
    let rows = quality(&scored, &test, &metrics(&["sequence_accuracy"]), &Bootstrap::default()).unwrap();
    let score = &rows[0].scores[0];
    assert_eq!(score.by_seed, [1.0, 0.5, 0.0]);
    assert!((score.score - 0.5).abs() < 1e-12 && (score.seed_deviation.unwrap() - 0.5).abs() < 1e-12);
}

#[test]
fn lines_cross_where_they_meet_between_two_lengths() {
    let around =
        |f: fn(f64) -> f64, by: f64| [16.0, 32.0, 64.0, 128.0].map(|x| (x, [f(x) / by, f(x), f(x) * by])).to_vec();
    let at = |f: fn(f64) -> f64| around(f, 1.0);
    // x^2 / 50 overtakes x at 50.
    let (length, interval, is_first) = last_crossing(&at(|x| x * x / 50.0), &at(|x| x)).unwrap();
    assert!((length - 50.0).abs() < 1e-9 && is_first);
    assert!(interval.iter().all(|end| (end - length).abs() < 1e-9), "nothing is left open");
    let (length, _, is_first) = last_crossing(&at(|x| x), &at(|x| x * x / 50.0)).unwrap();
    assert!((length - 50.0).abs() < 1e-9 && !is_first);
    // Known within a tenth to each side, it is 1.21 times as dear at 50 * 1.21.
    let (length, [low, high], _) = last_crossing(&around(|x| x * x / 50.0, 1.1), &around(|x| x, 1.1)).unwrap();
    assert!((length - 50.0).abs() < 1e-9);
    assert!((low - 50.0 / 1.21).abs() < 1e-9 && (high - 50.0 * 1.21).abs() < 1e-9, "{low} to {high}");
    let wide = last_crossing(&around(|x| x * x / 50.0, 2.0), &around(|x| x, 2.0));
    assert_eq!(wide, None, "their intervals leave it open whether they cross at all");
    assert_eq!(last_crossing(&at(|x| x), &at(|x| 2.0 * x)), None, "parallel lines do not meet");
    // Within a tenth of each other they cross by whatever else the machine does.
    let noise = |x: f64| x * if x < 100.0 { 1.05 } else { 0.96 };
    assert_eq!(last_crossing(&at(noise), &at(|x| x)), None);
    let late = |x: f64| x * if x < 100.0 { 2.0 } else { 0.96 };
    assert_eq!(last_crossing(&at(late), &at(|x| x)), None, "it is hardly cheaper in the end");
}

#[test]
fn a_task_says_which_source_token_a_target_token_needs() {
    let task = |name| TaskConfig::from_name(name).unwrap();
    let source = ["a", "b", "c", "d"];
    assert_eq!(needed(&task("copy"), &source, 4, 1), Some(1));
    assert_eq!(needed(&task("reverse"), &source, 4, 1), Some(2));
    assert_eq!(needed(&task("recall"), &["a", "3", "c", "7", "?", "c"], 1, 0), Some(3));
    let asks_all = ["a", "3", "c", "7", "?", "c", "a"];
    assert_eq!([0, 1].map(|t| needed(&task("recall"), &asks_all, 2, t)), [Some(3), Some(1)]);
    let blanks = ["a", "3", "c", "7", "?", ".", "c", ".", "a"];
    assert_eq!([0, 1].map(|t| needed(&task("recall"), &blanks, 2, t)), [Some(3), Some(1)]);
    assert_eq!([3, 5, 6, 8].map(|t| needed(&task("recall"), &blanks, 9, t)), [None, None, Some(3), Some(1)]);
    assert_eq!(needed(&task("recall"), &asks_all, 3, 0), None, "an answer of another length");
    assert_eq!(needed(&task("sort"), &source, 4, 0), None);
    assert_eq!(needed(&task("copy"), &source, 5, 0), None, "tokens that are not the words");
}

#[test]
fn accuracy_by_position_counts_each_tenth_and_leaves_the_end_symbol_out() {
    let source = "a b c d e f g h i j";
    let test = test_set(vec![Pair::new(source, source)]);
    // Right but for the second and the last letter; the end symbol is wrong too.
    let written = vec![Translation { text: source.into(), is_complete: true, forced: "10111111100".into() }];
    let task = TaskConfig::from_name("copy").unwrap();
    let rows = positions("model", &[written], &test, Some(&task));
    let found: Vec<(usize, f64)> = rows.iter().map(|row| (row.tokens, row.accuracy)).collect();
    let expected: Vec<(usize, f64)> = [1, 0, 1, 1, 1, 1, 1, 1, 1, 0].map(|right| (1, f64::from(right))).to_vec();
    assert_eq!(found, expected);
}

#[test]
fn faults_are_counted_as_said() {
    let reference = "a b c d e f g h i j";
    let test = test_set(vec![Pair::new(reference, reference); 4]);
    let texts = ["a b c d e f g h i j", "a b c d", "a b c d a b c d a b c d", "a b c d e f g h i"];
    let mut written = written(&texts.map(String::from));
    written[2].is_complete = false;
    let rows = faults::faults("model", &[written], &[], &test);
    let row = &rows[0];
    assert!((row.length_ratio - 35.0 / 40.0).abs() < 1e-12);
    // "a b c d" and its rotations: of the nine 4-grams of the third text five came before.
    assert_eq!(faults::repetition(texts[2]), (5, 9));
    assert_eq!((row.early_stop, row.cut, row.omission), (0.25, 0.25, None));
}

#[test]
fn memory_of_the_host_is_that_of_a_model_only_where_its_tensors_lie_there() {
    for backend in Backend::ALL {
        let is_host = matches!(backend, Backend::Flex | Backend::Ndarray);
        assert_eq!(memory(backend, Some(7)), is_host.then_some(7), "{backend}");
        assert_eq!(memory(backend, None), None);
    }
}

#[test]
fn operations_of_a_transformer_are_those_counted_by_hand() {
    let config = TransformerConfig {
        d_model: 4,
        d_feed_forward: 8,
        n_heads: 2,
        n_encoder_layers: 1,
        n_decoder_layers: 1,
        ..TransformerConfig::default()
    };
    let vocabularies = Vocabularies { source: 10, target: 10, shared: false };
    let n = 3.0;
    // Four 4x4 products a layer and side, scores and sum over n words, two products of 4x8.
    let (product, network, pairs) = (4.0 * 2.0 * 16.0, 2.0 * 2.0 * 32.0, 2.0 * 2.0 * n * 4.0);
    let encoder = n * (product + pairs + network);
    let decoder = n * (2.0 * product + pairs / 2.0 + pairs + network);
    let output = n * 2.0 * 4.0 * 10.0;
    let found = config.forward_flops(vocabularies, 3);
    assert!((found - (encoder + decoder + output)).abs() < 1e-9);
    // Keys and values of 4 numbers for 3 source and 3 target words.
    assert_eq!(config.state_bytes(3), 4 * 2 * 4 * 6);
}

#[test]
fn an_encoder_of_min_grus_has_no_product_between_steps() {
    let cells = RnnConfig { d_embedding: 4, d_hidden: 6, n_layers: 2, ..RnnConfig::default() };
    let own = |kind: MixerKind| RnnConfig { encoder: SideConfig { mixer: Some(kind.into()) }, ..cells.clone() };
    let flops = |config: &RnnConfig| config.forward_flops(Vocabularies { source: 10, target: 10, shared: false }, 5);
    // The cell by its other name is the same.
    assert_eq!(flops(&cells), flops(&own(MixerKind::Gru)));
    // Both ways, five words: three matrices of 4x6 and 6x6 become two of 4x6, and above them three of 12x6 and 6x6 two of 12x6.
    let (gru, min_gru) = (3.0 * (24.0 + 36.0) + 3.0 * (72.0 + 36.0), 2.0 * 24.0 + 2.0 * 72.0);
    let saved = 5.0 * 2.0 * 2.0 * (gru - min_gru);
    assert_eq!(flops(&cells) - flops(&own(MixerKind::MinGru)), saved);
    let steps = |config: &RnnConfig| [config.training_steps(100), config.decoding_steps(100)];
    // The decoder takes a step for each word in both; its second layer goes one step behind the first.
    assert_eq!((steps(&cells), steps(&own(MixerKind::MinGru))), ([202, 300], [103, 201]));
}

#[test]
fn the_first_trial_has_the_config_s_own_settings_and_the_others_are_the_same_for_all() {
    let mut own = Config::load(None, &[]).unwrap();
    tuning::set(&mut own, (0.0123, 0.45));
    let mut other = Config::load(None, &[]).unwrap();
    tuning::set(&mut other, (0.002, 0.1));
    assert_eq!(settings(&own, 1), (0.0123, 0.45));
    assert_ne!(settings(&other, 1), settings(&own, 1));
    let mut without = own.clone();
    tuning::set(&mut without, (0.0123, 0.0));
    for trial in 2..9 {
        assert_eq!(settings(&own, trial), settings(&other, trial));
        assert_eq!(settings(&own, trial), candidate(1, trial - 1));
        assert_eq!(settings(&without, trial), (candidate(1, trial - 1).0, 0.0));
    }
    assert!((2..9).any(|trial| settings(&own, trial).1 > 0.0), "or the last line shows nothing");
    for (max_updates, tried) in [(8000, 2000), (150, 100), (60, 60)] {
        own.training.max_updates = max_updates;
        assert_eq!(trial_updates(&own), tried);
    }
}

#[test]
fn the_score_of_training_is_the_first_and_is_counted_in_percent_where_it_is_a_part() {
    for (score, is_generated, expected) in [
        (Metric::Bleu, false, &["bleu", "chrf", "token_accuracy", "sequence_accuracy"][..]),
        (Metric::Per, false, &["per", "sequence_accuracy", "token_accuracy"]),
        (Metric::SequenceAccuracy, false, &["sequence_accuracy", "token_accuracy"]),
        (Metric::SequenceAccuracy, true, &["sequence_accuracy", "token_accuracy"]),
        (Metric::Wer, true, &["wer", "sequence_accuracy", "token_accuracy"]),
    ] {
        assert_eq!(quality::metrics(score, is_generated), expected, "{score}");
    }
    // One of four phones is wrong; the second reference is the one that was written.
    let test = TestSet {
        references: vec![vec!["a b c d".into()], vec!["x".into(), "y z".into()]],
        ..test_set(vec![Pair::new("1", "a b c d"), Pair::new("2", "x")])
    };
    let texts = ["a b c e", "y z"].map(String::from);
    let scored = Scored::new("model", &[written(&texts)], &test.references, false).unwrap();
    let names = metrics(&["per", "sequence_error", "sequence_accuracy"]);
    let rows = quality(&scored, &test, &names, &Bootstrap { n_samples: 20, seed: 1 }).unwrap();
    let found: Vec<f64> = rows[0].scores.iter().map(|score| score.score).collect();
    for (found, expected) in found.into_iter().zip([1.0 / 6.0, 0.5, 0.5]) {
        assert!((found - expected).abs() < 1e-12, "{found} instead of {expected}");
    }
}

#[test]
fn a_band_over_seeds_is_the_mean_and_the_range_at_every_place() {
    assert!(band(&[]).is_empty());
    let one = vec![[1.0, 5.0], [2.0, 3.0], [3.0, 2.0]];
    assert_eq!(band(std::slice::from_ref(&one)), [(1.0, 5.0, None), (2.0, 3.0, None), (3.0, 2.0, None)]);
    // The other has points elsewhere, and ends later.
    let other = vec![[0.0, 4.0], [4.0, 0.0]];
    let found = band(&[one, other]);
    let expected = [(1.0, 4.0, [3.0, 5.0]), (2.0, 2.5, [2.0, 3.0]), (3.0, 1.5, [1.0, 2.0]), (4.0, 0.0, [0.0, 0.0])];
    assert_eq!(found, expected.map(|(x, y, interval)| (x, y, Some(interval))));
}

#[test]
fn trials_are_the_same_for_everybody_and_within_their_bounds() {
    for trial in 1..50 {
        let (rate, dropout) = candidate(1, trial);
        assert!((3e-4..=1e-2).contains(&rate) && (0.0..=0.3).contains(&dropout));
        assert_eq!((rate, dropout), candidate(1, trial));
    }
    assert_ne!(candidate(1, 1), candidate(1, 2));
}

#[test]
fn budgets_and_sweeps_are_read_as_written() {
    assert_eq!("updates=20".parse(), Ok(Budget::Updates(20)));
    assert_eq!("minutes=1.5".parse(), Ok(Budget::Minutes(1.5)));
    for wrong in ["20", "updates=0", "minutes=-1", "minutes=inf", "hours=1"] {
        let message = wrong.parse::<Budget>().unwrap_err();
        assert!(message.contains(wrong) && message.contains("updates=2000"), "{message}");
    }
    let score: Sweep =
        r#"model.attention.score={ kind = "dot" },{ kind = "concat", d_attention = 8 }"#.parse().unwrap();
    assert_eq!(score.values, [r#"{ kind = "dot" }"#, r#"{ kind = "concat", d_attention = 8 }"#]);
    let found = combinations(&["model.d_hidden=8,16".parse().unwrap(), score]);
    assert_eq!(found.len(), 4);
    assert_eq!(found[0].0, " d_hidden=8 score=dot");
    assert_eq!(found[3].1[0], "model.d_hidden=16");
    let without_spaces: Sweep = r#"model.positions={kind="rotary"}"#.parse().unwrap();
    assert_eq!(combinations(&[without_spaces])[0].0, " positions=rotary");
    for wrong in ["model.d_hidden", "=1", "a=1,,2"] {
        assert!(wrong.parse::<Sweep>().is_err(), "{wrong}");
    }
}

#[test]
fn a_sentence_of_the_test_set_is_not_said_to_be_of_training() {
    let source = |n: usize| vec!["a"; n].join(" ");
    let pairs = [2, 5, 7, 12].map(|n| Pair::new(source(n), source(n))).to_vec();
    // The longest of training has ten words.
    let test = test_set(pairs);
    let found = chosen(&test);
    let longest = found.iter().find(|(what, _)| what.contains("the longest")).unwrap();
    assert_eq!(longest, &("that is the longest of the test set within the lengths of training".to_string(), 2));
    assert!(found.iter().all(|(what, _)| !what.contains("seen")), "{found:?}");
}
