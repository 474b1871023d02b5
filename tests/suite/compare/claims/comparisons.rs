//! What a comparison claims of what models wrote, and what its sentences make of that.

use crate::compare::{test_set, written};
use lookback::compare::measure::claims::{claims, ends, levels};
use lookback::compare::measure::quality::{Scored, quality};
use lookback::compare::measure::threshold::thresholds;
use lookback::compare::measure::translations::Translation;
use lookback::data::{Pair, TaskConfig};
use lookback::report::comparison::words::{findings, headlines};
use lookback::report::comparison::{
    Claim, ClaimKind, Comparison, Contestant, Group, GroupKind, PositionAccuracy, Threshold,
};
use lookback::scoring::{Bootstrap, Verdict};

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
fn errors_may_be_more_than_all_and_scores_stay_within_their_bounds() {
    let pairs: Vec<Pair> = (0..40).map(|i| Pair::new(format!("a {i}"), format!("b {i}"))).collect();
    let test = test_set(pairs.clone());
    let long = |n: usize| vec!["x ".repeat(n).trim().to_string(); pairs.len()];
    let seeds = |n: [usize; 2]| n.map(|n| written(&long(n))).to_vec();
    let all = [("one", seeds([10, 12])), ("other", seeds([2, 2]))];
    let all = all.map(|(name, seeds)| Scored::new(name, &seeds, &test.references, false).unwrap());
    let (metrics, bootstrap) = (["wer", "bleu"].map(String::from).to_vec(), Bootstrap { n_samples: 300, seed: 1 });
    let found = claims(&all, &test, &metrics, &bootstrap).unwrap();
    let wer = found.iter().find(|claim| claim.metric == "wer").unwrap();
    // Ten or twelve words where two belong: 5 and 6 times as many errors as words, beside once as many.
    assert!((wer.estimate + 4.5).abs() < 1e-9, "{wer:?}");
    assert!(wer.low <= wer.estimate && wer.estimate <= wer.high, "{wer:?}");
    assert!(wer.low < -4.5 && wer.high > -4.5, "two seeds that differ have a width: {wer:?}");
    // Two seeds of which one writes everything right have an interval that is wider than a score can be.
    let half = [written(&answers(&pairs, |_| false)), written(&long(2))];
    let half = Scored::new("half", &half, &test.references, false).unwrap();
    for row in quality(&half, &test, &metrics, &bootstrap).unwrap() {
        let bounds = row.scores.iter().map(|score| (score.metric.as_str(), score.low, score.high));
        for (metric, low, high) in bounds {
            assert!(low >= 0.0 && (metric != "bleu" || high <= 100.0), "{metric}: {low} to {high}");
        }
    }
}

#[test]
fn of_a_single_model_with_one_seed_it_is_said_that_it_is_of_these_runs() {
    let said = |n_seeds: usize| {
        let mut comparison = by_length([100, 99, 60, 10]);
        comparison.claims.iter_mut().for_each(|claim| claim.n_seeds = [n_seeds; 2]);
        findings(&comparison).iter().filter(|finding| finding.starts_with("A single seed:")).count()
    };
    assert_eq!([1, 3].map(said), [1, 0]);
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
