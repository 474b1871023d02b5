//! Suites of which machines make a part each.

use super::suite::{MADE, SMALL, results};
use crate::training::{assert_says, fail, lookback, read, succeed};
use lookback::report::suite::Suite;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tempfile::TempDir;

/// The folders of so many machines, each with the file of the suite.
fn machines<const N: usize>(suite: &str) -> [TempDir; N] {
    let machine = |()| {
        let dir = TempDir::new().unwrap();
        std::fs::write(dir.path().join("own.toml"), suite).unwrap();
        dir
    };
    [(); N].map(machine)
}

/// What the next machine needs of the one before.
fn hand_on(from: &TempDir, to: &TempDir) {
    std::fs::create_dir_all(to.path().join("out")).unwrap();
    for file in ["out/results.json", "out/suite.toml"] {
        std::fs::copy(from.path().join(file), to.path().join(file)).unwrap();
    }
}

/// The results of a machine without times, and the commands that made them.
fn whole(dir: &Path) -> (Suite, String) {
    let mut suite = results(&dir.join("out"));
    suite.cells.iter_mut().for_each(|cell| cell.train_seconds = 0.0);
    let command = std::mem::take(&mut suite.command);
    (suite, command)
}

#[test]
fn machines_can_each_make_a_task() {
    let (made, _) = &*MADE;
    let [one, other] = machines(SMALL);
    let of = |task| ["compare", "--suite", "own.toml", "--task", task, "--out", "out"];
    let said = succeed(one.path(), &of("reverse"));
    assert!(said.contains("reverse to 4") && !said.contains("copy to 4"), "{said}");
    assert!(!one.path().join("out/copy").exists());
    hand_on(&one, &other);
    let said = succeed(other.path(), &of("copy"));
    assert_says(&said, &["copy to 4", "copy at 6", "reverse to 4"]);
    let page = read(other.path().join("out/report/index.html"));
    assert!(page.contains("../copy/report/index.html"), "its report is there");
    assert!(!page.contains("../reverse/report/index.html"), "its report lies on the other machine");
    let (suite, command) = whole(other.path());
    assert_eq!(suite, whole(made.path()).0, "as one machine makes it");
    let commands: Vec<&str> = command.lines().collect();
    assert_eq!(commands.len(), 2, "{command}");
    assert!(commands[0].contains("--task reverse") && commands[1].contains("--task copy"), "{command}");
    // The same task again takes the place of what was there.
    succeed(other.path(), &of("copy"));
    assert_eq!(whole(other.path()), (suite, command));
    let refused = |task, parts: &[&str]| assert_says(&fail(other.path(), &of(task)), parts);
    refused("sort", &["--task sort", "has no such task (copy, reverse)"]);
    std::fs::write(other.path().join("own.toml"), SMALL.replace("max_updates = 3", "max_updates = 4")).unwrap();
    refused("copy", &["suite.toml", "is not the suite own as it is now: [config] differs", "--out"]);
    // Where the one task has no results yet, it may become another, and comments may anyway.
    let other =
        SMALL.replace("{ learning_rate = 0.01 }", "{ learning_rate = 0.02 }").replace("it backwards", "backwards");
    let changed = format!("# Later.\n{other}");
    std::fs::write(one.path().join("own.toml"), &changed).unwrap();
    succeed(one.path(), &of("reverse"));
    assert_eq!(read(one.path().join("out/suite.toml")), changed);
    std::fs::write(one.path().join("own.toml"), changed.replace("lengths = [4]", "lengths = [5]")).unwrap();
    assert_says(&fail(one.path(), &of("reverse")), &["is not the suite own as it is now: the task reverse differs"]);
    let (first, second) = (changed.rfind("[[task]]").unwrap(), changed.find("[[family]]").unwrap());
    std::fs::write(one.path().join("own.toml"), [&changed[..first], &changed[second..]].concat()).unwrap();
    assert_says(&fail(one.path(), &of("copy")), &["the task reverse is gone; give another folder with --out"]);
}

/// A task of which anybody has some answers right by chance, in the place of one that is not learnt in so few updates.
fn guessed() -> String {
    let copy = r#""copy", n_symbols = 6, min_len = 1, max_len = 4 }, n_train = 40, n_valid = 4, n_test = 12"#;
    let parity = r#""parity", min_len = 1, max_len = 9 }, n_train = 40, n_valid = 4, n_test = 60"#;
    let text =
        SMALL.replace(copy, parity).replace("lengths = [4, 6]\nper_length = 6", "lengths = [9, 14]\nper_length = 30");
    let text = text.replace("max_updates = 3", "max_updates = 60");
    assert!(text.contains("parity") && text.contains("[9, 14]"), "{text}");
    text
}

#[test]
fn machines_can_each_make_a_family_and_claims_are_those_of_one_machine() {
    let [together, one, other, third] = machines(&guessed());
    succeed(together.path(), &["compare", "--suite", "own.toml", "--out", "out"]);
    let of = |family| ["compare", "--suite", "own.toml", "--family", family, "--out", "out"];
    let said = succeed(one.path(), &of("RNN, attention"));
    assert_says(&said, &["copy to 9", "left out: Transformer", "Transformer            -"]);
    assert!(!said.contains("reverse"), "nobody reverses without the Transformer: {said}");
    let (alone, _) = whole(one.path());
    assert_eq!((alone.cells.len(), alone.cells[0].right.len()), (1, 1), "one cell of one seed");
    let (expected, _) = whole(together.path());
    assert_eq!(alone.cells[0].parameters, expected.cells[0].parameters, "as wide as beside the others");
    hand_on(&one, &other);
    hand_on(&one, &third);
    succeed(other.path(), &of("Transformer"));
    let (suite, command) = whole(other.path());
    assert_eq!(suite, expected, "as one machine makes it");
    let claims: Vec<_> =
        suite.cells.iter().flat_map(|cell| &cell.scores).filter_map(|score| score.claim.as_ref()).collect();
    assert!(claims.len() == 2 && claims.iter().any(|claim| claim.estimate != 0.0), "they are compared: {claims:?}");
    assert!(suite.cells[..2].iter().all(|cell| cell.scores[0].score > 0.0), "{:?}", suite.cells);
    assert_eq!(command.lines().count(), 2, "{command}");
    // The first family has a report of the task here, and not of all families.
    let page = read(other.path().join("out/report/index.html"));
    assert!(!page.contains("../copy/report/index.html") && page.contains("../reverse/report/index.html"));
    // Once more, in the place of what was there.
    succeed(other.path(), &of("Transformer"));
    assert_eq!(whole(other.path()), (suite, command));

    let change = |key: &str, value: serde_json::Value| {
        hand_on(&one, &third);
        let file = third.path().join("out/results.json");
        let mut results: serde_json::Value = serde_json::from_str(&read(&file)).unwrap();
        *results.pointer_mut(key).unwrap() = value;
        std::fs::write(&file, results.to_string()).unwrap();
        fail(third.path(), &of("Transformer"))
    };
    let message = change("/cells/0/right", serde_json::json!([]));
    assert_says(&message, &["of RNN, attention in the task copy", "which answers are right", "--out"]);
    let others = "the families of the task copy that are there were tested on other sentences";
    assert_says(&change("/tasks/0/test_sha256", "abc".into()), &[others]);
    assert_says(&change("/cells/0/right/0", "ff".into()), &[others]);
    assert!(!third.path().join("out/copy/runs").exists(), "before anything is trained");
    // As many seeds as beside.
    hand_on(&one, &third);
    let message = fail(third.path(), &[&of("Transformer")[..], &["--seeds", "2"]].concat());
    assert_says(
        &message,
        &["--seeds 2: in the results, RNN, attention in the task copy has 1; take as many, or give another"],
    );
    let message = fail(one.path(), &of("transformer"));
    assert_says(&message, &["--family \"transformer\"", "has no such family (RNN, attention; Transformer)"]);
    let mut arguments = of("RNN, attention").to_vec();
    arguments.extend(["--task", "reverse"]);
    assert_says(&fail(one.path(), &arguments), &["--family: nobody of RNN, attention takes part"]);
}

#[test]
fn cells_that_were_made_in_another_way_are_not_put_beside_each_other() {
    let [own] = machines(SMALL);
    let dir = own.path();
    let of = |task, more: &[&'static str]| {
        ["compare", "--suite", "own.toml", "--out", "out", "--task", task]
            .iter()
            .chain(more)
            .copied()
            .collect::<Vec<_>>()
    };
    succeed(dir, &of("reverse", &["--set", "training.label_smoothing=0.1", "--beam", "2"]));
    let before = read(dir.join("out/results.json"));
    let refused = |more: &[&'static str], parts: &[&str]| {
        assert_says(&fail(dir, &of("copy", more)), parts);
        assert_eq!(read(dir.join("out/results.json")), before);
        assert!(!dir.join("out/copy").exists(), "before anything is trained");
    };
    refused(
        &["--beam", "2"],
        &["--set: nothing, and training.label_smoothing=0.1 in the results that are there", "--out"],
    );
    let set = ["--set", "training.label_smoothing=0.1"];
    refused(&set, &["--beam: as the configs have it, and 2 in the results that are there"]);
    // The same task again takes the place of the other, and may be made in any way.
    succeed(dir, &of("reverse", &[]));
    succeed(dir, &of("copy", &[]));
}

#[test]
fn a_part_that_another_process_has_made_meanwhile_stays() {
    let [one, other] = machines(SMALL);
    let of = |task| ["compare", "--suite", "own.toml", "--task", task, "--out", "out"];
    succeed(one.path(), &of("reverse"));
    // What a process holds that is just writing its results.
    let locks = other.path().join("out/locks");
    std::fs::create_dir_all(&locks).unwrap();
    let held = std::fs::File::create(locks.join("results")).unwrap();
    held.lock().unwrap();
    let mut process = lookback(other.path(), &of("copy")).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let done = other.path().join("out/copy/report/index.html");
    while !done.exists() {
        assert!(process.try_wait().unwrap().is_none(), "it ended before it had written");
        std::thread::sleep(Duration::from_millis(20));
    }
    hand_on(&one, &other);
    held.unlock().unwrap();
    assert!(process.wait().unwrap().success());
    let (suite, command) = whole(other.path());
    assert_eq!(suite.tasks.len(), 2, "{:?}", suite.tasks);
    assert_eq!(command.lines().count(), 2, "{command}");
}
