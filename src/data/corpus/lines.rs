//! Lines and checksums of files.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::memory::Budget;

/// The longest line that is read, in bytes: 1 MiB. A longer one is a file without line ends, not a sentence.
pub const MAX_LINE_BYTES: usize = 1 << 20;

/// Reads the lines of a file, plain or gzip, or of standard input when `path` is `-`. Blank lines are kept.
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

/// Calls `take` with every line of a file, plain or gzip, or of standard input when `path` is `-`, as soon as it is there. Lines
/// are counted from 1 and come without their ends.
///
/// # Errors
///
/// As [`read_lines`]; also what `take` returns.
pub fn for_each_line(path: &Path, mut take: impl FnMut(usize, &str) -> Result<()>) -> Result<()> {
    let name = if path == Path::new("-") { Path::new("<standard input>") } else { path };
    let mut reader = open(path).map_err(Error::io(name))?;
    let mut bytes = Vec::new();
    for number in 1.. {
        bytes.clear();
        let limit = MAX_LINE_BYTES as u64 + 2;
        reader.by_ref().take(limit).read_until(b'\n', &mut bytes).map_err(|e| reading_failed(name, e))?;
        if bytes.is_empty() {
            break;
        }
        while bytes.last().is_some_and(|last| b"\r\n".contains(last)) {
            bytes.pop();
        }
        if bytes.len() > MAX_LINE_BYTES {
            let message = format!("longer than {MAX_LINE_BYTES} bytes; put one sentence on a line");
            return Err(Error::line(name, number, message));
        }
        let line = str::from_utf8(&bytes).map_err(|e| {
            let message = format!("not UTF-8 (byte {} of the line); convert the file to UTF-8", e.valid_up_to() + 1);
            Error::line(name, number, message)
        })?;
        take(number, if number == 1 { line.trim_start_matches('\u{feff}') } else { line })?;
    }
    Ok(())
}

/// Opens a file or standard input and unpacks it if it starts like gzip.
fn open(path: &Path) -> std::io::Result<Box<dyn BufRead>> {
    let mut raw: Box<dyn BufRead> = if path == Path::new("-") {
        Box::new(std::io::stdin().lock())
    } else {
        Box::new(BufReader::new(File::open(path)?))
    };
    let is_gzip = raw.fill_buf()?.starts_with(&[0x1f, 0x8b]);
    Ok(if is_gzip { Box::new(BufReader::new(MultiGzDecoder::new(raw))) } else { raw })
}

fn reading_failed(path: &Path, e: std::io::Error) -> Error {
    use std::io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
    match e.kind() {
        InvalidData | InvalidInput | UnexpectedEof => {
            Error::file(path, format!("damaged or incomplete gzip data ({e}); get the file again"))
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
    let mut hasher = Sha256::new();
    let mut file = File::open(&path).map_err(Error::io(&path))?;
    let mut buffer = vec![0; 1 << 16];
    loop {
        let n = file.read(&mut buffer).map_err(Error::io(&path))?;
        if n == 0 {
            return Ok(hex(&hasher.finalize()));
        }
        hasher.update(&buffer[..n]);
    }
}

/// The sha256 of bytes, in hexadecimal.
pub(in crate::data) fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
