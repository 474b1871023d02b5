//! `lookback compare --suite`: families by tasks, from the file to the matrix.

use super::command::{COMPARED, arguments, write_configs};
use crate::support::page::PageView;
use crate::support::shared_dir;
use crate::training::{assert_says, fail, finish, read, succeed};
use lookback::compare::suite::{BUILT_IN, SuiteConfig};
use lookback::data::{Split, TaskConfig};
use lookback::experiment::Config;
use lookback::report::comparison::{Claim, ClaimKind, Comparison, Group, GroupKind, metric_of};
use lookback::report::suite::{Cell, CellScore, Family, Standing, Suite, SuiteTask, html, matrix, words};
use lookback::scoring::Verdict;
use std::path::Path;
use std::sync::LazyLock;
use tempfile::TempDir;

pub(super) const SMALL: &str = r#"
about = "Two families and two tasks."
match_parameters = true
[config]
backend = "flex"
[config.tokenizer]
kind = "word"
[config.model]
dropout_rate = 0.0
[config.training]
max_updates = 3
batch_tokens = 64
validate_every = 2
save_every = 2
sample_size = 2
score = "sequence-accuracy"

[[task]]
name = "copy"
about = "write it again"
lengths = [4, 6]
per_length = 6
costs = 16
config.data = { task = { kind = "copy", n_symbols = 6, min_len = 1, max_len = 4 }, n_train = 40, n_valid = 4, n_test = 12 }
config.training = { learning_rate = 0.01 }

[[task]]
name = "reverse"
about = "write it backwards"
lengths = [4]
per_length = 6
families = ["Transformer"]
config.data = { task = { kind = "reverse", n_symbols = 6, min_len = 1, max_len = 4 }, n_train = 40, n_valid = 4, n_test = 12 }

[[family]]
name = "RNN, attention"
model = { kind = "rnn", d_embedding = 8, d_hidden = 12, attention = { kind = "bahdanau", score = { kind = "additive", d_attention = 10 } } }

[[family]]
name = "Transformer"
model = { kind = "transformer", d_model = 12, d_feed_forward = 24, n_heads = 2, n_encoder_layers = 1, n_decoder_layers = 1 }
training = { warmup_updates = 2 }
"#;

/// A finished suite in `out`, made once; tests must not write into it.
pub(super) static MADE: LazyLock<(TempDir, String)> = LazyLock::new(|| {
    let dir = shared_dir();
    std::fs::write(dir.path().join("own.toml"), SMALL).unwrap();
    let said = succeed(dir.path(), &["compare", "--suite", "own.toml", "--out", "out"]);
    (dir, said)
});

pub(super) fn results(out: &Path) -> Suite {
    serde_json::from_str(&read(out.join("results.json"))).unwrap()
}

#[test]
fn every_cell_is_a_model_of_its_own_with_the_claims_of_its_comparison() {
    let (dir, said) = &*MADE;
    let out = dir.path().join("out");
    let suite = results(&out);
    assert_eq!(suite.cells.len(), 3, "two families copy, one reverses");
    for task in &suite.tasks {
        let text = read(out.join(&task.name).join("results.json"));
        let comparison: Comparison = serde_json::from_str(&text).unwrap();
        for cell in suite.cells.iter().filter(|cell| cell.task == task.name) {
            let contestant = comparison.contestants.iter().find(|own| own.name == cell.family).unwrap();
            assert_eq!((cell.parameters, &cell.seeds), (contestant.parameters, &contestant.seeds));
            for score in &cell.scores {
                let own = comparison.score(&cell.family, &score.group, &task.metric).unwrap();
                assert_eq!([score.score, score.low, score.high], [own.score, own.low, own.high]);
                let scores = comparison
                    .contestants
                    .iter()
                    .map(|other| comparison.score(&other.name, &score.group, &task.metric).unwrap().score);
                let best = scores.fold(f64::MIN, f64::max);
                let is_different = comparison.claims.iter().any(|claim| {
                    claim.kind == ClaimKind::Models
                        && claim.group == score.group
                        && claim.metric == task.metric
                        && claim.operands.contains(&cell.family)
                        && claim.verdict == Verdict::Different
                });
                match &score.claim {
                    None => assert!(matches!(score.standing, Standing::Best | Standing::Unsolved), "{cell:?}"),
                    Some(claim) => {
                        assert!(comparison.claims.contains(claim) && claim.operands.contains(&cell.family), "{cell:?}");
                        let is_different = claim.verdict == Verdict::Different;
                        assert_eq!((is_different, &claim.group), (score.standing == Standing::Behind, &score.group));
                    }
                }
                let is_behind = score.score < best && is_different;
                assert_eq!(score.standing == Standing::Behind, is_behind, "{cell:?}");
                assert_eq!(score.standing == Standing::Best, score.score == best && best > 0.0, "{cell:?}");
                assert_eq!(score.standing == Standing::Unsolved, best == 0.0, "{cell:?}");
            }
        }
        // A group as long as in training, and one that is longer where the task has such lengths.
        let ids: Vec<&str> = task.groups.iter().map(|group| group.id.as_str()).collect();
        assert_eq!(ids, if task.name == "copy" { vec!["all", "length-6"] } else { vec!["all"] });
    }
    let [rnn, transformer] = ["RNN, attention", "Transformer"].map(|name| suite.cell("copy", name).unwrap().parameters);
    assert!((rnn as f64 / transformer as f64 - 1.0).abs() <= 0.05, "{rnn} and {transformer} parameters");
    assert_says(said, &["copy to 4", "copy at 6", "reverse to 4", "RNN, attention", "the report is out"]);
    // What all have, what the task has, and what the family has.
    let config = Config::load(Some(&out.join("copy/configs/Transformer.toml")), &[]).unwrap();
    assert_eq!((config.training.max_updates, config.training.warmup_updates), (3, 2));
    assert_eq!((config.training.learning_rate, config.model.family().dropout_rate()), (0.01, 0.0));
    for file in ["report/index.html", "report/tables/matrix.csv", "copy/report/index.html", "reverse/report/index.html"]
    {
        assert!(out.join(file).is_file(), "{file}");
    }
    let page = read(out.join("report/index.html"));
    assert_says(&page, &[">copy: score by length<", "Write it again. Each point is a group"]);
}

#[test]
fn the_same_command_again_finds_everything_finished() {
    let (made, _) = &*MADE;
    let dir = TempDir::new().unwrap();
    std::fs::write(dir.path().join("own.toml"), SMALL).unwrap();
    let stop = ["compare", "--suite", "own.toml", "--out", "out"];
    succeed(dir.path(), &stop);
    let first = read(dir.path().join("out/results.json"));
    succeed(dir.path(), &stop);
    assert_eq!(first, read(dir.path().join("out/results.json")), "nothing was trained again");
    let timeless = |mut suite: Suite| {
        suite.cells.iter_mut().for_each(|cell| cell.train_seconds = 0.0);
        suite
    };
    let [own, other] = [dir.path(), made.path()].map(|dir| timeless(results(&dir.join("out"))));
    assert_eq!(own, other, "another run of the same suite");
}

#[test]
fn what_makes_no_suite_is_refused() {
    let dir = TempDir::new().unwrap();
    let says = |text: &str, parts: &[&str]| {
        std::fs::write(dir.path().join("bad.toml"), text).unwrap();
        assert_says(&fail(dir.path(), &["compare", "--suite", "bad.toml"]), parts);
    };
    assert_says(&fail(dir.path(), &["compare", "--suite", "tiny"]), &["no such suite (small, long), and no such file"]);
    says(&SMALL.replace("about = \"Two", "abuot = \"Two"), &["bad.toml:2", "abuot"]);
    says(&SMALL.replace("name = \"reverse\"", "name = \"copy\""), &["the task \"copy\" is there twice"]);
    says(&SMALL.replace("name = \"reverse\"", "name = \"../x\""), &["\"../x\" has a name that no file can have"]);
    says(&SMALL.replace("name = \"reverse\"", "name = \"report\""), &["cannot be called \"report\""]);
    says(&SMALL.replace("[\"Transformer\"]", "[\"transformer\"]"), &["\"transformer\", which is not there"]);
    says(&SMALL.replace("[\"Transformer\"]", "[]"), &["nobody takes part in the task \"reverse\""]);
    says(&SMALL.replace("about = \"Two", "seeds = 0\nabout = \"Two"), &["seeds must be at least 1, got 0"]);
    let message = SMALL.replace("n_symbols = 6", "n_symbols = 0");
    says(&message, &["configs", "RNN, attention.toml", "data.task.n_symbols"]);
    let finished = finish(dir.path(), &["compare", "--suite", "small", "--tune", "3"]);
    assert_eq!(finished.code, Some(2), "the file of a suite says that: {}", finished.stderr);
}

#[test]
fn a_suite_and_a_comparison_have_folders_of_their_own() {
    let (made, _) = &*MADE;
    write_configs(made.path());
    let message = fail(made.path(), &arguments(&["--out", "out"]));
    assert_says(&message, &["out", "is the folder of a suite"]);
    std::fs::write(COMPARED.path().join("own.toml"), SMALL).unwrap();
    let message = fail(COMPARED.path(), &["compare", "--suite", "own.toml", "--out", "out"]);
    assert_says(&message, &["out", "is the folder of a comparison"]);
}

#[test]
fn every_config_of_the_suites_that_are_built_in_can_be_trained() {
    for (name, _) in BUILT_IN {
        let suite = SuiteConfig::load(name).unwrap();
        assert!(suite.task.iter().any(|task| task.costs.is_some()), "{name}: nobody's time is measured");
        for task in &suite.task {
            for family in suite.of_task(task) {
                let text = suite.text_of(task, family).unwrap();
                let config = Config::embedded(&family.name, &text, &[]).unwrap();
                assert!(!config.model.learns_from_text());
            }
        }
    }
}

/// Three families in one task: the best, one that may be as good, one that is worse.
fn example() -> Suite {
    let group = |id: &str, kind: GroupKind, to: usize| Group {
        id: id.into(),
        kind,
        from: to,
        to,
        mean_length: to as f64,
        sentences: 50,
        is_seen: id == "all",
        chance: (id == "all").then_some(0.034),
    };
    let of = |score: f64, standing: Standing, group: &str| CellScore {
        group: group.into(),
        score,
        low: score - 0.02,
        high: score + 0.02,
        standing,
        claim: None,
    };
    let cell = |family: &str, scores: [(f64, Standing); 2]| Cell {
        task: "copy".into(),
        family: family.into(),
        parameters: 1000,
        learning_rate: 0.003,
        dropout_rate: Some(0.1),
        seeds: vec![1],
        train_seconds: 2.5,
        state_bytes: 4096,
        longest_good: Some(20),
        scores: vec![of(scores[0].0, scores[0].1, "all"), of(scores[1].0, scores[1].1, "length-40")],
        right: Vec::new(),
    };
    let names = ["one <b>", "two", "three"];
    Suite {
        about: "An example.".into(),
        families: names.map(|name| Family { name: name.into(), model: "a model".into() }).to_vec(),
        tasks: vec![SuiteTask {
            name: "copy".into(),
            about: "write it again".into(),
            metric: "sequence_accuracy".into(),
            trained_length: 20,
            groups: vec![group("all", GroupKind::All, 20), group("length-40", GroupKind::Length, 40)],
            ..SuiteTask::default()
        }],
        cells: vec![
            cell("one <b>", [(0.9, Standing::Best), (0.1, Standing::Behind)]),
            cell("two", [(0.88, Standing::Undecided), (0.6, Standing::Best)]),
            cell("three", [(0.3, Standing::Behind), (0.59, Standing::Equivalent)]),
        ],
        ..Suite::default()
    }
}

#[test]
fn the_guide_counts_families_and_tasks_right() {
    let guide = read(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/guides/comparing.md"));
    let words = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
    for (name, _) in BUILT_IN {
        let suite = SuiteConfig::load(name).unwrap();
        let line = guide.lines().find(|line| line.starts_with(&format!("lookback compare --suite {name} "))).unwrap();
        let says = format!("{} families, {} tasks", words[suite.family.len()], words[suite.task.len()]);
        assert!(line.contains(&says), "{line} does not say {says}");
    }
}

/// What guessing gets right of a task whose answers have so many words.
#[test]
fn guessing_knows_what_answers_are_made_of_and_nothing_else() {
    let chance = |name: &str, answer: &str| TaskConfig::from_name(name).unwrap().chance(answer);
    assert_eq!(chance("parity", "even odd odd"), Some(0.125));
    assert_eq!(chance("arithmetic", "3"), Some(0.2));
    assert_eq!(chance("recall", ". . 7 ."), Some(0.1), "nothing is asked at blanks");
    assert_eq!(chance("copy", "a b"), Some(26f64.powi(-2)));
    assert_eq!(chance("depth", "1 2"), Some(9f64.powi(-2)), "none to eight brackets may be open");
    assert_eq!(chance("numbers", "vingt"), None);
    // All of a task's answers are told apart as often as a guess is right, where they are equally likely.
    let task = TaskConfig::from_name("arithmetic").unwrap();
    let pairs = task.generate(Split::Test, 500, 1).unwrap();
    let threes = pairs.iter().filter(|pair| pair.target == "3").count() as f64 / 500.0;
    assert!((threes - task.chance("3").unwrap()).abs() < 0.08, "{threes}");
    // Every column of a suite that counts right answers says it.
    let suite = results(&MADE.0.path().join("out"));
    for task in &suite.tasks {
        for group in &task.groups {
            let chance = group.chance.unwrap();
            let (least, most) = (6f64.powi(-(group.to as i32)), 6f64.powi(-(group.from as i32)));
            assert!((least * 0.999..=most * 1.001).contains(&chance), "{group:?}");
        }
    }
}

#[test]
fn sentences_say_what_cells_claim_and_no_more() {
    let suite = example();
    let found = words::findings(&suite);
    assert_eq!(
        found,
        [
            "Marked, as the best or perhaps as good, in all 2 columns: two.",
            "Copy, sources of up to 20 words as in training: best is one <b> (90.0); not significantly worse: two (88.0); significantly worse: three (30.0).",
            "Copy, sources of 40 words, learnt from up to 20: best is two (60.0); equivalent to it: three (59.0); significantly \
             worse: one <b> (10.0).",
            "Significantly worse is after Holm's correction (5 %): over all pairs of families, and in columns of a single length over the \
             pairs at all lengths.",
            "A single seed: this is said of these runs, and not of what other seeds would give.",
        ]
    );
    let mut none = suite.clone();
    none.cells[1].scores[0].standing = Standing::Behind;
    assert_says(
        &words::findings(&none)[0],
        &["No family is marked, as the best or perhaps as good, in all 2 columns."],
    );
    let mut several = suite.clone();
    several.cells[1].scores[0].score = 0.9;
    several.cells[1].scores[0].standing = Standing::Best;
    assert_says(
        &words::findings(&several)[1],
        &["best are one <b> (90.0), two (90.0); significantly worse: three (30.0)."],
    );
    // Marked is what has anything right, and what a test alone does not tell from the best. What it does, but not after correction, is
    // behind.
    let undecided = |score: f64, low: f64, high: f64| {
        let mut suite = suite.clone();
        let cell = &mut suite.cells[1].scores[0];
        assert_eq!(cell.standing, Standing::Undecided);
        cell.score = score;
        cell.claim = Some(Claim { estimate: score - 0.9, low, high, margin: 0.02, ..Claim::default() });
        suite
    };
    let level = undecided(0.0, -0.95, 0.01);
    assert!(words::findings(&level)[1].contains("; nothing right, and not significantly worse: two (0.0); "));
    let behind = undecided(0.88, -0.04, -0.001);
    let found = words::findings(&behind);
    assert!(found[1].contains("; behind, but not significantly after correction: two (88.0); "), "{found:?}");
    for suite in [&level, &behind] {
        let found = words::findings(suite);
        assert_eq!(found[0], "No family is marked, as the best or perhaps as good, in all 2 columns.");
        assert!(!found[1].contains("; not significantly worse"), "{}", found[1]);
        assert_eq!(matrix::text(suite).matches('*').count(), matrix::text(&example()).matches('*').count() - 1);
    }
    let marked = undecided(0.3, -0.95, 0.0);
    assert!(words::findings(&marked)[1].contains("; not significantly worse: two (30.0); "), "its seeds differ much");
    // The interval of a rate of errors that is higher, on the other side of zero; no errors are all that is right.
    for (mut errors, is_marked) in [(level, true), (undecided(0.88, 0.001, 0.04), false)] {
        errors.tasks[0].metric = "cer".into();
        let column = matrix::columns(&errors)[0];
        assert_eq!(matrix::is_level(&errors, "two", column), is_marked);
    }
    // What is sure and too small to matter is marked, as the legend says.
    let mut small = undecided(0.895, -0.009, -0.001);
    let score = &mut small.cells[1].scores[0];
    score.standing = Standing::Behind;
    let claim = score.claim.as_mut().unwrap();
    (claim.verdict, claim.is_small) = (Verdict::Different, true);
    assert_says(&words::findings(&small)[1], &["; equivalent to it within 2.0 points: two (89.5); "]);
    assert!(matrix::is_level(&small, "two", matrix::columns(&small)[0]));
    // By how little a score differs is said.
    let mut equivalent = undecided(0.895, -0.01, 0.0);
    equivalent.cells[1].scores[0].standing = Standing::Equivalent;
    assert_says(&words::findings(&equivalent)[1], &["; equivalent to it within 2.0 points: two (89.5); "]);
    equivalent.cells[2].scores[0] = equivalent.cells[0].scores[0].clone();
    let says = "best are one <b> (90.0), three (90.0); equivalent to the first of them within 2.0 points: two (89.5).";
    assert_says(&words::findings(&equivalent)[1], &[says]);
    let marks = words::marks(&suite);
    assert_says(&marks, &["95 % interval over sentences of its difference from the best includes zero"]);
    let mut seeds = suite.clone();
    seeds.cells.iter_mut().for_each(|cell| cell.seeds = vec![1, 2, 3]);
    assert_says(
        &words::marks(&seeds),
        &["95 % interval over sentences and seeds of its difference", "A score that differs much between seeds"],
    );
    assert!(!marks.contains("seeds"), "{marks}");
    // Without a right answer there is no best.
    let mut unsolved = suite.clone();
    unsolved.cells.iter_mut().for_each(|cell| cell.scores[1].standing = Standing::Unsolved);
    unsolved.cells[1].scores[0].standing = Standing::Behind;
    let found = words::findings(&unsolved);
    let says = "Marked, as the best or perhaps as good, in the one column in which anything is right: one <b>.";
    assert_eq!(found[0], says);
    assert_eq!(found[2], "Copy, sources of 40 words, learnt from up to 20: no family has anything right.");
    assert_eq!(matrix::text(&unsolved).matches('*').count(), 1);
    unsolved.cells.iter_mut().for_each(|cell| cell.scores[0].standing = Standing::Unsolved);
    assert_eq!(words::findings(&unsolved)[0], "No family has anything right.");
    // What has not been made of a column is neither behind nor the best in it.
    let mut part = suite.clone();
    part.cells[1].scores.remove(0);
    let found = words::findings(&part);
    assert_eq!(
        found[..2],
        [
            "Marked, as the best or perhaps as good, in the one column in which all families take part: two; three.",
            "Copy, sources of up to 20 words as in training: best is one <b> (90.0); significantly worse: three (30.0); left out: two.",
        ]
    );
    part.cells[2].scores.remove(1);
    let found = words::findings(&part);
    assert_says(&found[0], &["Copy, sources of up to 20 words"]);
    assert_says(&found[1], &["significantly worse: one <b> (10.0); left out: three."]);
    let text = matrix::text(&suite);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[4].split_whitespace().collect::<Vec<_>>(), ["guessing", "3.4", "-"]);
    assert_eq!(lines[1].split_whitespace().collect::<Vec<_>>(), ["one", "<b>", "90.0*", "10.0"]);
    assert!(metric_of("sequence_accuracy").unit().is_some(), "accuracies are fractions");
    assert_says(
        &matrix::table(&suite).csv(),
        &[
            "copy,two,copy at 40,0.6,",
            ",0.034,best,",
            ",not significantly worse than the best,",
            ",significantly worse than the best,",
        ],
    );
}

#[test]
fn the_page_of_a_suite_begins_with_its_matrix() {
    let suite = example();
    let Some(mut view) = PageView::open(&html::page(&suite, &[]).render()) else { return };
    view.audit_everywhere("suite", &[""]);
    view.resize(1280, 720);
    view.settle();
    let rows = view.text("document.querySelector('#overview').innerText");
    assert_says(&rows, &["copy to 20", "copy at 40", "one <b>", "90.0", "88.0 to 92.0", "guessing", "3.4"]);
    let bottom = view.value("document.querySelector('#overview').getBoundingClientRect().bottom");
    assert!(bottom.as_f64() < Some(720.0), "the matrix is not on the first screen");
    // What is behind differs from the others by more than colour.
    let weights = "[...document.querySelectorAll('#overview td b')].map(b => getComputedStyle(b).textDecorationLine)";
    let expected = ["underline", "none", "underline", "underline", "none", "underline"];
    assert_eq!(view.value(weights), serde_json::json!(expected));
}

#[test]
fn no_name_of_a_suite_can_become_a_part_of_its_page() {
    let evil = "<script>alert(1)</script>\"' onload=x";
    let mut suite = example();
    for text in [&mut suite.name, &mut suite.about, &mut suite.command, &mut suite.version, &mut suite.device] {
        *text = evil.into();
    }
    suite.families[0] = Family { name: evil.into(), model: evil.into() };
    suite.tasks[0].name = evil.into();
    suite.tasks[0].about = evil.into();
    for cell in &mut suite.cells {
        cell.task = evil.into();
    }
    suite.cells[0].family = evil.into();
    let page = html::page(&suite, &[]).render();
    let scripts = html::page(&Suite::default(), &[]).render().matches("<script").count();
    assert!(page.contains("&lt;script&gt;alert(1)"), "the name is shown");
    assert_eq!(page.matches("<script").count(), scripts);
    assert!(!page.contains("\"' onload") && !page.contains("id=\"chart-<"), "a quote of a name");
    assert!(page.contains("id=\"chart-&lt;script"), "a chart of the task");
}
