//! Where the runs of results lie. A folder that is named from the root is one of one machine; in documents it is `runs/NAME`.

use super::Results;
use std::ops::Range;
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
        let mut old = Vec::new();
        // A suite that was made in parts has a command for each, one a line.
        let lines = command.lines().map(|line| placed_line(line, &new, &mut old));
        *command = lines.collect::<Vec<_>>().join("\n");
        if let Self::Comparison(comparison) = &mut self {
            for run in comparison.contestants.iter_mut().flat_map(|contestant| &mut contestant.runs) {
                if let Some(rest) = old.iter().find_map(|old| Path::new(run.as_str()).strip_prefix(old).ok()) {
                    *run = format!("{new}/{}", rest.display());
                }
            }
        }
        self
    }
}

/// A command with `new` in the place of each folder behind `--out` that is named from the root; those are added to `old`.
fn placed_line(line: &str, new: &str, old: &mut Vec<String>) -> String {
    let mut placed = String::new();
    let mut end = 0;
    let mut is_folder = false;
    for (place, word) in words(line) {
        let folder = word.strip_prefix("--out=").or(is_folder.then_some(word.as_str()));
        if let Some(folder) = folder.filter(|folder| Path::new(folder).has_root()) {
            placed += &line[end..place.start];
            placed += if is_folder { "" } else { "--out=" };
            placed += new;
            end = place.end;
            old.push(folder.to_string());
        }
        is_folder = word == "--out";
    }
    placed + &line[end..]
}

/// The words of a command as a shell reads them, with their places: quoted by `'`, or by a backslash outside of those.
fn words(line: &str) -> Vec<(Range<usize>, String)> {
    let mut words = Vec::new();
    let mut rest = line.char_indices().peekable();
    while let Some(&(start, first)) = rest.peek() {
        if first == ' ' {
            rest.next();
            continue;
        }
        let (mut word, mut end, mut is_quoted) = (String::new(), start, false);
        while let Some((at, c)) = rest.next_if(|(_, c)| is_quoted || *c != ' ') {
            end = at + c.len_utf8();
            match c {
                '\'' => is_quoted = !is_quoted,
                '\\' if !is_quoted => {
                    if let Some((at, c)) = rest.next() {
                        end = at + c.len_utf8();
                        word.push(c);
                    }
                }
                c => word.push(c),
            }
        }
        words.push((start..end, word));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::placed_line;

    #[test]
    fn folders_from_the_root_are_replaced_whatever_stands_around_them() {
        let mut old = Vec::new();
        let mut placed = |line: &str| placed_line(line, "runs/a", &mut old);
        let command = placed("lookback compare --suite small --out /home/me/s --jobs 2");
        assert_eq!(command, "lookback compare --suite small --out runs/a --jobs 2");
        assert_eq!(placed("lookback compare --out='/home/me/my runs/'"), "lookback compare --out=runs/a");
        assert_eq!(placed("lookback compare 'a b' --out '/it'\\''s'"), "lookback compare 'a b' --out runs/a");
        for kept in
            ["lookback compare --out here", "lookback compare --outer /a '--out' b", "", "lookback compare --out"]
        {
            assert_eq!(placed(kept), kept);
        }
        assert_eq!(old, ["/home/me/s", "/home/me/my runs/", "/it's"]);
    }
}
