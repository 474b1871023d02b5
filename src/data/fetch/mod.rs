//! Fetching public data sets: a list of files with checksums, downloads that go on where they stopped.
//!
//! A file is downloaded to `NAME.part`, checked against its sha256 and only then renamed, so a file under its own name
//! is always whole. Nothing here runs during training; a data set is fetched once, by hand.

mod address;
mod datasets;
mod described;
mod g2p;
mod multi30k;
mod unpack;

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use datasets::DATASETS;
pub use described::{Dataset, RemoteFile};

use super::corpus::{sha256_hex, sha256_of_file};
use crate::error::{Error, Result};
use crate::files;

/// How often a download is taken up again after the connection broke.
const MAX_RETRIES: usize = 4;
/// How long to wait before that.
const PAUSE: Duration = Duration::from_millis(300);
/// How long a server may stay silent before the connection counts as broken.
const SILENCE: Duration = Duration::from_secs(30);

/// How far a fetch has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress<'a> {
    /// The name of the file that is being fetched.
    pub file: &'a str,
    /// Which of the files it is, counted from 1.
    pub file_number: usize,
    /// How many files there are.
    pub n_files: usize,
    /// Bytes of it that are there.
    pub bytes: u64,
    /// Bytes that it will have, where the server says so.
    pub total_bytes: Option<u64>,
}

/// The data set called `name`.
///
/// # Errors
///
/// When there is no such data set; the message lists those there are.
pub fn dataset(name: &str) -> Result<&'static Dataset> {
    DATASETS.iter().find(|dataset| dataset.name == name).ok_or_else(|| {
        let names = DATASETS.iter().map(|dataset| dataset.name).collect::<Vec<_>>().join(", ");
        Error::message(format!("unknown data set `{name}`; there are: {names}"))
    })
}

/// Fetches the data set `name` into `out_dir` and returns its files, those written from them (`.tsv`) included.
///
/// Files that are already there and whole are left alone; with `replaces`, others of these names are replaced. `base_url` stands in for
/// the data set's own address, for a mirror: a server, or with `file://` a folder.
///
/// # Errors
///
/// An unknown name; a file of one of these names with other content; whatever the server, the network or the disk refuses; a wrong
/// checksum.
pub fn fetch(
    name: &str,
    out_dir: impl AsRef<Path>,
    base_url: Option<&str>,
    replaces: bool,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Vec<PathBuf>> {
    let dataset = dataset(name)?;
    if !replaces {
        for file in dataset.files {
            let path = out_dir.as_ref().join(file.name);
            if path.is_file() && sha256_of_file(&path)? != file.sha256 {
                return Err(another(&path));
            }
        }
    }
    let mut paths = download(dataset.files, base_url.unwrap_or(dataset.base_url), &out_dir, progress)?;
    paths.extend(unpack::derive(dataset, out_dir.as_ref(), replaces)?);
    Ok(paths)
}

/// The fault of a file that would be replaced by another.
fn another(path: &Path) -> Error {
    Error::file(path, "is there already with other content; give another --out, or --force to replace it")
}

/// Downloads `files` from below `base_url` into `out_dir`, which is made if it is not there.
///
/// # Errors
///
/// Whatever the server, the network or the disk refuses. A wrong checksum, after which nothing of that file is left.
pub fn download(
    files: &[RemoteFile<'_>],
    base_url: &str,
    out_dir: impl AsRef<Path>,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Vec<PathBuf>> {
    address::check(base_url)?;
    let out_dir = out_dir.as_ref();
    fs::create_dir_all(out_dir).map_err(Error::io(out_dir))?;
    let mut paths = Vec::with_capacity(files.len());
    for (file_number, file) in (1..).zip(files) {
        let path = out_dir.join(file.name);
        let mut report = |bytes, total_bytes| {
            progress(Progress { file: file.name, file_number, n_files: files.len(), bytes, total_bytes });
        };
        if path.is_file() && sha256_of_file(&path)? == file.sha256 {
            report(file.bytes, Some(file.bytes));
        } else {
            let url = format!("{}/{}", base_url.trim_end_matches('/'), file.path);
            Download { url: &url, file, path: &path, report: &mut report }.run()?;
        }
        paths.push(path);
    }
    Ok(paths)
}

/// The download of one file.
struct Download<'a> {
    url: &'a str,
    file: &'a RemoteFile<'a>,
    path: &'a Path,
    report: &'a mut dyn FnMut(u64, Option<u64>),
}

impl Download<'_> {
    fn run(mut self) -> Result<()> {
        let part = part_of(self.path);
        for retries_left in (0..=MAX_RETRIES).rev() {
            match self.attempt(&part) {
                Ok(()) => break,
                Err(Failure::Fatal(error)) => return Err(error),
                Err(Failure::Broken(_)) if retries_left > 0 => std::thread::sleep(PAUSE),
                Err(Failure::Broken(reason)) => {
                    let message = format!("{}: {reason}; run the same command again to go on from here", self.url);
                    return Err(Error::message(message));
                }
            }
        }
        self.finish(&part)
    }

    /// Fetches what is missing of the partial file.
    fn attempt(&mut self, part: &Path) -> Result<(), Failure> {
        if let Some(path) = address::local(self.url) {
            return self.copy_file(&path, part);
        }
        let have = part.metadata().map_or(0, |metadata| metadata.len());
        let mut response = self.request(have).map_err(|e| Failure::Broken(e.to_string()))?;
        let status = response.status().as_u16();
        let resumed = status == 206 && starts_at(&response, have);
        match status {
            200 => {}
            206 if resumed => {}
            // What is there does not fit what the server has: start afresh.
            206 | 416 if have > 0 => {
                fs::remove_file(part).map_err(Error::io(part))?;
                return Err(Failure::Broken("the server cannot go on from what was fetched before".to_owned()));
            }
            _ => {
                let message = format!("{}: the server answers with HTTP status {status}", self.url);
                return Err(Failure::Fatal(Error::message(message)));
            }
        }
        let total = response.body().content_length().map(|rest| if resumed { have + rest } else { rest });
        let mut output = OpenOptions::new()
            .create(true)
            .write(true)
            .append(resumed)
            .truncate(!resumed)
            .open(part)
            .map_err(Error::io(part))?;
        let start = if resumed { have } else { 0 };
        self.copy(&mut response.body_mut().as_reader(), &mut output, start, total)
    }

    /// Copies a file of this machine; nothing is gained by going on where a copy was cut off.
    fn copy_file(&mut self, path: &Path, part: &Path) -> Result<(), Failure> {
        let mut input = File::open(path).map_err(Error::io(path))?;
        let total = input.metadata().map_err(Error::io(path))?.len();
        let mut output = File::create(part).map_err(Error::io(part))?;
        self.copy(&mut input, &mut output, 0, Some(total))
    }

    fn request(&self, have: u64) -> Result<ureq::http::Response<ureq::Body>, ureq::Error> {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(SILENCE))
            .timeout_per_read(Some(SILENCE))
            .build();
        let request = ureq::Agent::from(config).get(self.url);
        // A packed transfer would make ranges and sizes mean something else.
        let request = request.header("Accept-Encoding", "identity");
        if have > 0 { request.header("Range", format!("bytes={have}-")).call() } else { request.call() }
    }

    /// Copies a response to the end of the partial file, which has `bytes` bytes and will have `total`.
    fn copy(
        &mut self,
        input: &mut dyn Read,
        output: &mut File,
        mut bytes: u64,
        total: Option<u64>,
    ) -> Result<(), Failure> {
        let mut buffer = vec![0; 1 << 16];
        loop {
            (self.report)(bytes, total);
            let n = input.read(&mut buffer).map_err(|e| Failure::Broken(format!("the connection broke ({e})")))?;
            output.write_all(&buffer[..n]).map_err(Error::io(self.path))?;
            bytes += n as u64;
            // Too much is never the right file; its checksum will say so.
            if self.file.member.is_none() && bytes > self.file.bytes {
                return Ok(());
            }
            // A connection that ends too early is an error of `read`.
            if n == 0 {
                return Ok(());
            }
        }
    }

    /// Checks what was fetched and gives it its name.
    fn finish(self, part: &Path) -> Result<()> {
        let unpacked = match self.file.member {
            None => None,
            Some(member) => {
                let archive = fs::read(part).map_err(Error::io(part))?;
                // A damaged archive is as good as a wrong checksum: an empty file never has the right one.
                Some(unpack::zip_member(&archive, member, self.file.bytes).unwrap_or_default())
            }
        };
        let got = match &unpacked {
            None => sha256_of_file(part)?,
            Some(bytes) => sha256_hex(bytes),
        };
        if got != self.file.sha256 {
            fs::remove_file(part).map_err(Error::io(part))?;
            let message = format!(
                "wrong checksum: expected sha256 {}, got {got}; what came from {} was removed, fetch it again",
                self.file.sha256, self.url
            );
            return Err(Error::file(self.path, message));
        }
        match unpacked {
            None => fs::rename(part, self.path).map_err(Error::io(self.path)),
            Some(bytes) => {
                files::replace(self.path, &bytes)?;
                fs::remove_file(part).map_err(Error::io(part))
            }
        }
    }
}

/// Why an attempt did not bring the whole file.
enum Failure {
    /// Trying again may help.
    Broken(String),
    /// Trying again cannot help.
    Fatal(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Fatal(error)
    }
}

/// Whether a partial answer starts where it was asked to (`Content-Range: bytes 10-99/100`).
fn starts_at(response: &ureq::http::Response<ureq::Body>, start: u64) -> bool {
    let range = response.headers().get("content-range").and_then(|value| value.to_str().ok());
    range.is_some_and(|range| range.starts_with(&format!("bytes {start}-")))
}

/// `NAME.part` beside `NAME`.
fn part_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    PathBuf::from(name)
}
