//! Claims: their arithmetic is that of SciPy and statsmodels, and they are false as seldom as they say.

use super::{test_set, written};
use lookback::compare::measure::claims::claims;
use lookback::compare::measure::quality::Scored;
use lookback::data::Pair;
use lookback::random::{Purpose, Stream};
use lookback::report::comparison::{Claim, ClaimKind, Group, GroupKind};
use lookback::scoring::{
    Bootstrap, LEAST_SENTENCES, Part, Verdict, contrast, holm, interval, interval_of_fraction, variance,
};
use serde::Deserialize;

#[derive(Deserialize)]
struct Golden {
    welch: Vec<Welch>,
    wilson: Vec<Wilson>,
    holm: Vec<Holm>,
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
