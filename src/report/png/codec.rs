//! Just enough of the PNG format: writing pixels, and reading the bitmap glyphs of emoji fonts. `Cargo.toml` says at tiny-skia why this is
//! not the crate png.

use flate2::Compression;
use flate2::Crc;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use std::io::{Read, Write};
use tiny_skia::{ColorU8, Pixmap};

const SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";
/// Glyphs are small; anything larger is no glyph.
const LARGEST_GLYPH: usize = 1024;

/// Opaque pixels as a PNG file, without alpha.
pub(super) fn encode(pixels: &Pixmap) -> Vec<u8> {
    let (width, height) = (pixels.width(), pixels.height());
    let row_len = 3 * width as usize;
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::new(5));
    let mut above = vec![0_u8; row_len];
    for row in pixels.pixels().chunks(width as usize) {
        let bytes: Vec<u8> = row.iter().flat_map(|p| [p.red(), p.green(), p.blue()]).collect();
        // Filter 2: the difference from the row above, nearly always zero in a picture of flat areas.
        let filtered: Vec<u8> = bytes.iter().zip(&above).map(|(byte, above)| byte.wrapping_sub(*above)).collect();
        encoder.write_all(&[2]).and_then(|()| encoder.write_all(&filtered)).expect("a vector takes every byte");
        above = bytes;
    }
    let data = encoder.finish().expect("a vector takes every byte");
    let mut header = [width.to_be_bytes(), height.to_be_bytes()].concat();
    header.extend([8, 2, 0, 0, 0]);
    let mut file = SIGNATURE.to_vec();
    for (kind, bytes) in [(b"IHDR", header), (b"IDAT", data), (b"IEND", Vec::new())] {
        let mut crc = Crc::new();
        crc.update(kind);
        crc.update(&bytes);
        file.extend((bytes.len() as u32).to_be_bytes());
        file.extend(kind);
        file.extend(&bytes);
        file.extend(crc.sum().to_be_bytes());
    }
    file
}

/// The chunks of a PNG file.
fn chunks(bytes: &[u8]) -> Option<Vec<(&[u8], &[u8])>> {
    let mut rest = bytes.strip_prefix(SIGNATURE)?;
    let mut found = Vec::new();
    while rest.len() >= 12 {
        let len = u32::from_be_bytes(rest[..4].try_into().ok()?) as usize;
        found.push((&rest[4..8], rest.get(8..8 + len)?));
        rest = rest.get(12 + len..)?;
    }
    Some(found)
}

/// The pixels of a glyph: a PNG of 8 bits, coloured or with a palette, not interlaced. Nothing if it is anything else.
pub(super) fn decode(bytes: &[u8]) -> Option<Pixmap> {
    let chunks = chunks(bytes)?;
    let chunk = |kind: &[u8]| chunks.iter().find(|(name, _)| *name == kind).map(|(_, bytes)| *bytes);
    let header = chunk(b"IHDR")?;
    let number = |at: usize| Some(u32::from_be_bytes(header.get(at..at + 4)?.try_into().ok()?) as usize);
    let (width, height) = (number(0)?, number(4)?);
    let channels = match (header.get(8..)?, width <= LARGEST_GLYPH && height <= LARGEST_GLYPH) {
        ([8, 6, 0, 0, 0], true) => 4,
        ([8, 2, 0, 0, 0], true) => 3,
        ([8, 3, 0, 0, 0], true) => 1,
        _ => return None,
    };
    let packed: Vec<u8> =
        chunks.iter().filter(|(kind, _)| *kind == b"IDAT").flat_map(|(_, bytes)| bytes.iter().copied()).collect();
    let mut raw = Vec::new();
    let stride = width * channels;
    ZlibDecoder::new(&packed[..]).take((height * (stride + 1)) as u64).read_to_end(&mut raw).ok()?;
    if raw.len() != height * (stride + 1) {
        return None;
    }
    let rows = unfilter(&raw, stride, channels)?;
    let mut pixels = Pixmap::new(width as u32, height as u32)?;
    let (palette, alpha) = (chunk(b"PLTE").unwrap_or_default(), chunk(b"tRNS").unwrap_or_default());
    for (pixel, value) in pixels.pixels_mut().iter_mut().zip(rows.chunks(channels)) {
        let colour = match *value {
            [red, green, blue, alpha] => ColorU8::from_rgba(red, green, blue, alpha),
            [red, green, blue] => ColorU8::from_rgba(red, green, blue, 255),
            [index] => {
                let index = index as usize;
                let colour = palette.get(3 * index..3 * index + 3)?;
                ColorU8::from_rgba(colour[0], colour[1], colour[2], alpha.get(index).copied().unwrap_or(255))
            }
            _ => return None,
        };
        *pixel = colour.premultiply();
    }
    Some(pixels)
}

/// Undoes the filter of each row (PNG specification, section 9).
fn unfilter(raw: &[u8], stride: usize, channels: usize) -> Option<Vec<u8>> {
    let mut rows: Vec<u8> = Vec::with_capacity(raw.len());
    for line in raw.chunks(stride + 1) {
        let start = rows.len();
        for (i, byte) in line[1..].iter().enumerate() {
            let left = if i >= channels { rows[start + i - channels] } else { 0 };
            let above = if start > 0 { rows[start + i - stride] } else { 0 };
            let corner = if start > 0 && i >= channels { rows[start + i - stride - channels] } else { 0 };
            let predicted = match line[0] {
                0 => 0,
                1 => left,
                2 => above,
                3 => ((u16::from(left) + u16::from(above)) / 2) as u8,
                4 => paeth(left, above, corner),
                _ => return None,
            };
            rows.push(byte.wrapping_add(predicted));
        }
    }
    Some(rows)
}

fn paeth(left: u8, above: u8, corner: u8) -> u8 {
    let (a, b, c) = (i16::from(left), i16::from(above), i16::from(corner));
    let estimate = a + b - c;
    let (da, db, dc) = ((estimate - a).abs(), (estimate - b).abs(), (estimate - c).abs());
    if da <= db && da <= dc {
        left
    } else if db <= dc {
        above
    } else {
        corner
    }
}
