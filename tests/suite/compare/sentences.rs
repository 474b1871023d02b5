//! The report's sentences follow its numbers.

use super::example::example;
use lookback::report::comparison::measures::tables;
use lookback::report::comparison::words::findings;
use lookback::report::comparison::{Group, html, measures};
use lookback::scoring::Verdict;

#[test]
fn sentences_follow_the_numbers_whichever_way_they_point() {
    let comparison = example();
    let text = findings(&comparison).join("\n");
    for part in [
        "one <b> 80.0 %, other & \"co\" 75.0 %",
        "one <b> is ahead of other & \"co\" by 5.0 points, which may be luck (0.0 to 12.0; corrected p = 0.100). A single seed: this is said of these runs",
        "one <b> gets worse with length",
        "other & \"co\" is as good on the longest sentences as on the shortest within what training has seen",
        "20 words (2.0 times the longest): one <b> 10.0 %, 9.0 to 10.5; other & \"co\" 70.0 %, 63.0 to 73.5.",
    ] {
        assert!(text.contains(part), "{part:?} is missing in:\n{text}");
    }
    let mut turned = comparison;
    turned.quality.iter_mut().for_each(|row| {
        let score = &mut row.scores[0];
        let value = 1.0 - score.score;
        (score.score, score.low, score.high) = (value, value * 0.9, value * 1.05);
    });
    (turned.claims[0].estimate, turned.claims[0].low, turned.claims[0].high) = (0.05, 0.01, 0.09);
    turned.claims[0].verdict = Verdict::Different;
    turned.claims[0].p_corrected = Some(0.0001);
    turned.claims[0].n_seeds = [3, 3];
    turned.claims[2].verdict = Verdict::Undecided;
    turned.claims[2].p_corrected = Some(0.9);
    let text = findings(&turned).join("\n");
    for part in [
        "other & \"co\" 25.0 %, one <b> 20.0 %",
        "other & \"co\" is better than one <b> by 5.0 points (1.0 to 9.0; corrected p < 0.001).",
        "one <b> gets better with length",
        "other & \"co\" has no significant difference between the shortest sentences and the longest",
    ] {
        assert!(text.contains(part), "{part:?} is missing in:\n{text}");
    }
    assert!(!text.contains("single seed"), "{text}");
    turned.claims[2].p_corrected = None;
    let few = "other & \"co\" has too few of the shortest or of the longest sentences to tell them apart";
    assert!(findings(&turned).join("\n").contains(few), "nothing was tested");
    turned.claims[0].verdict = Verdict::Equivalent;
    assert!(
        findings(&turned).join("\n").contains("are equivalent within 2.0 points (the difference is 1.0 to 9.0 points)")
    );
    let tie = (turned.claims[0].estimate, turned.claims[0].verdict);
    (turned.claims[0].estimate, turned.claims[0].verdict) = (0.0, Verdict::Undecided);
    let text = findings(&turned).join("\n");
    assert!(
        text.contains("other & \"co\" and one <b> have the same score, and may differ by as much as 9.0 points"),
        "{text}"
    );
    (turned.claims[0].estimate, turned.claims[0].verdict) = tie;
    (turned.claims[0].verdict, turned.claims[0].p_corrected) = (Verdict::Undecided, None);
    assert!(findings(&turned).join("\n").contains("too few sentences to say more"));
}

#[test]
fn where_less_is_better_the_least_is_first_and_a_rise_is_worse() {
    let mut errors = example();
    errors.metrics = vec!["per".into()];
    errors.quality.iter_mut().for_each(|row| row.scores[0].metric = "per".into());
    errors.claims.iter_mut().for_each(|claim| claim.metric = "per".into());
    let text = findings(&errors).join("\n");
    for part in ["(PER, less is better): other & \"co\" 75.0 %, one <b> 80.0 %", "one <b> gets better with length"] {
        assert!(text.contains(part), "{part:?} is missing in:\n{text}");
    }
    let all = measures::charts(&errors);
    let quality = all.iter().find(|chart| chart.id == "quality-per").unwrap();
    assert_eq!((quality.title.as_str(), quality.y.label.as_str()), ("PER by source length", "PER (% of phones)"));
}

#[test]
fn a_gain_is_above_zero_whichever_model_and_whichever_way_the_score_points() {
    let mut comparison = example();
    let mut says = |metric: &str, turned: bool, part: &str| {
        comparison.metrics = vec![metric.into()];
        comparison.quality.iter_mut().for_each(|row| row.scores[0].metric = metric.into());
        comparison.claims.iter_mut().for_each(|claim| claim.metric = metric.into());
        let claim = &mut comparison.claims[0];
        (claim.verdict, claim.p_corrected, claim.n_seeds) = (Verdict::Different, Some(0.01), [3, 3]);
        let (first, second) = ("one <b>".to_string(), "other & \"co\"".to_string());
        // The second minus the first: 75 - 80, or 80 - 75.
        (claim.operands, claim.estimate, claim.low, claim.high) = match turned {
            false => ([first, second], -0.05, -0.09, -0.01),
            true => ([second, first], 0.05, 0.01, 0.09),
        };
        let text = findings(&comparison).join("\n");
        assert!(text.contains(part), "{part:?} is missing in:\n{text}");
    };
    for turned in [false, true] {
        let gain = "by 5.0 points (1.0 to 9.0; corrected p = 0.010)";
        says("sequence_accuracy", turned, &format!("one <b> is better than other & \"co\" {gain}"));
        says("per", turned, &format!("other & \"co\" is better than one <b> {gain}"));
    }
    comparison.claims[0].is_small = true;
    let text = findings(&comparison).join("\n");
    assert!(text.contains("by 5.0 points (1.0 to 9.0, less than 2.0 points; corrected p = 0.010)"), "{text}");
}

#[test]
fn sentences_of_single_lengths_are_counted_apart() {
    let mut comparison = example();
    comparison.task.test_sentences = 600;
    assert_eq!(html::test_sentences(&comparison), "600 test sentences and 10 of 20 words");
    let more = comparison.groups[3].clone();
    comparison.groups.push(Group { id: "length-40".into(), from: 40, to: 40, ..more });
    let says = "600 test sentences and 10 of each of the lengths 20 and 40";
    assert_eq!(html::test_sentences(&comparison), says);
    assert!(html::page(&comparison).render().contains(says));
    comparison.groups.truncate(3);
    assert_eq!(html::test_sentences(&comparison), "600 test sentences");
}

#[test]
fn answers_that_were_cut_are_counted_for_each_model() {
    let mut comparison = example();
    assert!(!findings(&comparison).join("\n").contains("cut"), "nothing is said of nothing");
    comparison.contestants[0].cut_answers = vec![3, 0];
    comparison.contestants[1].cut_answers = vec![0, 0];
    let text = findings(&comparison).join("\n");
    assert!(text.contains("Answers that were cut at the length cap: one <b> 3 of 40."), "{text}");
    let all = tables(&comparison);
    let models = all.iter().find(|table| table.id == "contestants").unwrap();
    let column = models.columns.iter().position(|name| name == "answers cut").unwrap();
    assert_eq!(models.rows[0][column].value, Some(1.5));
}
