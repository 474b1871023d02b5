//! `lookback results`: blocks of documents that are made from committed results.

use super::print;
use crate::error::{Error, Result};
use crate::files;
use crate::report::documents::{About, Evaluations, Published, Results, filled, has_blocks, shrunk};
use crate::report::{comparison, suite};
use clap::Args;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Where results lie below the root, and what is known of them besides.
const DATA: &str = "docs/results/data";
const INDEX: &str = "index.toml";

#[derive(Args, Debug)]
#[command(after_help = "Writes what stands between <!-- results: NAME; ... --> and <!-- end --> in README.md and below
docs/results, from docs/results/data/NAME.json and NAME.jsonl. The machine, the date and the
names of models stand in docs/results/data/index.toml.

Examples:
  lookback results
  lookback results --add tour=runs/tour-three
  lookback evaluate --run runs/first --json > first.jsonl
  lookback results --add first=first.jsonl")]
pub(super) struct ResultsArgs {
    /// The folder with README.md and docs.
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    root: PathBuf,
    /// First take in results under a name: the folder of a finished comparison or suite, or a file with lines of `evaluate --json`, one
    /// for each seed; may be repeated.
    #[arg(long, value_name = "NAME=PATH", value_parser = addition)]
    add: Vec<(String, PathBuf)>,
}

fn addition(text: &str) -> Result<(String, PathBuf), String> {
    let is_plain = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') && !name.is_empty();
    match text.split_once('=') {
        // Marks with these names ask for something else.
        Some((name @ ("list" | "scores"), _)) => Err(format!("results cannot be called {name}")),
        Some((name, path)) if is_plain(name) => Ok((name.into(), path.into())),
        _ => Err("is not NAME=PATH with a name of letters, digits and -".into()),
    }
}

pub(super) fn run(args: ResultsArgs) -> Result<()> {
    let data = args.root.join(DATA);
    let mut added = BTreeMap::new();
    for (name, path) in &args.add {
        let results = match path.is_dir() {
            true => read(&path.join("results.json"))?,
            false => read_lines(path)?,
        };
        let results = match results {
            Results::Comparison(own) => Results::Comparison(Box::new(shrunk(&own))),
            other => other,
        };
        added.insert(name.clone(), results.placed(name));
    }
    let published = published(&data, &added)?;
    let mut written = Vec::new();
    for path in documents(&args.root)? {
        let text = std::fs::read_to_string(&path).map_err(Error::io(&path))?;
        if has_blocks(&text) {
            let new = filled(&text, &published).map_err(|message| Error::file(&path, message))?;
            written.push((path, new));
        }
    }
    // Nothing is replaced before everything is known to fit.
    for (name, results) in &added {
        let text = match results {
            Results::Suite(own) => suite::files::json(own),
            Results::Comparison(own) => comparison::files::json(own),
            Results::Evaluations(own) => own.lines(),
        };
        let path = data.join(format!("{name}.{}", results.extension()));
        files::replace(&path, text.as_bytes())?;
        // What the name stood for before.
        for old in ["json", "jsonl"].map(|extension| data.join(format!("{name}.{extension}"))) {
            if old != path && old.exists() {
                std::fs::remove_file(&old).map_err(Error::io(&old))?;
            }
        }
    }
    for (path, text) in &written {
        files::replace(path, text.as_bytes())?;
    }
    print(&format!("{}: {} documents from {} results\n", args.root.display(), written.len(), published.len()))
}

fn read(path: &Path) -> Result<Results> {
    let text = std::fs::read_to_string(path).map_err(Error::io(path))?;
    Results::parse(&text).map_err(|error| Error::file(path, error.to_string()))
}

fn read_lines(path: &Path) -> Result<Results> {
    let text = std::fs::read_to_string(path).map_err(Error::io(path))?;
    Evaluations::parse(&text).map(Results::Evaluations).map_err(|message| Error::file(path, message))
}

/// All results that the index names; those in `added` in place of the files.
fn published(data: &Path, added: &BTreeMap<String, Results>) -> Result<BTreeMap<String, Published>> {
    let path = data.join(INDEX);
    let text = std::fs::read_to_string(&path).map_err(Error::io(&path))?;
    let index: BTreeMap<String, About> = toml::from_str(&text).map_err(|error| Error::file(&path, error.message()))?;
    if let Some(name) = added.keys().find(|name| !index.contains_key(*name)) {
        let message = format!("has no [{name}] yet; write there on what machine and day these results were measured");
        return Err(Error::file(&path, message));
    }
    let of = |(name, about): (String, About)| {
        let lines = data.join(format!("{name}.jsonl"));
        let results = match added.get(&name) {
            Some(results) => results.clone(),
            None if lines.exists() => read_lines(&lines)?,
            None => read(&data.join(format!("{name}.json")))?,
        };
        Ok((name, Published::new(about, results)))
    };
    index.into_iter().map(of).collect()
}

/// The documents that may have blocks.
fn documents(root: &Path) -> Result<Vec<PathBuf>> {
    let mut found = vec![root.join("README.md")];
    for folder in ["docs/results", DATA] {
        let folder = root.join(folder);
        for entry in std::fs::read_dir(&folder).map_err(Error::io(&folder))? {
            let path = entry.map_err(Error::io(&folder))?.path();
            if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}
