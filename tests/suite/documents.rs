//! What the documents name is there.

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

/// What stands between backticks and looks like a path to a Rust file, a config or a folder of the source.
fn paths(text: &str) -> impl Iterator<Item = &str> {
    let is_path = |word: &&str| {
        word.contains('/')
            && !word.contains(['<', '*', ' ', '{', '$'])
            && (word.ends_with(".rs") || word.starts_with("config/") || word.starts_with("models/"))
    };
    text.split('`').skip(1).step_by(2).filter(is_path)
}

#[test]
fn every_file_that_a_document_names_exists() {
    let mut n_found = 0;
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        // Code blocks have three backticks; their commands are checked elsewhere.
        let prose: String = text.split("```").step_by(2).collect();
        for path in paths(&prose) {
            let places = ["", "src", "src/layers", "src/layers/attention"].map(|folder| root().join(folder).join(path));
            assert!(places.iter().any(|place| place.exists()), "{} names {path}", document.display());
            n_found += 1;
        }
    }
    assert!(n_found > 60, "only {n_found} paths were found");
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
            ];
            let is_accepted = attempts.into_iter().any(|base| {
                let settings = base.into_iter().map(String::from).chain([format!("{key}={value}")]);
                lookback::config::Config::load(None, &settings.collect::<Vec<_>>()).is_ok()
            });
            assert!(is_accepted, "no model takes {setting}");
            n_checked += 1;
        }
    }
    assert!(n_checked > 35, "only {n_checked} settings were found");
}
