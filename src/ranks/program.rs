//! Which program each rank runs.

use super::Ranks;
use crate::error::{Error, Result};
use crate::program;

/// The version and the SHA-256 of the program of this process; the latter is empty where its file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Program {
    version: String,
    sha256: String,
}

impl Program {
    fn own() -> Self {
        let sha256 = program::sha256().unwrap_or_default();
        Self { version: env!("CARGO_PKG_VERSION").into(), sha256: sha256.into() }
    }

    /// As bytes whose form no version may change: it is what versions recognize each other by.
    fn to_bytes(&self) -> Vec<u8> {
        format!("{}\n{}", self.version, self.sha256).into_bytes()
    }

    fn of_bytes(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let (version, sha256) = text.split_once('\n').unwrap_or((&text, ""));
        Self { version: version.into(), sha256: sha256.into() }
    }

    /// What another rank runs instead.
    fn difference(&self, other: &Self) -> Option<String> {
        if self.version != other.version {
            return Some(format!("the program is version {}, not {}", other.version, self.version));
        }
        let is_same = self.sha256 == other.sha256 || self.sha256.is_empty() || other.sha256.is_empty();
        (!is_same).then(|| format!("the program is another build of version {} (the SHA-256 differs)", self.version))
    }
}

/// Refuses ranks that run another program than rank 0. All ranks refuse together. This comes before all else that they say.
///
/// # Errors
/// Names the rank and what it runs.
pub fn check_program(ranks: &dyn Ranks) -> Result<()> {
    if ranks.size() == 1 {
        return Ok(());
    }
    check(ranks, &Program::own())
}

fn check(ranks: &dyn Ranks, own: &Program) -> Result<()> {
    let said: Vec<Program> = ranks.exchange(&own.to_bytes()).iter().map(|bytes| Program::of_bytes(bytes)).collect();
    let found = (1..said.len()).find_map(|rank| Some((rank, said[0].difference(&said[rank])?)));
    found.map_or(Ok(()), |(rank, difference)| {
        Err(Error::message(format!(
            "rank {rank} cannot train with rank 0: there, {difference}; start the same program on all machines"
        )))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ranks::{Local, within_process};

    /// What the ranks say whose programs have these versions and sums.
    fn said(programs: [(&str, &str); 3]) -> Vec<Option<String>> {
        std::thread::scope(|scope| {
            let ranks = within_process(3).into_iter().zip(programs);
            let of_rank = |(ranks, (version, sha256)): (Local, (&str, &str))| {
                let own = Program { version: version.into(), sha256: sha256.into() };
                super::check(&ranks, &own).err().map(|error| error.to_string())
            };
            let threads: Vec<_> = ranks.map(|rank| scope.spawn(move || of_rank(rank))).collect();
            threads.into_iter().map(|thread| thread.join().expect("no rank panics")).collect()
        })
    }

    #[test]
    fn another_version_and_another_build_are_refused_by_all_ranks() {
        let version = said([("1.0.0", "a"), ("1.0.0", "a"), ("1.1.0", "b")]);
        let expected = "rank 2 cannot train with rank 0: there, the program is version 1.1.0, not 1.0.0; start the same \
                        program on all machines";
        assert!(version.iter().all(|error| error.as_deref() == Some(expected)), "{version:?}");
        let build = said([("1.0.0", "a"), ("1.0.0", "b"), ("1.0.0", "a")]);
        let expected = "rank 1 cannot train with rank 0: there, the program is another build of version 1.0.0";
        assert!(build.iter().all(|error| error.as_ref().is_some_and(|text| text.starts_with(expected))), "{build:?}");
        // A file that cannot be read any more is no other program.
        assert_eq!(said([("1.0.0", "a"), ("1.0.0", ""), ("1.0.0", "a")]), [None, None, None]);
    }

    #[test]
    fn this_program_has_a_sum() {
        assert_eq!(Program::own().sha256.len(), 64);
    }
}
