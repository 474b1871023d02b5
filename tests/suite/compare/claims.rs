//! Claims: their arithmetic is that of SciPy and statsmodels, and they are false as seldom as they say.

use super::{test_set, written};
use lookback::compare::measure::claims::{claims, ends, levels};
use lookback::compare::measure::quality::{Scored, quality};
use lookback::compare::measure::threshold::thresholds;
use lookback::compare::measure::translations::Translation;
use lookback::data::{Pair, TaskConfig};
use lookback::random::{Purpose, Stream};
use lookback::report::comparison::words::{findings, headlines};
use lookback::report::comparison::{
    Claim, ClaimKind, Comparison, Contestant, Group, GroupKind, PositionAccuracy, Threshold,
};
use lookback::scoring::{
    Bootstrap, LEAST_SENTENCES, Part, Verdict, contrast, contrast_with_level, holm, interval, interval_of_fraction,
    variance,
};
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
    serde_json::from_str(include_str!("../../golden/inference.json")).unwrap()
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

/// Two architectures and test sentences: each has a difficulty, each seed a skill, and each seed its own luck with each sentence.
struct World {
    n_sentences: usize,
    n_seeds: usize,
    /// How much the skill of seeds differs, in logits.
    skill: f64,
    /// By how much the second architecture is better, in logits.
    gain: f64,
}

impl World {
    /// The part of right sentences of each seed of one architecture, and what each seed did with each sentence.
    fn run(&self, trial: u64, architecture: u64) -> Vec<Vec<f64>> {
        let difficulty = Stream::new(trial, Purpose::Sampling, &[1]);
        let of_seed = |seed: usize| {
            let own = Stream::new(trial, Purpose::Sampling, &[2, architecture, seed as u64]);
            let skill = 0.5 + self.gain * architecture as f64 + self.skill * own.normal(1_000_000);
            let right = |sentence: usize| {
                let logit = skill + difficulty.normal(sentence as u64) + 0.7 * own.normal(sentence as u64);
                f64::from(own.unit(2_000_000 + sentence as u64) < 1.0 / (1.0 + (-logit).exp()))
            };
            (0..self.n_sentences).map(right).collect()
        };
        (0..self.n_seeds).map(of_seed).collect()
    }

    /// What is concluded in one trial.
    fn p_value(&self, trial: u64) -> f64 {
        let runs = [0, 1].map(|architecture| self.run(trial, architecture));
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let by_sentence = |i: usize| {
            let of = |runs: &Vec<Vec<f64>>| runs.iter().map(|seed| seed[i]).sum::<f64>() / runs.len() as f64;
            of(&runs[1]) - of(&runs[0])
        };
        let differences: Vec<f64> = (0..self.n_sentences).map(by_sentence).collect();
        // What the bootstrap comes to for a mean.
        let of_sentences = variance(&differences) / self.n_sentences as f64;
        let mut parts = vec![Part::of_sentences(of_sentences, self.n_sentences)];
        parts.extend(
            runs.iter().filter_map(|runs| Part::of_seeds(&runs.iter().map(|seed| mean(seed)).collect::<Vec<_>>())),
        );
        contrast(mean(&differences), true, self.n_sentences, &parts).p_value.unwrap()
    }

    /// The part of trials in which a difference is claimed.
    fn claimed(&self, n_trials: u64) -> f64 {
        (0..n_trials).filter(|trial| self.p_value(*trial) < 0.05).count() as f64 / n_trials as f64
    }
}

/// Without a difference at most one claim in twenty is made, however much seeds differ. (Of 1500 trials, 5 % are 5 % give or take
/// 0.6.)
#[test]
fn of_equal_architectures_at_most_five_of_a_hundred_are_called_different() {
    for (n_seeds, skill) in [(2, 1.0), (3, 0.0), (3, 0.3), (3, 1.0), (10, 1.0)] {
        for n_sentences in [30, 200] {
            let world = World { n_sentences, n_seeds, skill, gain: 0.0 };
            let claimed = world.claimed(1500);
            println!(
                "{n_seeds} seeds of spread {skill}, {n_sentences} sentences: {:.1} % false claims",
                100.0 * claimed
            );
            assert!(claimed <= 0.05 + 3.0 * 0.0057, "{claimed} with {n_seeds} seeds, {n_sentences} sentences");
        }
    }
    // One seed each, of equal skill: these runs are equal, and are called so.
    let runs = World { n_sentences: 200, n_seeds: 1, skill: 0.0, gain: 0.0 };
    assert!(runs.claimed(1500) <= 0.05 + 3.0 * 0.0057);
    // With unequal skills one seed each differs as runs, which is why nothing is said of architectures then.
    let runs = World { n_sentences: 200, n_seeds: 1, skill: 1.0, gain: 0.0 };
    assert!(runs.claimed(300) > 0.3, "the runs do differ");
}

#[test]
fn a_difference_is_found_where_there_is_one() {
    for (n_seeds, gain, least) in [(3, 2.5, 0.8), (10, 1.0, 0.8), (10, 2.0, 0.99)] {
        let world = World { n_sentences: 200, n_seeds, skill: 0.4, gain };
        let found = world.claimed(400);
        println!("{n_seeds} seeds, a gain of {gain} logits: {:.0} % found", 100.0 * found);
        assert!(found >= least, "{found} of {n_seeds} seeds and {gain}");
    }
}

#[test]
fn intervals_hold_the_truth_as_often_as_they_say() {
    for (truth, n) in [(0.5, 100), (0.95, 100), (1.0, 100), (0.95, 600)] {
        let n_trials = 2000;
        let holds = |trial: u64| {
            let stream = Stream::new(trial, Purpose::Sampling, &[3, n as u64]);
            let right = (0..n).filter(|i| stream.unit(*i as u64) < truth).count();
            let fraction = right as f64 / n as f64;
            let part = Part::of_sentences(fraction * (1.0 - fraction) / n as f64, n);
            let [low, high] = interval_of_fraction(fraction, n, &[part]);
            (low..=high).contains(&truth)
        };
        let coverage = (0..n_trials).filter(|trial| holds(*trial)).count() as f64 / n_trials as f64;
        println!("{truth} of {n}: {:.1} % of intervals hold it", 100.0 * coverage);
        // Counts are whole numbers, so that the coverage jumps by a percent or two from one fraction to the next.
        assert!((0.93..=1.0).contains(&coverage), "{coverage} at {truth}");
        assert!(truth == 1.0 || coverage < 0.985, "{coverage} at {truth}: too wide");
    }
    // The mean of seeds without bounds: Student's.
    let holds = |trial: u64| {
        let stream = Stream::new(trial, Purpose::Sampling, &[4]);
        let scores: Vec<f64> = (0..3).map(|i| 20.0 + 2.0 * stream.normal(i)).collect();
        let [low, high] = interval(scores.iter().sum::<f64>() / 3.0, &[Part::of_seeds(&scores).unwrap()]);
        (low..=high).contains(&20.0)
    };
    let coverage = (0..2000).filter(|trial| holds(*trial)).count() as f64 / 2000.0;
    assert!((0.935..=0.965).contains(&coverage), "{coverage}");
}

/// A model that is just as good as the level is called better than it in at most 5 % of trials, and worse in at most 5 %.
#[test]
fn a_model_at_the_level_is_seldom_put_on_one_side_of_it() {
    for (n_seeds, spread) in [(1, 0.0), (3, 0.0), (3, 0.03), (10, 0.03)] {
        for n in [100, 400] {
            let trial = |trial: u64| {
                let of_seed = |seed: usize| {
                    let own = Stream::new(trial, Purpose::Sampling, &[5, n as u64, seed as u64]);
                    let skill = (0.9 + spread * own.normal(1_000_000)).clamp(0.0, 1.0);
                    (0..n).map(|i| f64::from(own.unit(i as u64) < skill)).collect::<Vec<f64>>()
                };
                let right: Vec<Vec<f64>> = (0..n_seeds).map(of_seed).collect();
                let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
                let by_seed: Vec<f64> = right.iter().map(|seed| mean(seed)).collect();
                let by_sentence: Vec<f64> =
                    (0..n).map(|i| right.iter().map(|seed| seed[i]).sum::<f64>() / n_seeds as f64).collect();
                let mut parts = vec![Part::of_sentences(variance(&by_sentence) / n as f64, n)];
                parts.extend(Part::of_seeds(&by_seed));
                let found = contrast_with_level(mean(&by_seed), 0.9, n, &parts);
                let is_claimed = found.p_value.unwrap() < 0.05;
                [is_claimed && found.estimate > 0.0, is_claimed && found.estimate < 0.0]
            };
            let trials: Vec<[bool; 2]> = (0..1500).map(trial).collect();
            for (side, name) in ["above", "below"].into_iter().enumerate() {
                let claimed = trials.iter().filter(|claimed| claimed[side]).count() as f64 / 1500.0;
                println!("{n_seeds} seeds of spread {spread}, {n} sentences: {:.1} % {name}", 100.0 * claimed);
                assert!(claimed <= 0.05, "{claimed} {name}, {n_seeds} seeds, {n} sentences");
            }
        }
    }
}

/// Claims of a whole comparison, from what models wrote.
fn claimed(by_seed: [Vec<Vec<String>>; 2], pairs: &[Pair], groups: Option<Vec<(Group, Vec<usize>)>>) -> Vec<Claim> {
    let mut test = test_set(pairs.to_vec());
    if let Some(groups) = groups {
        test.groups = groups;
    }
    let contestants = ["one", "other"].into_iter().zip(by_seed).map(|(name, seeds)| {
        let seeds: Vec<_> = seeds.iter().map(|texts| written(texts)).collect();
        Scored::new(name, &seeds, &test.references, false).unwrap()
    });
    let metrics = ["sequence_accuracy".to_string()];
    claims(&contestants.collect::<Vec<_>>(), &test, &metrics, &Bootstrap { n_samples: 300, seed: 1 }).unwrap()
}

/// `n` answers of which those at `wrong` are wrong.
fn answers(pairs: &[Pair], wrong: impl Fn(usize) -> bool) -> Vec<String> {
    pairs.iter().enumerate().map(|(i, pair)| if wrong(i) { "wrong".into() } else { pair.target.clone() }).collect()
}

#[test]
fn seeds_are_replicates_and_a_single_one_speaks_of_itself() {
    let pairs: Vec<Pair> = (0..100).map(|i| Pair::new(format!("a {i}"), format!("b {i}"))).collect();
    let right = |n: usize| answers(&pairs, move |i| i >= n);
    // Three seeds that are 20 apart within, and 5 between: nothing can be said.
    let spread = claimed([vec![right(40), right(60), right(80)], vec![right(45), right(65), right(85)]], &pairs, None);
    assert_eq!((spread.len(), spread[0].verdict, spread[0].n_seeds), (1, Verdict::Undecided, [3, 3]));
    assert!((spread[0].estimate - 0.05).abs() < 1e-12 && !spread[0].is_of_runs());
    // The same means with seeds that agree, and a clear difference.
    let clear = claimed([vec![right(60), right(61), right(62)], vec![right(85), right(86), right(84)]], &pairs, None);
    assert_eq!(clear[0].verdict, Verdict::Different);
    // One seed each: said of these runs.
    let single = claimed([vec![right(60)], vec![right(85)]], &pairs, None);
    assert_eq!((single[0].verdict, single[0].is_of_runs()), (Verdict::Different, true));
    assert!(single[0].method.contains("of these runs alone"), "{}", single[0].method);
    let equal = claimed([vec![right(100), right(100)], vec![right(100), right(100)]], &pairs, None);
    assert_eq!(
        (equal[0].verdict, equal[0].p_value),
        (Verdict::Undecided, Some(1.0)),
        "100 of 100 may be 97: {equal:?}"
    );
}

#[test]
fn families_are_corrected_together_and_tiny_groups_say_nothing() {
    let pairs: Vec<Pair> = (0..60).map(|i| Pair::new(format!("a {i}"), format!("b {i}"))).collect();
    let group = |id: &str, kind, range: std::ops::Range<usize>| {
        let group = Group { id: id.into(), kind, sentences: range.len(), is_seen: true, ..Group::default() };
        (group, range.collect::<Vec<_>>())
    };
    let groups = vec![
        group("all", GroupKind::All, 0..60),
        group("1-5", GroupKind::Bucket, 0..28),
        group("6-10", GroupKind::Bucket, 28..57),
        group("length-20", GroupKind::Length, 57..60),
    ];
    let one = vec![answers(&pairs, |i| i >= 28), answers(&pairs, |i| i >= 29)];
    let other = vec![answers(&pairs, |i| i % 9 == 0), answers(&pairs, |i| i % 9 == 1)];
    let found = claimed([one, other], &pairs, Some(groups));
    let of = |kind: ClaimKind, group: &str| {
        found.iter().find(|claim| claim.kind == kind && claim.group == group).unwrap_or_else(|| panic!("{group}"))
    };
    assert_eq!(found.len(), 4 + 2);
    assert_eq!(of(ClaimKind::Models, "length-20").p_value, None);
    assert_eq!(of(ClaimKind::Models, "length-20").verdict, Verdict::Undecided);
    assert_eq!(of(ClaimKind::Models, "all").family, "1 comparison on the whole test set, by one score");
    // The tiny group is no test, so that two are corrected.
    let long = of(ClaimKind::Models, "6-10");
    assert_eq!(long.family, "2 comparisons by length, by one score");
    assert!((long.p_corrected.unwrap() / long.p_value.unwrap() - 2.0).abs() < 1e-9, "{long:?}");
    assert_eq!(long.verdict, Verdict::Different);
    // The first model knows only short sentences, the other is as good at all.
    let of_one = of(ClaimKind::Length, "one");
    assert_eq!((of_one.verdict, &of_one.operands), (Verdict::Different, &["1-5".to_string(), "6-10".to_string()]));
    assert!(of_one.estimate < -0.9);
    assert_ne!(of(ClaimKind::Length, "other").verdict, Verdict::Different);
}

/// Four lengths of 100 sentences each, and a model that has so many of each right.
fn by_length(right: [usize; 4]) -> Comparison {
    let pairs: Vec<Pair> = (0..400).map(|i| Pair::new(format!("a {i}"), format!("b {i}"))).collect();
    let mut test = test_set(pairs.clone());
    for (i, length) in [5, 10, 20, 40].into_iter().enumerate() {
        let indices: Vec<usize> = (100 * i..100 * (i + 1)).collect();
        let (id, kind) = (format!("{length}-{length}"), GroupKind::Bucket);
        let group = Group { id, kind, from: length, to: length, sentences: 100, is_seen: true, ..Group::default() };
        test.groups.push((group, indices));
    }
    let seeds = [0, 1, 2].map(|_| written(&answers(&pairs, |i| i % 100 >= right[i / 100])));
    let scored = Scored::new("one", &seeds, &test.references, false).unwrap();
    let (metrics, bootstrap) = (vec!["sequence_accuracy".to_string()], Bootstrap { n_samples: 300, seed: 1 });
    let mut comparison = Comparison {
        quality: quality(&scored, &test, &metrics, &bootstrap).unwrap(),
        metrics,
        contestants: vec![Contestant { name: "one".into(), ..Contestant::default() }],
        groups: test.groups.iter().map(|(group, _)| group.clone()).collect(),
        claims: levels(&scored, &test, &bootstrap).unwrap(),
        ..Comparison::default()
    };
    comparison.thresholds = thresholds(&comparison);
    comparison
}

#[test]
fn a_model_is_good_up_to_the_last_length_that_is_claimed_to_be_and_no_sentence_says_more() {
    let found = |right: [usize; 4]| {
        let comparison = by_length(right);
        let Threshold { longest_above, first_below, .. } = comparison.thresholds[0];
        let of_level = |text: &String| text.contains("90.0 %") && !text.starts_with("On the whole");
        let sentences: Vec<String> = findings(&comparison).into_iter().filter(of_level).collect();
        assert_eq!(sentences.len(), 1, "{sentences:?}");
        (longest_above, first_below, sentences[0].clone(), headlines(&comparison).join(" "))
    };
    let says = |text: &str| format!("one beside a sequence accuracy of 90.0 %: {text}.");
    let (above, below, text, _) = found([100, 99, 60, 10]);
    assert_eq!((above, below), (Some(10), Some(20)));
    assert_eq!(text, says("above it at 5 and 10 words, below it at 20 and 40 words"));
    // 95 of 100 could be either, and so could 92 and 88.
    let (above, below, text, headline) = found([100, 95, 99, 10]);
    assert_eq!((above, below), (Some(20), Some(40)));
    assert_eq!(text, says("above it at 5 and 20 words, below it at 40 words, undecided at 10 words"));
    assert!(
        headline.contains("The longest length at which the sequence accuracy is significantly above 90.0 %, with none before it significantly below: one 20 words."),
        "{headline}"
    );
    let (above, below, text, _) = found([100, 92, 88, 10]);
    assert_eq!((above, below), (Some(5), Some(40)));
    assert_eq!(text, says("above it at 5 words, below it at 40 words, undecided at 10 and 20 words"));
    // Bad at the shortest and good at all that follow: it is not said to be bad at every length.
    let (above, below, text, headline) = found([50, 100, 100, 100]);
    assert_eq!((above, below), (None, Some(5)));
    assert_eq!(text, says("above it at 10, 20 and 40 words, below it at 5 words"));
    assert!(!text.contains("every") && headline.contains("one none."), "{text} {headline}");
    let (above, below, text, headline) = found([100, 100, 99, 100]);
    assert_eq!((above, below), (Some(40), None));
    assert_eq!(text, says("above it at 5, 10, 20 and 40 words"));
    assert!(headline.contains("one 40 words, the longest tested."), "{headline}");
    let (above, below, text, _) = found([90, 91, 89, 90]);
    assert_eq!((above, below), (None, None));
    assert_eq!(text, says("undecided at 5, 10, 20 and 40 words"));
    // Between these lengths others were not tested; buckets side by side leave none out, and what is claimed is claimed of a whole one.
    let mut buckets = by_length([100, 99, 60, 10]);
    for (group, [from, to]) in
        buckets.groups.iter_mut().filter(|group| group.id != "all").zip([[1, 5], [6, 10], [11, 20], [30, 40]])
    {
        (group.from, group.to) = (from, to);
    }
    assert!(findings(&buckets).contains(&says("above it at 1-10 words, below it at 11-20 and 30-40 words")));
    assert!(
        headlines(&buckets).join(" ").contains("significantly below: one 6-10 words."),
        "{:?}",
        headlines(&buckets)
    );
    // A list of so many numbers may have as many words as one that is well known: it goes by its own length.
    let mut lists = by_length([100, 99, 60, 10]);
    for (group, [id, from, to]) in lists.groups.iter_mut().rev().zip([[6, 11, 21], [5, 9, 17]]) {
        let claim = lists.claims.iter_mut().find(|claim| claim.group == group.id).unwrap();
        group.id = format!("length-{id}");
        claim.group.clone_from(&group.id);
        (group.kind, group.from, group.to, group.mean_length) = (GroupKind::Length, from, to, (from + to) as f64 / 2.0);
    }
    let expected = says("above it at 5 and 10 words, below it at length 5 (9-17) and length 6 (11-21)");
    assert!(findings(&lists).contains(&expected), "{:?}", findings(&lists));
    lists.thresholds[0].longest_above = Some(17);
    assert!(
        headlines(&lists).join(" ").contains("significantly below: one length 5 (9-17)."),
        "{:?}",
        headlines(&lists)
    );
    let comparison = by_length([100, 99, 60, 10]);
    assert_eq!(comparison.claims.len(), 4);
    // Lists that a task counts in items may be as long as others in words: they have no place in the order of lengths.
    let mut mixed = comparison.clone();
    let list = Group { id: "length-6".into(), kind: GroupKind::Length, from: 9, to: 17, ..Group::default() };
    mixed.claims.push(Claim { group: list.id.clone(), estimate: -0.5, ..mixed.claims[3].clone() });
    mixed.groups.push(list.clone());
    assert_eq!(thresholds(&mixed), comparison.thresholds);
    assert_eq!(list.name(), "length 6 (9-17)");
    // One that reaches beyond all buckets has a place there, whatever had none before it.
    let beyond = Group { id: "length-50".into(), from: 41, to: 60, ..list.clone() };
    let across = Group { id: "length-45".into(), from: 38, to: 50, ..list.clone() };
    mixed.groups.extend([across, beyond]);
    let order: Vec<&str> = mixed.by_length().into_iter().map(|group| group.id.as_str()).collect();
    assert_eq!(order, ["5-5", "10-10", "20-20", "40-40", "length-50"]);
    // Lists whose sentences are longer than all buckets on average have one too, at their mean; those that are not, have none.
    let lists = |id: &str, mean_length: f64| Group { id: id.into(), from: 30, to: 60, mean_length, ..list.clone() };
    let mut lists =
        Comparison { groups: [&comparison.groups[..], &[lists("in", 39.0), lists("out", 41.0)]].concat(), ..mixed };
    lists.groups.push(Group { id: "farther".into(), from: 35, to: 70, mean_length: 52.0, ..list.clone() });
    let order: Vec<&str> = lists.by_length().into_iter().map(|group| group.id.as_str()).collect();
    assert_eq!(order, ["5-5", "10-10", "20-20", "40-40", "out", "farther"]);
    for claim in &comparison.claims {
        assert_eq!(claim.family, "4 comparisons of the lengths of one model with one level, by one score");
        assert_eq!((claim.kind, claim.n_seeds, claim.n_sentences), (ClaimKind::Level, [3, 3], 100));
        assert!(
            claim.low <= claim.estimate && claim.estimate <= claim.high && claim.method.contains("Wilson"),
            "{claim:?}"
        );
    }
}

/// What is said of a model that has so many of 100 tokens right in each tenth of 100 sentences of ten words.
fn of_tenths(right: [usize; 10]) -> (Claim, String) {
    let source = "a b c d e f g h i j";
    let test = test_set(vec![Pair::new(source, source); 100]);
    let forced = |i: usize| -> String {
        // The places of the right ones differ from tenth to tenth.
        let verdicts = right.iter().enumerate().map(|(tenth, n)| if (i + 37 * tenth) % 100 < *n { '1' } else { '0' });
        verdicts.chain(['1']).collect()
    };
    let write = |i| Translation { text: source.into(), is_complete: true, forced: forced(i) };
    let seeds: Vec<Vec<Translation>> = (0..3).map(|_| (0..100).map(write).collect()).collect();
    let task = TaskConfig::from_name("copy").unwrap();
    let found = ends(&[("one", &seeds)], &test, Some(&task), &Bootstrap { n_samples: 300, seed: 1 }).unwrap();
    let position = PositionAccuracy { contestant: "one".into(), of: "source".into(), ..PositionAccuracy::default() };
    let comparison = Comparison {
        contestants: vec![Contestant { name: "one".into(), ..Contestant::default() }],
        claims: found.clone(),
        positions: vec![position],
        ..Comparison::default()
    };
    let sentences = findings(&comparison);
    let own: Vec<&String> = sentences.iter().filter(|text| text.contains("tenth")).collect();
    assert_eq!((found.len(), own.len()), (1, 1), "{sentences:?}");
    (found[0].clone(), own[0].clone())
}

#[test]
fn what_is_said_of_the_ends_of_sentences_is_a_claim() {
    let (claim, text) = of_tenths([40, 50, 60, 70, 80, 80, 90, 90, 90, 95]);
    assert_eq!((claim.kind, claim.verdict, claim.n_sentences), (ClaimKind::Position, Verdict::Different, 100));
    assert!((claim.estimate - 0.55).abs() < 1e-12 && claim.low > 0.3 && claim.high < 0.7, "{claim:?}");
    let says = "Tokens of one are right less often in the first tenth of the source than in the last: +55.0 points";
    assert!(text.starts_with(says), "{text}");
    let (claim, text) = of_tenths([95, 90, 80, 70, 80, 80, 80, 60, 50, 40]);
    assert!(claim.estimate < 0.0 && text.contains("right more often in the first tenth"), "{text}");
    // A model that has three in ten right everywhere does not know any part, and nothing else is said of it.
    let (claim, text) = of_tenths([30; 10]);
    assert_eq!(claim.verdict, Verdict::Undecided);
    assert!(text.contains("not significantly different between the first tenth of the source and the last"), "{text}");
    assert!(!text.contains("forgets"), "{text}");
    // Right everywhere: the difference is known to be none.
    let (claim, text) = of_tenths([100; 10]);
    assert_eq!(claim.estimate, 0.0);
    assert!(
        claim.verdict != Verdict::Different && !text.contains("less often") && !text.contains("more often"),
        "{text}"
    );
}

#[test]
fn a_difference_that_is_sure_and_within_the_margin_is_called_small() {
    let pairs: Vec<Pair> = (0..3000).map(|i| Pair::new(format!("a {i}"), format!("b {i}"))).collect();
    let all = vec![answers(&pairs, |_| false); 3];
    let nearly = vec![answers(&pairs, |i| i % 100 == 0); 3];
    let small = &claimed([nearly, all.clone()], &pairs, None)[0];
    assert_eq!((small.verdict, small.is_small), (Verdict::Different, true), "{small:?}");
    let less = vec![answers(&pairs, |i| i % 20 == 0); 3];
    let large = &claimed([less, all], &pairs, None)[0];
    assert_eq!((large.verdict, large.is_small), (Verdict::Different, false), "{large:?}");
}
