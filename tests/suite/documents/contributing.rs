//! The worked examples of `CONTRIBUTING.md` name the files in which they stand.

use super::root;
use std::fs;

#[test]
fn every_file_of_a_worked_example_names_it() {
    let text = fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap();
    let mut n_files = 0;
    for section in text.split("\n### ").skip(1) {
        let (_, rest) = section.split_once("Follow `").expect("an example to follow");
        let (name, rest) = rest.split_once('`').expect("its name");
        let rows = rest.lines().filter(|line| line.starts_with("| `"));
        for file in rows.flat_map(|row| row.split('`').nth(1)) {
            let found = fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
            assert!(found.to_lowercase().contains(name), "{file} does not name {name}");
            n_files += 1;
        }
    }
    assert!(n_files > 20, "{n_files} files");
}
