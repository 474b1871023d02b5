//! `lookback results`: blocks of documents that are made from committed results.

use super::print;
use crate::error::{Error, Result};
use crate::files;
use crate::report::documents::{About, Published, Results, filled, has_blocks, shrunk};
use crate::report::{comparison, suite};
use clap::Args;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Where results lie below the root, and what is known of them besides.
const DATA: &str = "docs/results/data";
const INDEX: &str = "index.toml";

#[derive(Args, Debug)]
#[command(after_help = "Writes what stands between <!-- results: NAME; ... --> and <!-- end --> in README.md and below
docs/results, from docs/results/data/NAME.json. The machine, the date and the names of models stand
in docs/results/data/index.toml.

Examples:
  lookback results
  lookback results --add tour=runs/tour-three")]
pub(super) struct ResultsArgs {
    /// The folder with README.md and docs.
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    root: PathBuf,
    /// First take in the results of a finished comparison or suite under a name; may be repeated.
    #[arg(long, value_name = "NAME=FOLDER", value_parser = addition)]
    add: Vec<(String, PathBuf)>,
}

fn addition(text: &str) -> Result<(String, PathBuf), String> {
    let is_plain = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') && !name.is_empty();
    match text.split_once('=') {
        Some((name, folder)) if is_plain(name) => Ok((name.into(), folder.into())),
        _ => Err("is not NAME=FOLDER with a name of letters, digits and -".into()),
    }
}

pub(super) fn run(args: ResultsArgs) -> Result<()> {
    let data = args.root.join(DATA);
    for (name, folder) in &args.add {
        let text = match read(&folder.join("results.json"))? {
            Results::Suite(own) => suite::files::json(&own),
            Results::Comparison(own) => comparison::files::json(&shrunk(&own)),
        };
        files::replace(&data.join(format!("{name}.json")), text.as_bytes())?;
    }
    let published = published(&data)?;
    let mut n_written = 0;
    for path in documents(&args.root)? {
        let text = std::fs::read_to_string(&path).map_err(Error::io(&path))?;
        if has_blocks(&text) {
            let new = filled(&text, &published).map_err(|message| Error::file(&path, message))?;
            files::replace(&path, new.as_bytes())?;
            n_written += 1;
        }
    }
    print(&format!("{}: {n_written} documents from {} results\n", args.root.display(), published.len()))
}

fn read(path: &Path) -> Result<Results> {
    let text = std::fs::read_to_string(path).map_err(Error::io(path))?;
    Results::parse(&text).map_err(|error| Error::file(path, error.to_string()))
}

/// All results that the index names.
fn published(data: &Path) -> Result<BTreeMap<String, Published>> {
    let path = data.join(INDEX);
    let text = std::fs::read_to_string(&path).map_err(Error::io(&path))?;
    let index: BTreeMap<String, About> = toml::from_str(&text).map_err(|error| Error::file(&path, error.message()))?;
    let of = |(name, about): (String, About)| {
        let results = read(&data.join(format!("{name}.json")))?;
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
