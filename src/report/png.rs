//! Pictures as PNG.

use crate::error::{Error, Result};
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb};
use std::sync::Arc;

/// The most pixels of a picture: 400 MB while it is drawn.
const MOST_PIXELS: f32 = 1e8;

/// Draws an SVG picture, `scale` pixels for each of its own.
///
/// The embedded font writes Latin, Greek, Cyrillic, Hebrew and Arabic; the system's fonts are read only if there is more.
///
/// # Errors
/// If the picture is too large.
pub fn png(svg: &str, scale: f32) -> Result<Vec<u8>> {
    let mut fonts = fontdb::Database::new();
    fonts.load_font_data(dejavu::sans::regular().to_vec());
    fonts.load_font_data(dejavu::sans::bold().to_vec());
    fonts.set_sans_serif_family("DejaVu Sans");
    if svg.chars().any(is_beyond_embedded) {
        fonts.load_system_fonts();
    }
    let options = Options { fontdb: Arc::new(fonts), font_family: "DejaVu Sans".into(), ..Options::default() };
    let failed = |error: &dyn std::fmt::Display| Error::message(format!("the picture cannot be drawn: {error}"));
    let tree = Tree::from_str(svg, &options).map_err(|error| failed(&error))?;
    let size = tree.size();
    let (width, height) = ((size.width() * scale).ceil(), (size.height() * scale).ceil());
    if width * height > MOST_PIXELS {
        return Err(Error::message(format!(
            "the picture would have {width} x {height} pixels; choose one map with --layer and --head, or write .svg or .html"
        )));
    }
    let mut pixels = Pixmap::new(width as u32, height as u32).ok_or_else(|| failed(&"it is empty"))?;
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixels.as_mut());
    pixels.encode_png().map_err(|error| failed(&error))
}

/// Whether the embedded font has no picture of a character.
fn is_beyond_embedded(c: char) -> bool {
    !matches!(u32::from(c), 0..=0x6ff | 0x1e00..=0x20bf | 0x2100..=0x2bff | 0xfb00..=0xfb06 | 0xfffd)
}
