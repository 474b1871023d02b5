//! What the documents say is there, and the commands in them are commands of the program.

mod commands;
mod contributing;
mod links;
mod mechanisms;
mod own_data;
mod results;
mod tour;

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The Markdown files below a folder.
fn below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        match path.is_dir() {
            true => found.extend(below(&path)),
            false if path.extension().is_some_and(|extension| extension == "md") => found.push(path),
            false => {}
        }
    }
    found.sort();
    found
}

/// Every page of the book, and the documents beside it.
fn documents() -> Vec<PathBuf> {
    let beside = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "fuzz/README.md"].map(|name| root().join(name));
    below(&root().join("docs")).into_iter().chain(below(&root().join("datasets"))).chain(beside).collect()
}

/// The pages of the tour in their order.
fn tour() -> Vec<(PathBuf, String)> {
    let pages = below(&root().join("docs/tour"));
    pages.into_iter().map(|page| (page.clone(), fs::read_to_string(&page).unwrap())).collect()
}

/// The text outside code blocks, and the code blocks.
fn prose_and_code(text: &str) -> (String, Vec<&str>) {
    (text.split("```").step_by(2).collect(), text.split("```").skip(1).step_by(2).collect())
}

#[test]
fn the_front_page_is_short_and_has_both_commands() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let n_lines = readme.lines().count();
    assert!(n_lines <= 110, "README.md has {n_lines} lines");
    for command in ["cargo run --release -- train", "cargo test --release"] {
        assert!(readme.lines().any(|line| line.starts_with(command)), "README.md has no {command}");
    }
}
