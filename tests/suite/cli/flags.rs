//! Every option of every command is used by a test.

use clap::{Arg, Command, CommandFactory};
use lookback::cli::Cli;
use std::path::{Path, PathBuf};

/// The texts of the tests.
fn tests() -> Vec<(PathBuf, String)> {
    fn collect(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
        for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            match entry.is_dir() {
                true => collect(&entry, found),
                false if entry.extension().is_some_and(|extension| extension == "rs") => {
                    found.push((entry.clone(), std::fs::read_to_string(&entry).unwrap()));
                }
                false => {}
            }
        }
    }
    let mut found = Vec::new();
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite"), &mut found);
    found
}

/// Whether a text has `word` as an argument of its own: between quotes or spaces, or before a value.
fn has(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        before.is_some_and(|c| "\" '`".contains(c)) && after.is_some_and(|c| "\" '`=\\".contains(c))
    })
}

/// The first test file that is about a command, by its name or by the words in it, and names one of its options.
fn user<'a>(tests: &'a [(PathBuf, String)], path: &[&str], option: &Arg) -> Option<&'a Path> {
    let names =
        [option.get_long().map(|long| format!("--{long}")), option.get_short().map(|short| format!("-{short}"))];
    let is_about = |file: &Path, text: &str, word: &str| {
        let mut parts = file.iter().map(|part| part.to_string_lossy().into_owned());
        parts.any(|part| part.trim_end_matches(".rs") == word) || has(text, word)
    };
    let uses = |file: &Path, text: &str| {
        names.iter().flatten().any(|name| has(text, name)) && path.iter().all(|word| is_about(file, text, word))
    };
    tests.iter().find(|(file, text)| uses(file, text)).map(|(file, _)| file.as_path())
}

/// Every option of a command and those below it with the file that uses it.
fn list(command: &Command, path: &[&str], tests: &[(PathBuf, String)], unused: &mut Vec<String>, n: &mut usize) {
    for option in command.get_arguments().filter(|arg| !arg.is_positional() && !arg.is_hide_set()) {
        if ["help", "version"].contains(&option.get_id().as_str()) || option.is_global_set() && !path.is_empty() {
            continue;
        }
        *n += 1;
        if user(tests, path, option).is_none() {
            unused.push(format!("{} --{}", path.join(" "), option.get_long().unwrap_or_default()));
        }
    }
    for below in command.get_subcommands().filter(|below| below.get_name() != "help" && !below.is_hide_set()) {
        let path: Vec<&str> = path.iter().copied().chain([below.get_name()]).collect();
        list(below, &path, tests, unused, n);
    }
}

#[test]
fn every_option_of_every_command_is_used_by_a_test() {
    let (tests, mut unused, mut n) = (tests(), Vec::new(), 0);
    list(&Cli::command(), &[], &tests, &mut unused, &mut n);
    assert!(n > 150, "{n} options were found");
    assert!(unused.is_empty(), "no test uses:\n{}", unused.join("\n"));
}

#[test]
fn options_are_consistent() {
    Cli::command().debug_assert();
}
