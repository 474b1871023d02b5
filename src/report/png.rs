//! Pictures as PNG: usvg lays out the text and turns everything into outlines, tiny-skia fills them.

mod codec;

use crate::error::{Error, Result};
use std::sync::Arc;
use tiny_skia::{FillRule, Paint, Path, Pixmap, PixmapPaint, Shader, Stroke, StrokeDash, Transform};
use usvg::{Group, ImageKind, Node, Options, Tree, fontdb};

/// The most pixels of a picture: 400 MB while it is drawn.
const MOST_PIXELS: f32 = 1e8;

/// Draws an SVG picture of this crate, `scale` pixels for each of its own.
///
/// Filled and stroked outlines, text and bitmap glyphs are drawn: all that [`Svg`](super::svg::Svg) makes, not all that SVG
/// can be. The embedded font writes Latin, Greek, Cyrillic, Hebrew and Arabic; the system's fonts are read only if there is
/// more.
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
    let (width, height) = ((tree.size().width() * scale).ceil(), (tree.size().height() * scale).ceil());
    if width * height > MOST_PIXELS {
        return Err(Error::message(format!(
            "the picture would have {width} x {height} pixels; choose one map with --layer and --head, or write .svg or .html"
        )));
    }
    let mut pixels = Pixmap::new(width as u32, height as u32).ok_or_else(|| failed(&"it is empty"))?;
    draw(tree.root(), Transform::from_scale(scale, scale), &mut pixels);
    Ok(codec::encode(&pixels))
}

/// `place` brings the group's own coordinates to pixels.
fn draw(group: &Group, place: Transform, pixels: &mut Pixmap) {
    let place = place.pre_concat(group.transform());
    for node in group.children() {
        match node {
            Node::Group(group) => draw(group, place, pixels),
            Node::Text(text) => draw(text.flattened(), place, pixels),
            Node::Path(path) => draw_path(path, place, pixels),
            // Coloured emoji are images in some fonts and drawings in others.
            Node::Image(image) => match image.kind() {
                ImageKind::PNG(bytes) => draw_glyph(bytes, image.size(), place, pixels),
                ImageKind::SVG(tree) => draw(tree.root(), place, pixels),
                _ => {}
            },
        }
    }
}

/// Draws a bitmap of the given size.
fn draw_glyph(bytes: &[u8], size: usvg::Size, place: Transform, pixels: &mut Pixmap) {
    let Some(glyph) = codec::decode(bytes) else { return };
    let (width, height) = (glyph.width() as f32, glyph.height() as f32);
    let place = place.pre_concat(Transform::from_scale(size.width() / width, size.height() / height));
    let paint = PixmapPaint { quality: tiny_skia::FilterQuality::Bicubic, ..PixmapPaint::default() };
    pixels.draw_pixmap(0, 0, glyph.as_ref(), &paint, place, None);
}

fn draw_path(path: &usvg::Path, place: Transform, pixels: &mut Pixmap) {
    let outline: &Path = path.data();
    if let Some(fill) = path.fill() {
        let rule = match fill.rule() {
            usvg::FillRule::NonZero => FillRule::Winding,
            usvg::FillRule::EvenOdd => FillRule::EvenOdd,
        };
        if let Some(paint) = paint(fill.paint(), fill.opacity()) {
            pixels.fill_path(outline, &paint, rule, place, None);
        }
    }
    if let Some(stroke) = path.stroke() {
        let dash = stroke.dasharray().and_then(|dashes| StrokeDash::new(dashes.to_vec(), stroke.dashoffset()));
        let style = Stroke { width: stroke.width().get(), dash, ..Stroke::default() };
        if let Some(paint) = paint(stroke.paint(), stroke.opacity()) {
            pixels.stroke_path(outline, &paint, &style, place, None);
        }
    }
}

/// A plain colour; gradients and patterns are not drawn.
fn paint(paint: &usvg::Paint, opacity: usvg::Opacity) -> Option<Paint<'static>> {
    let usvg::Paint::Color(colour) = paint else { return None };
    let shader =
        Shader::SolidColor(tiny_skia::Color::from_rgba8(colour.red, colour.green, colour.blue, opacity.to_u8()));
    Some(Paint { shader, anti_alias: true, ..Paint::default() })
}

/// Whether the embedded font has no picture of a character.
fn is_beyond_embedded(c: char) -> bool {
    !matches!(u32::from(c), 0..=0x6ff | 0x1e00..=0x20bf | 0x2100..=0x2bff | 0xfb00..=0xfb06 | 0xfffd)
}
