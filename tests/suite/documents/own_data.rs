//! The guide to your own data: its commands fit each other.

use super::tour::sh;
use super::{prose_and_code, root};
use std::fs;
use tempfile::TempDir;

#[cfg(unix)]
#[test]
fn the_config_of_the_guide_fits_the_data_that_it_generates() {
    let guide = fs::read_to_string(root().join("docs/guides/own-data.md")).unwrap();
    let (_, blocks) = prose_and_code(&guide);
    let block = |start: &str| *blocks.iter().find(|block| block.starts_with(start)).expect("a block of the guide");
    let dir = TempDir::new().unwrap();
    let config = block("toml\n").strip_prefix("toml\n").unwrap();
    fs::write(dir.path().join("my.toml"), config).unwrap();

    for line in block("sh\nlookback data list").lines().skip(1) {
        assert!(sh(dir.path(), line).status.success(), "{line}");
    }
    let check = block("sh\nlookback config check").lines().nth(1).unwrap();
    let shown = block("text\nmy.toml: every").strip_prefix("text\n").unwrap();
    assert_eq!(String::from_utf8(sh(dir.path(), check).stdout).unwrap(), shown);

    let faults = block("text\nlookback: my.toml");
    let fault = faults.lines().nth(1).unwrap();
    fs::write(dir.path().join("my.toml"), config.replace("vocab_size", "vocab_sise")).unwrap();
    assert_eq!(String::from_utf8(sh(dir.path(), check).stderr).unwrap().trim_end(), fault);
}
