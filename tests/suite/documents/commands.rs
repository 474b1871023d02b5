//! Commands and paths of files.

use super::{documents, prose_and_code, root};
use clap::Parser;
use clap::error::ErrorKind;
use lookback::cli::Cli;
use std::fs;

/// Folders whose files are in the repository; other data is fetched or generated.
const STORED: [&str; 4] = ["config/", "datasets/meaning/", "tests/", "docs/"];

/// What stands between backticks and looks like a path to a Rust file, a config, stored data or a folder of the source.
fn paths(text: &str) -> impl Iterator<Item = &str> {
    let is_path = |word: &&str| {
        word.contains('/')
            && !word.contains(['<', '*', ' ', '{', '$'])
            && (word.ends_with(".rs") || word.starts_with("models/") || STORED.iter().any(|dir| word.starts_with(dir)))
    };
    text.split('`').skip(1).step_by(2).filter(is_path)
}

#[test]
fn every_file_that_a_document_names_exists() {
    let mut n_found = 0;
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        for path in paths(&prose_and_code(&text).0) {
            let places = ["", "src", "src/layers", "src/layers/attention"].map(|folder| root().join(folder).join(path));
            assert!(places.iter().any(|place| place.exists()), "{} names {path}", document.display());
            n_found += 1;
        }
    }
    assert!(n_found > 60, "only {n_found} paths were found");
}

/// The words of a shell's line: quotes join, `#` begins a comment, `a{b,c}` is `ab ac`.
fn words(line: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let (mut quote, mut is_open) = (None, false);
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                words.extend((!is_open).then(String::new));
                is_open = true;
            }
            (None, c) if c.is_whitespace() => is_open = false,
            (None, '#') if !is_open => break,
            _ => {
                words.extend((!is_open).then(String::new));
                is_open = true;
                words.last_mut().expect("a word has begun").push(c);
            }
        }
    }
    let expanded = words.into_iter().flat_map(|word| match word.split_once('{').zip(word.split_once('}')) {
        Some(((before, _), (inner, after))) if inner.contains(',') && !word.contains([' ', '=']) => {
            let parts = inner.split_once('{').expect("a brace").1.split(',');
            parts.map(|part| format!("{before}{part}{after}")).collect()
        }
        _ => vec![word],
    });
    expanded.collect()
}

/// The commands of a document: lines of code blocks, with what follows a pipe or a backslash, and code in a line of prose.
pub(super) fn commands(text: &str) -> Vec<Vec<String>> {
    let (prose, code) = prose_and_code(text);
    let is_shell = |block: &&&str| !["toml\n", "rust\n", "python\n"].iter().any(|name| block.starts_with(name));
    let lines = code.iter().filter(is_shell).flat_map(|block| {
        let joined = block.replace("\\\n", " ").replace("|\n", "| ");
        // What help says of an example stands behind some spaces.
        let is_help = block.starts_with("text\n");
        let cut = |line: &str| match is_help {
            true => line.trim().split("  ").next().unwrap_or_default().to_owned(),
            false => line.to_owned(),
        };
        joined.lines().map(cut).collect::<Vec<_>>()
    });
    let joined = prose.split('`').skip(1).step_by(2).map(|code| code.split_whitespace().collect::<Vec<_>>().join(" "));
    let mut found = Vec::new();
    for line in lines.chain(joined) {
        let words = words(&line);
        for part in words.split(|word| word == "|" || word == "&&" || word == ">") {
            if part.len() > 1 && part[0] == "lookback" {
                found.push(part.to_vec());
            }
        }
    }
    found
}

#[test]
fn every_command_in_a_document_is_one_of_the_program() {
    let mut n_found = 0;
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        for words in commands(&text) {
            // What a reader is to put something in place of.
            let filled =
                words.iter().filter(|word| !["...", ".."].contains(&word.as_str())).map(|word| match &word[..] {
                    "TASK" => "copy",
                    "NAME" => "multi30k",
                    "COMMAND" => "train",
                    word => word,
                });
            let is_name = words[1..].iter().all(|word| word.chars().all(char::is_lowercase));
            n_found += 1;
            match Cli::try_parse_from(filled) {
                Ok(_) => {}
                Err(error) if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => {}
                // A command by its name alone, without what it needs.
                Err(error) if is_name && error.kind() == ErrorKind::MissingRequiredArgument => {}
                Err(error) if is_name && error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {}
                Err(error) => panic!("{}: {}\n{error}", document.display(), words.join(" ")),
            }
            for path in words.iter().filter(|word| STORED[..2].iter().any(|dir| word.starts_with(dir))) {
                assert!(root().join(path).exists(), "{}: {}: no {path}", document.display(), words.join(" "));
            }
        }
    }
    assert!(n_found > 250, "only {n_found} commands were found");
}

#[test]
fn words_of_a_line_are_those_of_a_shell() {
    let line = "echo 'a b' | lookback explain --run R \"c d\" {x,y}.toml  # a comment";
    let expected = ["echo", "a b", "|", "lookback", "explain", "--run", "R", "c d", "x.toml", "y.toml"];
    assert_eq!(words(line), expected);
    assert_eq!(commands("`lookback a\nb` c ```\nx |\n  lookback d \\\n e\n```").len(), 2);
}
