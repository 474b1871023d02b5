//! Where the runs of results lie. A folder that is named from the root is one of one machine; in documents it is `runs/NAME`.

use super::Results;
use std::path::Path;

impl Results {
    /// The same results, as if their runs were in `runs/NAME`, if they are in a folder that is named from the root.
    pub fn placed(mut self, name: &str) -> Self {
        let new = format!("runs/{name}");
        let command = match &mut self {
            Self::Suite(suite) => &mut suite.command,
            Self::Comparison(comparison) => &mut comparison.command,
            Self::Evaluations(_) => return self,
        };
        let Some(old) = folder(command).filter(|folder| Path::new(folder).has_root()).map(str::to_owned) else {
            return self;
        };
        *command = command.replace(&format!("--out {old}"), &format!("--out {new}"));
        *command = command.replace(&format!("--out={old}"), &format!("--out={new}"));
        if let Self::Comparison(comparison) = &mut self {
            let runs = comparison.contestants.iter_mut().flat_map(|contestant| &mut contestant.runs);
            for run in runs {
                if let Some(rest) = run.strip_prefix(&old).filter(|rest| rest.is_empty() || rest.starts_with('/')) {
                    *run = format!("{new}{rest}");
                }
            }
        }
        self
    }
}

/// What a command has behind `--out`.
fn folder(command: &str) -> Option<&str> {
    let mut words = command.split_whitespace();
    while let Some(word) = words.next() {
        match word.strip_prefix("--out") {
            Some("") => return words.next(),
            Some(rest) if rest.starts_with('=') => return Some(&rest[1..]),
            _ => {}
        }
    }
    None
}
