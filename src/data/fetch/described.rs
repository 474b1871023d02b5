//! What is known of a public data set.

/// One file of a public data set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemoteFile<'a> {
    /// Where it is, below the base address of the data set.
    pub path: &'a str,
    /// When `path` is a zip archive: the name of the one file in it that is wanted.
    pub member: Option<&'a str>,
    /// Its name in the output folder.
    pub name: &'a str,
    /// Its size in bytes, unpacked from the archive if it comes in one.
    pub bytes: u64,
    /// The sha256 of those bytes, in hexadecimal.
    pub sha256: &'a str,
}

/// What is written from the fetched files, so that they can be read as a corpus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Derived {
    /// Nothing: the files are parallel text.
    Nothing,
    /// A `.tsv` beside every `.txt` of lines `IN: command OUT: actions`.
    ScanTsv,
    /// `train.tsv`, `valid.tsv` and `test.tsv` from one file, divided by source sentence.
    Splits {
        /// The file that is divided.
        from: &'static str,
        /// Thousandths of the source sentences that go to each of valid and test.
        per_mille: u64,
    },
    /// The same from a pronunciation dictionary of lines `word phones # comment`, in which `word(2)` is another
    /// pronunciation of `word`.
    Pronunciations {
        /// The dictionary.
        from: &'static str,
        /// Thousandths of the words that go to each of valid and test.
        per_mille: u64,
    },
}

/// A public data set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dataset {
    /// The name to fetch it by.
    pub name: &'static str,
    /// One line about it.
    pub about: &'static str,
    /// Under which terms its publishers give it away.
    pub licence: &'static str,
    /// The address that the files' paths are relative to.
    pub base_url: &'static str,
    /// Its files.
    pub files: &'static [RemoteFile<'static>],
    pub(super) derived: Derived,
}

/// A file that keeps the name it has in `path`.
pub(super) const fn file(path: &'static str, bytes: u64, sha256: &'static str) -> RemoteFile<'static> {
    let mut start = path.len();
    while start > 0 && path.as_bytes()[start - 1] != b'/' {
        start -= 1;
    }
    RemoteFile { path, member: None, name: path.split_at(start).1, bytes, sha256 }
}
