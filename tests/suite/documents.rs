//! What the documents name is there, and the commands in them are commands of the program.

use clap::Parser;
use clap::error::ErrorKind;
use lookback::cli::Cli;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn documents() -> Vec<PathBuf> {
    let docs = fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let pages = docs.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    pages.chain([root().join("README.md")]).collect()
}

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

/// The text outside code blocks, and the code blocks.
fn prose_and_code(text: &str) -> (String, Vec<&str>) {
    (text.split("```").step_by(2).collect(), text.split("```").skip(1).step_by(2).collect())
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
fn commands(text: &str) -> Vec<Vec<String>> {
    let (prose, code) = prose_and_code(text);
    let lines = code.iter().flat_map(|block| {
        let joined = block.replace("\\\n", " ").replace("|\n", "| ");
        joined.lines().map(str::to_owned).collect::<Vec<_>>()
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
                    word => word,
                });
            let is_name = words[1..].iter().all(|word| word.chars().all(char::is_lowercase));
            n_found += 1;
            match Cli::try_parse_from(filled) {
                Ok(_) => {}
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
    assert!(n_found > 60, "only {n_found} commands were found");
}

#[test]
fn the_tour_trains_every_run_that_it_looks_at() {
    let text = fs::read_to_string(root().join("docs/concepts.md")).unwrap();
    let commands = commands(&text);
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
        for run in words.iter().filter(|word| word.starts_with("runs/")) {
            assert!(trained.contains(run), "docs/concepts.md trains no {run}: {}", words.join(" "));
        }
    }
}

#[test]
fn every_stop_of_the_tour_has_a_command() {
    let text = fs::read_to_string(root().join("docs/concepts.md")).unwrap();
    let stops: Vec<&str> = text.split("\n## ").filter(|part| part.starts_with(|c: char| c.is_numeric())).collect();
    assert_eq!(stops.len(), 20);
    for stop in stops {
        assert!(!commands(stop).is_empty(), "{} has no command", stop.lines().next().unwrap());
    }
}

#[test]
fn words_of_a_line_are_those_of_a_shell() {
    let line = "echo 'a b' | lookback explain --run R \"c d\" {x,y}.toml  # a comment";
    let expected = ["echo", "a b", "|", "lookback", "explain", "--run", "R", "c d", "x.toml", "y.toml"];
    assert_eq!(words(line), expected);
    assert_eq!(commands("`lookback a\nb` c ```\nx |\n  lookback d \\\n e\n```").len(), 2);
}

#[test]
fn the_table_of_the_readme_is_that_of_the_crate() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let table = fs::read_to_string(root().join("docs/mechanisms.md")).unwrap();
    assert!(readme.contains(&table), "copy docs/mechanisms.md into README.md, or the other way round");
}

#[test]
fn every_line_of_config_in_the_table_is_accepted() {
    let table = fs::read_to_string(root().join("docs/mechanisms.md")).unwrap();
    let mut n_checked = 0;
    for row in table.lines().skip(2) {
        let config = row.split(" | ").nth(2).unwrap_or_else(|| panic!("no third column: {row}"));
        for setting in config.split('`').skip(1).step_by(2).filter(|setting| setting.contains('=')) {
            let (key, value) = setting.split_once(" = ").expect("key = value");
            let key = if key.starts_with("training.") || key.starts_with("decoding.") {
                key.to_string()
            } else {
                format!("model.{key}")
            };
            let attempts = [
                vec!["model={ kind = \"rnn\", d_hidden = 8 }"],
                vec!["model={ kind = \"rnn\", d_hidden = 8, n_layers = 2 }"],
                vec!["model={ kind = \"rnn\", directions = \"forward\", attention = { kind = \"luong\" } }"],
                vec!["model={ kind = \"transformer\" }", "tokenizer.shared=true"],
                vec!["model={ kind = \"decoder-only\" }"],
                vec!["model={ kind = \"encoder-only\" }"],
                vec!["model={ kind = \"encoder-only\" }", "tokenizer={ kind = \"numbers\" }", "training={}"],
                vec![
                    "model={ kind = \"encoder-only\" }",
                    "data={ hold_out_per_mille = 50, text = { train = [\"text.txt\"] } }",
                ],
                vec![
                    "model={ kind = \"decoder-only\" }",
                    "data={ hold_out_per_mille = 50, text = { train = [\"text.txt\"] } }",
                ],
            ];
            let is_accepted = attempts.into_iter().any(|base| {
                let settings = base.into_iter().map(String::from).chain([format!("{key}={value}")]);
                lookback::experiment::Config::load(None, &settings.collect::<Vec<_>>()).is_ok()
            });
            assert!(is_accepted, "no model takes {setting}");
            n_checked += 1;
        }
    }
    assert!(n_checked > 35, "only {n_checked} settings were found");
}
