//! Where results go: lines into a file or to standard output, pictures and pages into files.

use super::print;
use crate::error::{Error, Result};
use crate::files;
use crate::notice;
use crate::report::png::png;
use serde::Serialize;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Pixels of a PNG for each of the picture.
const PNG_SCALE: f32 = 2.0;

/// Opens a file for lines, `-` being standard output; none of the files that are still to be `read`. What it had stays until the first
/// line is written or all of them are flushed: an input that cannot be read leaves the earlier results in place.
///
/// # Errors
/// If it is one of them, or cannot be written.
pub(super) fn open<'a>(path: &Path, read: impl IntoIterator<Item = &'a Path>) -> Result<Box<dyn Write>> {
    if path.as_os_str() == "-" {
        return Ok(Box::new(BufWriter::new(std::io::stdout().lock())));
    }
    check_unread(path, "--output", read)?;
    files::check_writable(path)?;
    Ok(Box::new(Lines { path: path.to_path_buf(), file: None }))
}

/// Refuses to write over one of the files that are to be `read`; `option` is the one that names `path`.
pub(super) fn check_unread<'a>(path: &Path, option: &str, read: impl IntoIterator<Item = &'a Path>) -> Result<()> {
    match read.into_iter().any(|read| files::are_same(read, path)) {
        true => Err(Error::file(path, format!("is read and would be written over; give another {option}"))),
        false => Ok(()),
    }
}

/// A file that is made when something comes.
struct Lines {
    path: PathBuf,
    file: Option<BufWriter<File>>,
}

impl Lines {
    fn file(&mut self) -> std::io::Result<&mut BufWriter<File>> {
        if self.file.is_none() {
            self.file = Some(BufWriter::new(File::create(&self.path)?));
        }
        Ok(self.file.as_mut().expect("it has just been made"))
    }
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.file()?.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file()?.flush()
    }
}

/// The error of what [`open`] has opened.
pub(super) fn error(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    Error::io(if path.as_os_str() == "-" { Path::new("standard output") } else { path })
}

/// Refuses files that could not be written, before work is done in vain.
pub(super) fn check<'a>(files: impl IntoIterator<Item = Option<&'a PathBuf>>) -> Result<()> {
    files.into_iter().flatten().try_for_each(|path| files::check_writable(path))
}

/// The ending of a file to write, one of `allowed`.
///
/// # Errors
/// If it has another one or none.
pub(super) fn extension<'a>(path: &Path, allowed: &[&'a str]) -> Result<&'a str> {
    let found = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    allowed.iter().copied().find(|known| *known == found).ok_or_else(|| {
        let names: Vec<String> = allowed.iter().map(|name| format!(".{name}")).collect();
        Error::file(path, format!("has no ending that says what to write; there are {}", names.join(", ")))
    })
}

/// A picture as a file with the ending `svg` or `png`.
///
/// # Errors
/// If it is too large for the latter.
pub(super) fn picture(svg: String, ending: &str) -> Result<Vec<u8>> {
    if ending == "svg" { Ok(svg.into_bytes()) } else { png(&svg, PNG_SCALE) }
}

/// A value as JSON in one line.
pub(super) fn json_line(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("plain data")
}

/// Prints a value as JSON, as a line of its own.
pub(super) fn print_json(value: &impl Serialize) -> Result<()> {
    print(&(json_line(value) + "\n"))
}

/// A value as JSON for people, a line for each field.
pub(super) fn json_for_people(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).expect("plain data") + "\n"
}

/// Writes a result and says so.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    files::replace(path, bytes)?;
    notice::say(format_args!("wrote {} ({})", path.display(), size(bytes.len())));
    Ok(())
}

fn size(bytes: usize) -> String {
    match bytes {
        0..10_000 => format!("{bytes} bytes"),
        10_000..10_000_000 => format!("{} kB", bytes / 1000),
        _ => format!("{} MB", bytes / 1_000_000),
    }
}
