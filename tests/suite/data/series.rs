//! Series of numbers: read, written, scaled, and refused with the place of the fault.

use lookback::data::batch::Batch;
use lookback::data::tokenizer::NumbersConfig;
use lookback::data::{Pair, Scaling, Series, SeriesPair, TokenizerConfig, Tokenizers};
use tempfile::TempDir;

fn series(text: &str) -> Series {
    Series::parse(text, None).unwrap()
}

fn trained(pairs: &[(&str, &str)]) -> Tokenizers {
    let pairs: Vec<Pair> = pairs.iter().map(|(source, target)| Pair::new(*source, *target)).collect();
    Tokenizers::train(&pairs, &TokenizerConfig::Numbers(NumbersConfig {})).unwrap()
}

fn source_scale(text: &str) -> Scaling {
    trained(&[(text, text)]).source().scaling().unwrap().clone()
}

#[test]
fn a_line_is_steps_of_channels() {
    let found = series("0.5,1.2 -0.6,1e3  7,0");
    assert_eq!((found.n_steps(), found.n_channels()), (3, 2));
    assert_eq!(found.values(), [0.5, 1.2, -0.6, 1000.0, 7.0, 0.0]);
    assert_eq!(found.to_string(), "0.5,1.2 -0.6,1000 7,0");
    assert_eq!(series("").n_steps(), 0);
    assert_eq!(series("").to_string(), "");
}

#[test]
fn numbers_are_written_as_they_are_read_again() {
    for value in
        [0.0, 0.1, -1.0 / 3.0, 1e-5, 9.9e-6, 1e-300, f64::MIN_POSITIVE, 123456789.125, 1e16, -2.5e200, f64::MAX]
    {
        let text = Series::new(1, vec![value]).to_string();
        assert_eq!(series(&text).values(), [value], "{text}");
        assert!(text.len() < 25, "{text}");
    }
}

#[test]
fn faults_name_the_step_and_the_channel() {
    let fault = |text: &str, n: Option<usize>| Series::parse(text, n).unwrap_err();
    assert!(fault("1 abc 3", None).starts_with("step 2: \"abc\" is not a number"));
    assert!(fault("1,2 3,x", None).starts_with("step 2, channel 2: \"x\" is not a number"));
    assert!(fault("1,2 3,", None).starts_with("step 2, channel 2: \"\" is not a number"));
    for number in ["nan", "inf", "-infinity", "1e999"] {
        let message = fault(&format!("1 {number}"), None);
        assert_eq!(message, format!("step 2: \"{number}\" is not finite; every number has to be"));
    }
    assert_eq!(fault("1,2 3", None), "step 2 has 1 channel where 2 channels are expected");
    assert_eq!(fault("1,2", Some(1)), "step 1 has 2 channels where 1 channel is expected");
    let pair = |source, target| SeriesPair::parse(&Pair::new(source, target), [None, None]).unwrap_err();
    let fault = pair("1 2 3", "1 2");
    assert_eq!(
        (fault.is_target, &fault.message[..]),
        (true, "the source has 3 steps and the target 2; a target has a step for each of the source")
    );
    assert!(pair("1 2", "1 b").message.starts_with("target, step 2: \"b\""));
    assert!(!pair("a 2", "1 b").is_target);
}

#[test]
fn scaled_channels_have_mean_0_and_deviation_1() {
    let text = "1,1000 2,1010 3,1040 6,990";
    let (given, scaling) = (series(text), source_scale(text));
    assert_eq!(scaling.mean(), [3.0, 1010.0]);
    assert!((scaling.divisor()[0] - 3.5f64.sqrt()).abs() < 1e-12, "{:?}", scaling.divisor());
    let scaled = scaling.scale(&given);
    for channel in 0..2 {
        let own: Vec<f64> = scaled.iter().skip(channel).step_by(2).map(|value| f64::from(*value)).collect();
        let mean = own.iter().sum::<f64>() / 4.0;
        let variance = own.iter().map(|value| value * value).sum::<f64>() / 4.0;
        assert!(mean.abs() < 1e-6 && (variance - 1.0).abs() < 1e-6, "channel {channel}: {mean}, {variance}");
    }
    let back = scaling.rounded(&scaling.restore(&scaled));
    for (found, value) in back.values().iter().zip(given.values()) {
        assert!((found - value).abs() < 1e-4 * value.abs(), "{found} instead of {value}");
    }
}

#[test]
fn a_mean_far_larger_than_the_deviation_loses_nothing() {
    let scaling = source_scale("1000000000000 1000000000001 1000000000002");
    let scaled = scaling.scale(&series("1000000000000 1000000000002"));
    let expected = 1.5f32.sqrt();
    assert!((scaled[0] + expected).abs() < 1e-5 && (scaled[1] - expected).abs() < 1e-5, "{scaled:?}");
}

#[test]
fn a_channel_that_never_changes_is_not_divided_by_zero() {
    let scaling = source_scale("5,0,1 5,0,2 5,0,3");
    assert_eq!(scaling.divisor()[..2], [5.0, 1.0]);
    let scaled = scaling.scale(&series("5,0,2 10,3,2"));
    assert_eq!(scaled, [0.0, 0.0, 0.0, 1.0, 3.0, 0.0]);
    assert_eq!(scaling.restore(&scaled), series("5,0,2 10,3,2"));
}

#[test]
fn what_is_written_has_the_digits_that_mean_something() {
    let scaling = source_scale("0,0 1,1000000000 2,2000000000");
    let found = Series::new(2, vec![0.123456789123, 123456789.123456, -1e-12, 0.4]);
    assert_eq!(scaling.rounded(&found).to_string(), "0.1234568,123456789 0,0");
}

#[test]
fn the_scale_is_read_back_to_the_last_bit() {
    let dir = TempDir::new().unwrap();
    let numbers =
        |factor: f64| (0..50).map(|i| (factor * (1.7 * i as f64).sin()).to_string()).collect::<Vec<_>>().join(" ");
    for factor in [1.0, 1.0 / 3.0, 1e-9, 1e-30, 1e25, 1e100] {
        let text = numbers(factor);
        let before = trained(&[(&text, "1")]);
        let path = dir.path().join("tokenizer.json");
        before.save(&path).unwrap();
        let after = Tokenizers::load(&path).unwrap();
        assert_eq!(before.source().scaling(), after.source().scaling(), "{factor}");
        assert_eq!(before.fingerprint(), after.fingerprint(), "{factor}");
    }
}

#[test]
fn numbers_that_cannot_be_scaled_are_refused() {
    let pairs = [Pair::new("1e300 -1e300", "1 2")];
    let error = Tokenizers::train(&pairs, &TokenizerConfig::Numbers(NumbersConfig {})).unwrap_err().to_string();
    assert!(error.contains("channel 1 are too large to be scaled"), "{error}");
    let fault = source_scale("1 2 3").check(&series("2 1e200")).unwrap_err();
    assert_eq!(fault, "step 2 is too far from all training data to be scaled");
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("tokenizer.json");
    let text = trained(&[("1 2", "3 4")]).to_json().replacen("\"deviation\": [\n", "\"deviation\": [\n      2.0,\n", 1);
    std::fs::write(&path, text).unwrap();
    let error = Tokenizers::load(&path).unwrap_err().to_string();
    assert!(error.contains("source: there is not a mean and a deviation for each channel"), "{error}");
}

#[test]
fn a_batch_of_series_is_padded_with_zeros_and_counts_real_steps() {
    let tokenizers = trained(&[("1,1 3,3", "10 20")]);
    let (source, target) = (tokenizers.source().scaling().unwrap(), tokenizers.target().scaling().unwrap());
    let pair = |source, target| SeriesPair { source: series(source), target: series(target) };
    let pairs = [pair("1,1 3,3 5,5", "10 20 30"), pair("2,2", "15")];
    let batch = Batch::of_series(&pairs.iter().collect::<Vec<_>>(), source, target, &crate::support::flex());
    assert_eq!(batch.n_target_tokens(), 4);
    let values = lookback::models::weights::to_vec(batch.source.values.clone().unwrap());
    assert_eq!(values, [-1.0, -1.0, 1.0, 1.0, 3.0, 3.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    let wanted = batch.target_values.unwrap();
    assert_eq!(wanted.scaled, [-1.0, 1.0, 3.0, 0.0, 0.0, 0.0]);
    assert_eq!((wanted.lengths, wanted.units), (vec![3, 1], vec![5.0]));
    assert_eq!((batch.source.len(), batch.target_input.len(), batch.source.lengths), (3, 3, vec![3, 1]));
}
