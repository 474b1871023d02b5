//! The paths of a config file.

use std::path::{Component, Path, PathBuf};
use toml::{Table, Value};

/// The files of a split of pairs.
const OF_PAIRS: [&str; 4] = ["source", "target", "tsv", "more_targets"];
const SPLITS: [&str; 3] = ["train", "valid", "test"];

/// Makes the paths in `[data]` of a file in `folder` what they are from the working directory: `data.dir`, or the files themselves
/// where there is none, since files lie under `data.dir`.
///
/// What is no path is left as it is, for the reader to complain of, and what `is_overridden` for the one who overrides it.
///
/// # Errors
/// If a path leads nowhere from there, and somewhere from the working directory: the key, and what to write.
pub(super) fn place(
    config: &mut Table,
    folder: &Path,
    is_overridden: impl Fn(&[String]) -> bool,
) -> Result<(), (Vec<String>, String)> {
    let Some(data) = config.get_mut("data").and_then(Value::as_table_mut) else { return Ok(()) };
    let whole = |key: &[&str]| ["data"].iter().chain(key).map(|part| part.to_string()).collect::<Vec<String>>();
    let put = |key: &[&str], value: &mut Value| {
        let key = whole(key);
        if is_overridden(&key) { Ok(()) } else { place_value(value, folder).map_err(|fault| (key, fault)) }
    };
    if let Some(prepared) = data.get_mut("prepared") {
        put(&["prepared"], prepared)?;
    }
    if let Some(dir) = data.get_mut("dir") {
        return put(&["dir"], dir);
    }
    if is_overridden(&whole(&["dir"])) {
        return Ok(());
    }
    for split in SPLITS {
        if let Some(files) = data.get_mut(split).and_then(Value::as_table_mut) {
            for (key, files) in files.iter_mut().filter(|(key, _)| OF_PAIRS.contains(&key.as_str())) {
                put(&[split, key], files)?;
            }
        }
        if let Some(files) = data.get_mut("text").and_then(Value::as_table_mut).and_then(|text| text.get_mut(split)) {
            put(&["text", split], files)?;
        }
    }
    Ok(())
}

/// A path, or a list of paths.
fn place_value(value: &mut Value, folder: &Path) -> Result<(), String> {
    match value {
        Value::String(path) => {
            let placed = simple(&folder.join(&*path));
            if !placed.exists() && !Path::new(path).is_absolute() && Path::new(path).exists() {
                return Err(format!(
                    "is \"{path}\", relative to the folder of this file: {} is not there. There is one in the working directory; write \
                     the way to it from here, or give it with --set",
                    placed.display()
                ));
            }
            *path = placed.to_string_lossy().into_owned();
            Ok(())
        }
        Value::Array(paths) => paths.iter_mut().try_for_each(|path| place_value(path, folder)),
        _ => Ok(()),
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
        place(&mut config, Path::new(folder), |_| false).unwrap();
        config["data"].as_table().unwrap().clone()
    }

    #[test]
    fn paths_are_relative_to_the_folder_of_the_file() {
        let data = placed("[data]\ndir = \"../datasets/a\"\ntrain = { tsv = \"train.tsv\" }", "config");
        assert_eq!(data["dir"].as_str(), Some("datasets/a"));
        assert_eq!(data["train"]["tsv"].as_str(), Some("train.tsv"), "files lie under data.dir");
        let data = placed("[data]\ndir = \"../datasets/a\"\nprepared = \"../prepared/a\"", "config");
        assert_eq!(data["prepared"].as_str(), Some("prepared/a"));
        let data = placed("[data.test]\nsource = \"a\"\nmore_targets = [\"b\", \"/c\"]\nswap = true", "there/./sub");
        assert_eq!(data["test"]["source"].as_str(), Some("there/sub/a"));
        assert_eq!(data["test"]["more_targets"], Value::from(vec!["there/sub/b", "/c"]));
        assert_eq!(data["test"]["swap"].as_bool(), Some(true));
        let data = placed("[data.text]\ntrain = [\"../a.txt\"]\nvalid = 3", "../configs");
        assert_eq!(data["text"]["train"], Value::from(vec!["../a.txt"]));
        assert_eq!(data["text"]["valid"].as_integer(), Some(3));
        let mut config = toml::from_str("[data.train]\ntsv = \"a\"").unwrap();
        place(&mut config, Path::new("config"), |key| key == ["data", "dir"]).unwrap();
        assert_eq!(config["data"]["train"]["tsv"].as_str(), Some("a"), "it lies under the folder that is given");
        assert_eq!(placed("[data]\ndir = \"..\"", "config")["dir"].as_str(), Some("."));
        assert_eq!(placed("[data]\ndir = \"../../x\"", "config")["dir"].as_str(), Some("../x"));
    }
}
