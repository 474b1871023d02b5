//! Claims: their arithmetic is that of SciPy and statsmodels, and they are false as seldom as they say.

mod comparisons;
mod simulated;

use lookback::scoring::{LEAST_SENTENCES, Part, Verdict, contrast, contrast_with_level, holm, interval_of_fraction};
use serde::Deserialize;

#[derive(Deserialize)]
struct Golden {
    welch: Vec<Welch>,
    wilson: Vec<Wilson>,
    holm: Vec<Holm>,
    levels: Vec<Level>,
}

#[derive(Deserialize)]
struct Welch {
    a: Vec<f64>,
    b: Vec<f64>,
    p_value: f64,
    interval: [f64; 2],
}

#[derive(Deserialize)]
struct Wilson {
    right: usize,
    n: usize,
    interval: [f64; 2],
}

#[derive(Deserialize)]
struct Holm {
    p_values: Vec<f64>,
    corrected: Vec<f64>,
}

#[derive(Deserialize)]
struct Level {
    right: usize,
    n: usize,
    level: f64,
    p_value: f64,
}

fn golden() -> Golden {
    serde_json::from_str(include_str!("../../../golden/inference.json")).unwrap()
}

#[track_caller]
fn assert_near(found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() <= tolerance, "{found} instead of {expected}");
    }
}

#[test]
fn a_difference_over_seeds_alone_is_welch_s_test() {
    for case in golden().welch {
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let parts = [&case.a, &case.b].map(|scores| Part::of_seeds(scores).unwrap());
        let found = contrast(mean(&case.b) - mean(&case.a), false, 1000, &parts);
        assert_near(&[found.p_value.unwrap()], &[case.p_value], 1e-9);
        assert_near(&[found.low, found.high], &case.interval, 1e-7);
    }
    // Two seeds of 21.4 +- 2.0 and 20.6 +- 7.5 are no difference.
    assert!(golden().welch[0].p_value > 0.8);
}

#[test]
fn an_interval_of_a_fraction_is_wilson_s() {
    for Wilson { right, n, interval } in golden().wilson {
        let fraction = right as f64 / n as f64;
        let part = Part { variance: fraction * (1.0 - fraction) / n as f64, freedom: 1e9 };
        assert_near(&interval_of_fraction(fraction, n, &[part]), &interval, 1e-6);
    }
}

#[test]
fn a_fraction_is_compared_with_a_level_by_the_score_test() {
    for Level { right, n, level, p_value } in golden().levels {
        let fraction = right as f64 / n as f64;
        let part = Part { variance: fraction * (1.0 - fraction) / n as f64, freedom: 1e9 };
        let found = contrast_with_level(fraction, level, n, &[part]);
        // Of a million degrees of freedom, Student's distribution is the normal one but for this.
        assert_near(&[found.p_value.unwrap()], &[p_value], 1e-6);
        let interval = interval_of_fraction(fraction, n, &[part]);
        assert_near(&[found.low, found.high], &interval.map(|end| end - level), 1e-12);
        // The interval is what the test does not refuse.
        assert_eq!(p_value < 0.05, !(interval[0]..=interval[1]).contains(&level), "{right} of {n}");
    }
    // Three seeds that differ by as much as they are off say nothing.
    let parts = [Part::of_sentences(0.0009, 100), Part::of_seeds(&[0.9, 0.98, 1.0]).unwrap()];
    assert!(contrast_with_level(0.96, 0.9, 100, &parts).p_value.unwrap() > 0.1);
    assert_eq!(contrast_with_level(1.0, 0.9, LEAST_SENTENCES - 1, &parts).p_value, None);
    // With several seeds, too, the interval is what the test does not refuse.
    for by_seed in
        [&[0.75, 0.80, 0.85][..], &[0.78, 0.82], &[0.70, 0.72, 0.71, 0.74], &[0.95, 0.96, 0.955], &[0.99, 1.0]]
    {
        let score = by_seed.iter().sum::<f64>() / by_seed.len() as f64;
        let parts = [Part::of_sentences(score * (1.0 - score) / 100.0, 100), Part::of_seeds(by_seed).unwrap()];
        let [low, high] = interval_of_fraction(score, 100, &parts);
        let levels = [(low - 0.001, true), (low + 0.001, false), (high - 0.001, false), (high + 0.001, true)];
        // No fraction is beyond 1.
        for (level, is_refused) in levels.into_iter().filter(|(level, _)| (0.0..1.0).contains(level)) {
            let p = contrast_with_level(score, level, 100, &parts).p_value.unwrap();
            assert_eq!(p < 0.05, is_refused, "{by_seed:?} beside {level}: p = {p}");
        }
        for end in [low, high].into_iter().filter(|end| (1e-9..1.0).contains(end)) {
            assert_near(&[contrast_with_level(score, end, 100, &parts).p_value.unwrap()], &[0.05], 1e-9);
        }
    }
}

#[test]
fn seeds_widen_an_interval_of_a_fraction_by_what_they_differ() {
    let sentences = |fraction: f64| Part::of_sentences(fraction * (1.0 - fraction) / 100.0, 100);
    let none = interval_of_fraction(0.0, 100, &[sentences(0.0)]);
    // Three seeds of which each fails everywhere say no less than one.
    let of_seeds = Part::of_seeds(&[0.0; 3]).unwrap();
    assert_eq!(interval_of_fraction(0.0, 100, &[sentences(0.0), of_seeds]), none);
    assert!(none[0] == 0.0 && (0.03..0.05).contains(&none[1]), "{none:?}");
    // 94, 95 and 96 %: Student's factor for two degrees of freedom is 4.303, and the standard error 0.577 points.
    let alone = interval_of_fraction(0.95, 100, &[sentences(0.95)]);
    let wide = interval_of_fraction(0.95, 100, &[sentences(0.95), Part::of_seeds(&[0.94, 0.95, 0.96]).unwrap()]);
    let more = 4.3027 * 0.01 / 3f64.sqrt();
    assert_near(&[0.95 - wide[0]], &[((0.95 - alone[0]).powi(2) + more * more).sqrt()], 1e-5);
    assert_near(&[wide[1] - 0.95], &[((alone[1] - 0.95).powi(2) + more * more).sqrt()], 1e-5);
}

#[test]
fn corrected_p_values_are_holm_s() {
    for Holm { p_values, corrected } in golden().holm {
        let found = holm(&p_values.iter().copied().map(Some).collect::<Vec<_>>());
        assert_near(&found.into_iter().flatten().collect::<Vec<_>>(), &corrected, 1e-12);
    }
    // What has no p-value is no test, and takes nothing from the others.
    assert_eq!(holm(&[Some(0.03), None, Some(0.5)]), [Some(0.06), None, Some(0.5)]);
}

#[test]
fn verdicts_follow_from_the_interval_and_the_corrected_p_value() {
    let part = |error: f64| [Part { variance: error * error, freedom: 1e9 }];
    let verdict = |difference: f64, error: f64, corrected: Option<f64>| {
        Verdict::new(&contrast(difference, false, 100, &part(error)), corrected, 1.0)
    };
    assert_eq!(verdict(5.0, 1.0, Some(0.001)), Verdict::Different);
    assert_eq!(verdict(0.1, 0.2, Some(0.6)), Verdict::Equivalent);
    assert_eq!(verdict(0.1, 0.6, Some(0.9)), Verdict::Undecided, "the interval goes beyond the margin");
    assert_eq!(verdict(5.0, 1.0, None), Verdict::Undecided, "too few sentences");
    assert_eq!(contrast(1.0, true, LEAST_SENTENCES - 1, &part(0.0)).p_value, None);
    // Six sentences of which all differ are hardly more than luck, and a hundred are none.
    let all_differ = |n: usize| contrast(1.0, true, n, &[Part::of_sentences(0.0, n)]).p_value.unwrap();
    assert!((0.001..0.05).contains(&all_differ(6)) && all_differ(100) < 1e-9, "{} {}", all_differ(6), all_differ(100));
    assert_eq!(contrast(0.0, true, 100, &part(0.0)).p_value, Some(1.0));
}

#[test]
fn two_fractions_differ_by_no_more_than_all() {
    // Two seeds that are far apart have an interval of Student's t that goes to many times its estimate.
    let parts = [Part::of_sentences(0.001, 100), Part::of_seeds(&[0.1, 0.9]).unwrap()];
    let found = contrast(-0.5, true, 100, &parts);
    assert_eq!([found.low, found.high], [-1.0, 1.0]);
    let scores = contrast(-0.5, false, 100, &parts);
    assert!(scores.low < -4.0 && scores.high > 4.0, "{scores:?} of scores that have no bounds");
}
