//! Lines and checksums of files.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sha2::{Digest, Sha256};

use super::packed::unpacked;
use crate::data::Pair;
use crate::error::{Error, Result};
use crate::memory::Budget;

/// The longest line that is read, in bytes: 1 MiB. A longer one is a file without line ends, not a sentence.
pub const MAX_LINE_BYTES: usize = 1 << 20;

/// Reads the lines of a file, plain or packed by gzip or zstd, or of standard input when `path` is `-`. Blank lines are kept.
///
/// # Errors
///
/// When the file cannot be read, is not UTF-8, has a line above [`MAX_LINE_BYTES`] or does not fit into memory.
pub fn read_lines(path: impl AsRef<Path>) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    let mut budget = Budget::new();
    for_each_line(path.as_ref(), |number, line| {
        let line = line.trim();
        budget.take(size_of::<String>() + line.len()).map_err(|fault| Error::line(path.as_ref(), number, fault))?;
        lines.push(line.to_owned());
        Ok(())
    })?;
    Ok(lines)
}

/// Calls `take` with every line of a file, plain or packed by gzip or zstd, or of standard input when `path` is `-`, as soon as it
/// is there. Lines are counted from 1 and come without their ends.
///
/// # Errors
///
/// As [`read_lines`]; also what `take` returns.
pub fn for_each_line(path: &Path, mut take: impl FnMut(usize, &str) -> Result<()>) -> Result<()> {
    let mut lines = Lines::open(path)?;
    while let Some((number, line)) = lines.next_line()? {
        take(number, line)?;
    }
    Ok(())
}

/// The lines of a file, one after the other.
pub struct Lines {
    name: PathBuf,
    reader: Box<dyn BufRead>,
    packed: &'static str,
    bytes: Vec<u8>,
    number: usize,
    taken: Arc<AtomicU64>,
}

impl Lines {
    /// Those of the file `path`, plain or packed by gzip or zstd, or of standard input when it is `-`.
    ///
    /// # Errors
    ///
    /// When the file cannot be opened.
    pub fn open(path: &Path) -> Result<Self> {
        let (name, raw): (_, Box<dyn Read>) = if path == Path::new("-") {
            (Path::new("<standard input>"), Box::new(std::io::stdin().lock()))
        } else {
            (path, Box::new(File::open(path).map_err(Error::io(path))?))
        };
        let taken = Arc::new(AtomicU64::new(0));
        let counted = BufReader::with_capacity(1 << 16, Counted { raw, taken: taken.clone() });
        let (reader, packed) = unpacked(counted).map_err(Error::io(name))?;
        Ok(Self { name: name.to_path_buf(), reader, packed, bytes: Vec::new(), number: 0, taken })
    }

    /// The next line with its number, counted from 1, without its end; nothing at the end of the file.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, is not UTF-8 or has a line above [`MAX_LINE_BYTES`].
    pub fn next_line(&mut self) -> Result<Option<(usize, &str)>> {
        self.bytes.clear();
        self.number += 1;
        let limit = MAX_LINE_BYTES as u64 + 2;
        let read = self.reader.by_ref().take(limit).read_until(b'\n', &mut self.bytes);
        read.map_err(|e| reading_failed(&self.name, self.packed, e))?;
        if self.bytes.is_empty() {
            return Ok(None);
        }
        while self.bytes.last().is_some_and(|last| b"\r\n".contains(last)) {
            self.bytes.pop();
        }
        let at = |message: String| Error::line(&self.name, self.number, message);
        if self.bytes.len() > MAX_LINE_BYTES {
            return Err(at(format!("longer than {MAX_LINE_BYTES} bytes; put one sentence on a line")));
        }
        let line = str::from_utf8(&self.bytes).map_err(|e| {
            at(format!("not UTF-8 (byte {} of the line); convert the file to UTF-8", e.valid_up_to() + 1))
        })?;
        Ok(Some((self.number, if self.number == 1 { line.trim_start_matches('\u{feff}') } else { line })))
    }

    /// Bytes of the file, as stored, that have been read so far.
    pub fn bytes_read(&self) -> u64 {
        self.taken.load(Relaxed)
    }
}

/// A reader that counts.
struct Counted {
    raw: Box<dyn Read>,
    taken: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let n = self.raw.read(buffer)?;
        self.taken.fetch_add(n as u64, Relaxed);
        Ok(n)
    }
}

fn reading_failed(path: &Path, packed: &str, e: std::io::Error) -> Error {
    use std::io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
    match e.kind() {
        InvalidData | InvalidInput | UnexpectedEof => {
            Error::file(path, format!("damaged or incomplete {packed} data ({e}); get the file again"))
        }
        _ => Error::io(path)(e),
    }
}

/// The sha256 of a file's bytes as stored, in hexadecimal.
///
/// # Errors
///
/// When the file cannot be read.
pub fn sha256_of_file(path: impl AsRef<Path>) -> Result<String> {
    sha256_of_file_with(path, |_| Ok(()))
}

/// The same; `report` gets the number of bytes read, and can stop.
///
/// # Errors
///
/// As [`sha256_of_file`]; also what `report` returns.
pub fn sha256_of_file_with(path: impl AsRef<Path>, mut report: impl FnMut(u64) -> Result<()>) -> Result<String> {
    let mut hasher = Sha256::new();
    let mut file = File::open(&path).map_err(Error::io(&path))?;
    let mut buffer = vec![0; 1 << 18];
    let mut n_read = 0;
    loop {
        let n = file.read(&mut buffer).map_err(Error::io(&path))?;
        if n == 0 {
            return Ok(hex(&hasher.finalize()));
        }
        hasher.update(&buffer[..n]);
        n_read += n as u64;
        report(n_read)?;
    }
}

/// The sha256 of lines, one after the other.
#[derive(Debug, Default)]
pub(crate) struct LineHasher(Sha256);

impl LineHasher {
    /// Adds a line.
    pub(crate) fn add(&mut self, line: &str) {
        self.0.update(line);
        self.0.update("\n");
    }

    /// Adds a pair as a line: source, TAB, target.
    pub(crate) fn add_pair(&mut self, pair: &Pair) {
        self.0.update(&pair.source);
        self.0.update("\t");
        self.add(&pair.target);
    }

    /// The sum, in hexadecimal.
    pub(crate) fn finish(self) -> String {
        hex(&self.0.finalize())
    }
}

/// The sha256 of bytes, in hexadecimal.
pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
