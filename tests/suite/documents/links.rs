//! Links lead somewhere, and the book's table of contents has every page.

use super::{below, documents, root};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The targets of the links and pictures of a document, without those to the net.
fn targets(text: &str) -> Vec<String> {
    let prose: String = text.split("```").step_by(2).collect();
    let without_code: String = prose.split('`').step_by(2).collect();
    let starts = without_code.match_indices("](").map(|(at, _)| &without_code[at + 2..]);
    let all = starts.filter_map(|rest| rest.split_once(')')).map(|(target, _)| target.to_owned());
    all.filter(|target| !target.starts_with("http")).collect()
}

/// The anchors of a document's headings, as mdBook and the forges make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let prose = text.split("```").step_by(2);
    let headings = prose.flat_map(str::lines).filter(|line| line.starts_with('#'));
    let slug = |heading: &str| -> String {
        let title = heading.trim_start_matches('#').trim().to_lowercase();
        title
            .chars()
            .filter_map(|c| match c {
                ' ' => Some('-'),
                c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c),
                _ => None,
            })
            .collect()
    };
    headings.map(slug).collect()
}

/// The file and the anchor that a link of a document leads to.
fn resolve(document: &Path, target: &str) -> (PathBuf, Option<String>) {
    let (file, anchor) =
        target.split_once('#').map_or((target, None), |(file, anchor)| (file, Some(anchor.to_owned())));
    let path = match file {
        "" => document.to_path_buf(),
        file => document.parent().unwrap().join(file),
    };
    (path, anchor)
}

#[test]
fn every_link_and_every_anchor_is_there() {
    let mut n_found = 0;
    for document in documents() {
        for target in targets(&fs::read_to_string(&document).unwrap()) {
            let (path, anchor) = resolve(&document, &target);
            assert!(path.exists(), "{}: no {target}", document.display());
            if let Some(anchor) = anchor {
                let there = anchors(&fs::read_to_string(&path).unwrap());
                assert!(there.contains(&anchor), "{}: no heading {target} among {there:?}", document.display());
            }
            n_found += 1;
        }
    }
    assert!(n_found > 150, "only {n_found} links were found");
}

/// A crate without a public repository has no other place for them.
#[test]
fn the_package_has_every_file_that_the_readme_links_to() {
    let manifest: toml::Table = fs::read_to_string(root().join("Cargo.toml")).unwrap().parse().unwrap();
    let included: Vec<&str> =
        manifest["package"]["include"].as_array().unwrap().iter().filter_map(toml::Value::as_str).collect();
    let targets = targets(&fs::read_to_string(root().join("README.md")).unwrap());
    assert!(targets.len() > 10, "{targets:?}");
    for target in targets {
        let path = format!("/{}", target.split('#').next().unwrap());
        let is_packed = included.iter().any(|pattern| path == *pattern || path.starts_with(&format!("{pattern}/")));
        assert!(is_packed, "README.md links to {path}, which is not in the package");
    }
}

/// A page of the book is also read on its own, where nothing of the repository is beside it.
#[test]
fn no_link_of_the_book_leads_out_of_it() {
    let book = root().join("docs").canonicalize().unwrap();
    for page in below(&book) {
        for target in targets(&fs::read_to_string(&page).unwrap()) {
            let path = resolve(&page, &target).0.canonicalize().unwrap();
            assert!(path.starts_with(&book), "{}: {target}", page.display());
        }
    }
}

#[test]
fn the_table_of_contents_has_every_page_once() {
    let summary = root().join("docs/SUMMARY.md");
    let named: Vec<PathBuf> = targets(&fs::read_to_string(&summary).unwrap())
        .iter()
        .map(|target| resolve(&summary, target).0.canonicalize().unwrap())
        .collect();
    let pages: BTreeSet<PathBuf> = below(&root().join("docs")).into_iter().filter(|page| *page != summary).collect();
    for page in &pages {
        let n = named.iter().filter(|path| **path == page.canonicalize().unwrap()).count();
        assert_eq!(n, 1, "docs/SUMMARY.md names {} {n} times", page.display());
    }
    assert_eq!(named.len(), pages.len());
}

#[test]
fn links_are_found_outside_code_and_headings_become_anchors() {
    let text = "# One `two`: three\n[a](b.md#c) `[d](e)` ![f](g.png) [h](https://i)\n```\n[j](k)\n```\n";
    assert_eq!(targets(text), ["b.md#c", "g.png"]);
    assert_eq!(anchors(text).into_iter().collect::<Vec<_>>(), ["one-two-three"]);
}
