//! Files compressed with gzip or zstd, detected by their first bytes.

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::io::{self, BufRead, BufReader, Read};

const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// What frames begin with that hold no text, apart from their first four bits; `pzstd` writes the sizes of the others there.
const SKIPPED: [u8; 3] = [0x2a, 0x4d, 0x18];

/// Bytes that a frame of zstd is unpacked by at once, so that a block that unpacks to much takes no more memory than one that does
/// not. (What is looked back at, its window, is 100 MiB at most: the crate refuses more.)
const AT_ONCE: usize = 1 << 17;

/// What `raw` unpacks to, and what it is packed by.
pub(super) fn unpacked<'a>(mut raw: impl BufRead + 'a) -> io::Result<(Box<dyn BufRead + 'a>, &'static str)> {
    let start = raw.fill_buf()?;
    let is_skipped = start.first().is_some_and(|byte| byte >> 4 == 5) && start[1..].starts_with(&SKIPPED);
    let (is_gzip, is_zstd) = (start.starts_with(&GZIP), start.starts_with(&ZSTD) || is_skipped);
    Ok(match (is_gzip, is_zstd) {
        (true, _) => (Box::new(BufReader::new(MultiGzDecoder::new(raw))), "gzip"),
        (_, true) => (Box::new(BufReader::with_capacity(AT_ONCE, Frames::new(raw))), "zstd"),
        _ => (Box::new(raw), "plain"),
    })
}

/// A file of zstd: frames one after the other, as `zstd` and `pzstd` write them.
struct Frames<R> {
    raw: R,
    decoder: FrameDecoder,
    is_open: bool,
}

impl<R: BufRead> Frames<R> {
    fn new(raw: R) -> Self {
        Self { raw, decoder: FrameDecoder::new(), is_open: false }
    }

    /// Compares the text of a frame that has been read with its checksum, where it has one.
    fn check_sum(&self) -> io::Result<()> {
        match self.decoder.get_checksum_from_data() {
            Some(expected) if self.decoder.get_calculated_checksum() != Some(expected) => {
                Err(io::Error::new(io::ErrorKind::InvalidData, "its text is not what was packed: the checksum differs"))
            }
            _ => Ok(()),
        }
    }

    /// Begins the next frame; false at the end of the file.
    fn begin(&mut self) -> io::Result<bool> {
        while !self.raw.fill_buf()?.is_empty() {
            match self.decoder.init(&mut self.raw) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame { length, .. })) => {
                    let length = u64::from(length);
                    if io::copy(&mut self.raw.by_ref().take(length), &mut io::sink())? < length {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(fault) => return Err(damaged(fault)),
            }
        }
        Ok(false)
    }
}

fn damaged(fault: FrameDecoderError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, fault.to_string())
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.is_open && self.decoder.can_collect() > 0 {
                return self.decoder.read(buffer);
            }
            if self.is_open && !self.decoder.is_finished() {
                let much = BlockDecodingStrategy::UptoBytes(AT_ONCE);
                self.decoder.decode_blocks(&mut self.raw, much).map_err(damaged)?;
                continue;
            }
            if self.is_open {
                self.check_sum()?;
            }
            self.is_open = self.begin()?;
            if !self.is_open {
                return Ok(0);
            }
        }
    }
}
