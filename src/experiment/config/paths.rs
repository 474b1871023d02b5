//! The paths of a config file.

use std::path::{Component, Path, PathBuf};
use toml::{Table, Value};

/// The files of a split of pairs.
const OF_PAIRS: [&str; 4] = ["source", "target", "tsv", "more_targets"];
const SPLITS: [&str; 3] = ["train", "valid", "test"];

/// Makes the paths in `[data]` of a file in `folder` what they are from the working directory: `data.dir`, or the files themselves
/// where there is none, since files lie under `data.dir`.
///
/// What is no path is left as it is, for the reader to complain of.
pub(super) fn place(config: &mut Table, folder: &Path) {
    let Some(data) = config.get_mut("data").and_then(Value::as_table_mut) else { return };
    if let Some(dir) = data.get_mut("dir") {
        return place_value(dir, folder);
    }
    for split in SPLITS {
        if let Some(files) = data.get_mut(split).and_then(Value::as_table_mut) {
            OF_PAIRS.iter().filter_map(|key| files.remove_entry(*key)).collect::<Vec<_>>().into_iter().for_each(
                |(key, mut value)| {
                    place_value(&mut value, folder);
                    files.insert(key, value);
                },
            );
        }
        if let Some(files) = data.get_mut("text").and_then(Value::as_table_mut).and_then(|text| text.get_mut(split)) {
            place_value(files, folder);
        }
    }
}

/// A path, or a list of paths.
fn place_value(value: &mut Value, folder: &Path) {
    match value {
        Value::String(path) => *path = simple(&folder.join(&*path)).to_string_lossy().into_owned(),
        Value::Array(paths) => paths.iter_mut().for_each(|path| place_value(path, folder)),
        _ => {}
    }
}

/// `a/../b` as `b`, where `a` is a name: what is written down in a run, and said in messages, is to be read by people. Through a
/// link that leads elsewhere `..` would be another folder, so that such a path stays as it is.
fn simple(path: &Path) -> PathBuf {
    let mut found = PathBuf::new();
    for part in path.components() {
        let is_name = matches!(found.components().next_back(), Some(Component::Normal(_)));
        match part {
            Component::CurDir => {}
            Component::ParentDir if is_name && !found.is_symlink() => drop(found.pop()),
            part => found.push(part),
        }
    }
    if found.as_os_str().is_empty() { PathBuf::from(".") } else { found }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(text: &str, folder: &str) -> Table {
        let mut config = toml::from_str(text).unwrap();
        place(&mut config, Path::new(folder));
        config["data"].as_table().unwrap().clone()
    }

    #[test]
    fn paths_are_relative_to_the_folder_of_the_file() {
        let data = placed("[data]\ndir = \"../datasets/a\"\ntrain = { tsv = \"train.tsv\" }", "config");
        assert_eq!(data["dir"].as_str(), Some("datasets/a"));
        assert_eq!(data["train"]["tsv"].as_str(), Some("train.tsv"), "files lie under data.dir");
        let data = placed("[data.test]\nsource = \"a\"\nmore_targets = [\"b\", \"/c\"]\nswap = true", "there/./sub");
        assert_eq!(data["test"]["source"].as_str(), Some("there/sub/a"));
        assert_eq!(data["test"]["more_targets"], Value::from(vec!["there/sub/b", "/c"]));
        assert_eq!(data["test"]["swap"].as_bool(), Some(true));
        let data = placed("[data.text]\ntrain = [\"../a.txt\"]\nvalid = 3", "../configs");
        assert_eq!(data["text"]["train"], Value::from(vec!["../a.txt"]));
        assert_eq!(data["text"]["valid"].as_integer(), Some(3));
        assert_eq!(placed("[data]\ndir = \"..\"", "config")["dir"].as_str(), Some("."));
        assert_eq!(placed("[data]\ndir = \"../../x\"", "config")["dir"].as_str(), Some("../x"));
    }
}
