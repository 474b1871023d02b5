//! What is measured, as TensorBoard reads it: files of events, one folder for training and one for validation.
//!
//! A file is a row of records: the length of the message in 64 bits, its checksum, the message, its checksum. A message is an
//! `Event` of Protocol Buffers (`event.proto`, `summary.proto`). No maintained crate writes these files.

use crate::error::{Error, Result};
use prost::Message;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// What a reader knows the format by.
const VERSION: &str = "brain.Event:2";
/// [`SessionLog::status`]: events of this step and later ones, in files before this, do not count.
const START: i32 = 1;

#[derive(Clone, PartialEq, Message)]
struct Event {
    /// Seconds since 1970.
    #[prost(double, tag = "1")]
    wall_time: f64,
    #[prost(int64, tag = "2")]
    step: i64,
    #[prost(string, optional, tag = "3")]
    file_version: Option<String>,
    #[prost(message, optional, tag = "5")]
    summary: Option<Summary>,
    #[prost(message, optional, tag = "7")]
    session_log: Option<SessionLog>,
}

#[derive(Clone, PartialEq, Message)]
struct Summary {
    #[prost(message, repeated, tag = "1")]
    values: Vec<Value>,
}

#[derive(Clone, PartialEq, Message)]
struct Value {
    #[prost(string, tag = "1")]
    tag: String,
    // Present also where it is zero.
    #[prost(float, optional, tag = "2")]
    simple_value: Option<f32>,
}

#[derive(Clone, PartialEq, Message)]
struct SessionLog {
    #[prost(int32, tag = "1")]
    status: i32,
}

/// A file of events that is being written.
pub(super) struct EventFile {
    path: PathBuf,
    file: File,
}

impl EventFile {
    /// Begins a file in a folder, which is made; what files before it say of the step `first` and of later ones does not count.
    pub(super) fn create(folder: &Path, first: u64) -> Result<Self> {
        std::fs::create_dir_all(folder).map_err(Error::io(folder))?;
        let n_before = std::fs::read_dir(folder).map_err(Error::io(folder))?.count();
        // Files are read in the order of their names.
        let path = folder.join(format!("events.out.tfevents.{:010}.lookback.{n_before:05}", now() as u64));
        let file = OpenOptions::new().create(true).append(true).open(&path).map_err(Error::io(&path))?;
        let mut file = Self { path, file };
        let version = Event { wall_time: now(), file_version: Some(VERSION.into()), ..Event::default() };
        file.write(&version)?;
        let session_log = Some(SessionLog { status: START });
        file.write(&Event { wall_time: now(), step: first as i64, session_log, ..Event::default() })?;
        Ok(file)
    }

    /// Adds the numbers of a step.
    pub(super) fn add<'a>(&mut self, step: u64, numbers: impl Iterator<Item = (&'a str, f64)>) -> Result<()> {
        let value = |(tag, value): (&str, f64)| Value { tag: tag.to_owned(), simple_value: Some(value as f32) };
        let summary = Some(Summary { values: numbers.map(value).collect() });
        self.write(&Event { wall_time: now(), step: step as i64, summary, ..Event::default() })
    }

    fn write(&mut self, event: &Event) -> Result<()> {
        self.file.write_all(&record(&event.encode_to_vec())).map_err(Error::io(&self.path))
    }
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64())
}

/// A message between its checksums.
fn record(message: &[u8]) -> Vec<u8> {
    let len = (message.len() as u64).to_le_bytes();
    [&len[..], &masked_checksum(&len), message, &masked_checksum(message)].concat()
}

/// CRC-32C, turned and shifted, so that checksums of data that hold checksums are none of the usual ones.
fn masked_checksum(bytes: &[u8]) -> [u8; 4] {
    crc32c::crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By `tests/golden/tensorboard_events.py`, with tensorboard 2.20.0.
    const THEIRS: &str = "1800000000000000a37f4b2209000000000000f03f1a0d627261696e2e4576656e743a3286bf577a0f000000000000006d53\
        2b0909000000000000f43f10033a020801314564f731000000000000009d8383e909000000000000f83f10032a240a0b0a04\
        6c6f7373150000803e0a150a0e746f6b656e5f61636375726163791500000000c3de5ffc";

    #[test]
    fn a_record_has_the_bytes_of_tensorboard() {
        let values = vec![
            Value { tag: "loss".into(), simple_value: Some(0.25) },
            Value { tag: "token_accuracy".into(), simple_value: Some(0.0) },
        ];
        let summary = Some(Summary { values });
        let events = [
            Event { wall_time: 1.0, file_version: Some(VERSION.into()), ..Event::default() },
            Event { wall_time: 1.25, step: 3, session_log: Some(SessionLog { status: START }), ..Event::default() },
            Event { wall_time: 1.5, step: 3, summary, ..Event::default() },
        ];
        let ours: Vec<u8> = events.iter().flat_map(|event| record(&event.encode_to_vec())).collect();
        let hex: String = ours.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, THEIRS);
    }
}
