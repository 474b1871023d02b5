//! The tour: its commands run, and what it shows of them is what they print.

use super::commands::commands;
use super::{prose_and_code, root, tour};
use regex::Regex;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

#[test]
fn the_tour_trains_every_run_that_it_looks_at() {
    let commands: Vec<Vec<String>> = tour().iter().flat_map(|(_, text)| commands(text)).collect();
    let trained: Vec<String> = commands
        .iter()
        .filter(|words| words.get(1).is_some_and(|word| word == "train"))
        .map(|words| {
            let run = words.iter().skip_while(|word| *word != "--run").nth(1);
            let config = words.get(2).filter(|word| word.ends_with(".toml")).map(Path::new);
            match (run, config.and_then(Path::file_stem)) {
                (Some(run), _) => run.clone(),
                (None, Some(name)) => format!("runs/{}", name.to_string_lossy()),
                (None, None) => "runs/quick-start".to_owned(),
            }
        })
        .collect();
    for words in &commands {
        // What is written into may be new.
        let read = words.windows(2).filter(|pair| pair[0] != "--out").map(|pair| &pair[1]);
        for run in read.filter(|word| word.starts_with("runs/") && !word.contains('.')) {
            assert!(trained.contains(run), "the tour trains no {run}: {}", words.join(" "));
        }
    }
}

/// Each stop has what the first page promises.
#[test]
fn every_stop_of_the_tour_is_complete() {
    let pages = tour();
    assert!(pages.len() >= 12, "{} pages", pages.len());
    let mut n_stops = 0;
    for (page, text) in
        pages.iter().filter(|(page, _)| !page.ends_with("00-start.md") && !page.ends_with("14-words.md"))
    {
        for stop in text.split("\n## ").skip(1) {
            let name = format!("{}: {}", page.display(), stop.lines().next().unwrap());
            let (prose, blocks) = prose_and_code(stop);
            let is_row_with_formula = |line: &str| line.starts_with("| ") && line.contains("| `");
            let has_equation = prose.lines().any(|line| line.starts_with("    ") || is_row_with_formula(line));
            assert!(has_equation, "{name} has no equation");
            assert!(!commands(stop).is_empty(), "{name} has no command");
            let has_output = blocks.iter().any(|block| block.starts_with("text\n"));
            assert!(has_output || prose.contains("![") || prose.contains("\n| "), "{name} shows no result");
            assert!(prose.contains("**Try it.**"), "{name} asks nothing");
            n_stops += 1;
        }
    }
    assert!(n_stops >= 40, "{n_stops} stops");
}

/// What is left out when the tour is run: needs the net or minutes.
const LEFT_OUT: [&str; 5] =
    ["lookback data fetch", "captions", "lookback compare", "lookback serve", "lookback import"];

/// Training as the tour does it, but short.
const SHORT: &str = "lookback train --quiet --set training.max_updates=2 --set training.validate_every=2 --set training.save_every=2 \
--set training.sample_size=2 --set data.n_train=300 --set data.n_valid=8 --set data.n_test=8";

/// Lines of a document's `sh` blocks, each with the block of output that follows its block.
fn lines(text: &str) -> Vec<(String, String)> {
    let (_, blocks) = prose_and_code(text);
    let mut found = Vec::new();
    for (i, block) in blocks.iter().enumerate() {
        let Some(script) = block.strip_prefix("sh\n") else { continue };
        let shown = blocks.get(i + 1).and_then(|next| next.strip_prefix("text\n")).unwrap_or_default();
        let joined = script.replace("\\\n", " ").replace("|\n", "| ");
        // The output is that of the first command that looks at something.
        let first = joined.lines().position(|line| line.contains("lookback ") && !line.contains("lookback train"));
        let shown_of = |i: usize| if Some(i) == first { shown.to_owned() } else { String::new() };
        found.extend(joined.lines().enumerate().map(|(i, line)| (line.to_owned(), shown_of(i))));
    }
    found
}

pub(super) fn sh(folder: &Path, line: &str) -> Output {
    let program = Path::new(env!("CARGO_BIN_EXE_lookback")).parent().unwrap();
    let there = std::env::var_os("PATH").unwrap();
    let paths = [program.to_path_buf()].into_iter().chain(std::env::split_paths(&there));
    let path = std::env::join_paths(paths).unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", line]).current_dir(folder).env("PATH", path).env("NO_COLOR", "1").output().unwrap()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        if entry.path().is_file() {
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

/// Commands without a model, whose output is the same everywhere.
fn is_exact(line: &str) -> bool {
    ["lookback attend", "lookback config", "lookback evaluate --hypotheses"].iter().any(|start| line.starts_with(start))
}

/// What of a shown line is the same for every model of the same config: its words without numbers, which are formulas, what they mean
/// and heads of tables. Nothing if the line depends on the model.
fn frame(line: &str, numbers: &[Regex; 2]) -> Option<String> {
    let [decimal, number] = numbers;
    let is_of_the_model = decimal.is_match(line) || line.contains(['%', '…', '<', '"']);
    let words = line.split_whitespace().collect::<Vec<_>>().join(" ");
    (!is_of_the_model && !words.is_empty()).then(|| number.replace_all(&words, "0").into_owned())
}

/// Every command of the tour in its order, with models that are hardly trained.
#[cfg(unix)]
#[test]
fn the_tour_runs_from_beginning_to_end() {
    let dir = TempDir::new().unwrap();
    for folder in ["config", "datasets/meaning"] {
        copy(&root().join(folder), &dir.path().join(folder));
    }
    let [step, updates] = ["--step [0-9]+", "--set training.max_updates=[0-9]+"].map(|text| Regex::new(text).unwrap());
    let numbers = [r"[0-9]\.[0-9]", "[0-9]+"].map(|text| Regex::new(text).unwrap());
    let (mut n_run, mut n_compared, mut n_frames) = (0, 0, 0);
    for (page, text) in tour() {
        for (line, shown) in lines(&text) {
            let is_command = line.contains("lookback ") || line.starts_with("echo ");
            if !is_command || LEFT_OUT.iter().any(|part| line.contains(part)) {
                continue;
            }
            // What a model that has hardly learnt anything writes may have no third step.
            let line_with_one_step = step.replace(&line, "--step 1");
            let short = updates.replace(&line_with_one_step, "");
            let output = sh(dir.path(), &short.replace("lookback train", SHORT));
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{}: {line}\n{said}", page.display());
            n_run += 1;
            let printed = String::from_utf8_lossy(&output.stdout);
            if line.starts_with("lookback explain") {
                // Where a line is wrapped depends on the numbers in it.
                let words = printed.split_whitespace().collect::<Vec<_>>().join(" ");
                let frames = numbers[1].replace_all(&words, "0");
                for expected in shown.lines().filter_map(|line| frame(line, &numbers)) {
                    assert!(
                        frames.contains(&*expected),
                        "{}: {line}\nprints\n{printed}\nnot\n{expected}",
                        page.display()
                    );
                    n_frames += 1;
                }
            }
            if line.starts_with("lookback evaluate") && !is_exact(&line) {
                for name in shown.lines().filter_map(|line| line.split_once("  ")).map(|(name, _)| name) {
                    let is_there = printed.lines().any(|line| line.starts_with(&format!("{name}  ")));
                    assert!(is_there, "{}: {line}\nprints\n{printed}\nnot\n{name}", page.display());
                    n_frames += 1;
                }
            }
            if is_exact(&line) {
                for expected in shown.lines().filter(|line| !line.trim().is_empty() && line.trim() != "…") {
                    assert!(
                        printed.contains(expected),
                        "{}: {line}\nprints\n{printed}\nnot\n{expected}",
                        page.display()
                    );
                    n_compared += 1;
                }
            }
        }
    }
    assert!(n_run > 40, "{n_run} commands were run");
    assert!(n_compared > 40, "{n_compared} lines were compared");
    assert!(n_frames > 30, "{n_frames} lines were compared without their numbers");
}
