//! A drawing surface: rectangles, lines, circles and text as SVG, and how much room text takes.
//!
//! Pictures are white whatever the reader's theme, since they go into papers and other people's pages.

use std::fmt::Write;

/// Families for pictures and pages: the embedded one first, then what systems have for other scripts.
const FONTS: &str = "DejaVu Sans, Noto Sans, Noto Sans CJK SC, Noto Sans CJK JP, Noto Color Emoji, sans-serif";
/// Text.
pub const INK: &str = "#1b1f24";
/// Text beside the point.
pub const MUTED: &str = "#5b6470";
/// Frames.
pub const LINE: &str = "#c3cad2";

/// Which point of a text its position means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// Its left end.
    Start,
    /// Its middle.
    Middle,
    /// Its right end.
    End,
}

/// How a text is drawn.
#[derive(Clone, Copy, Debug)]
pub struct TextStyle {
    /// Height of the letters in pixels.
    pub size: f64,
    /// Which point the position means.
    pub anchor: Anchor,
    /// Degrees, clockwise.
    pub rotation: f64,
    /// Colour.
    pub colour: &'static str,
    /// Whether it is bold.
    pub bold: bool,
}

impl TextStyle {
    /// Plain text of this size, its left end at the position.
    pub fn new(size: f64) -> Self {
        Self { size, anchor: Anchor::Start, rotation: 0.0, colour: INK, bold: false }
    }

    /// The same with another anchor.
    pub fn anchor(self, anchor: Anchor) -> Self {
        Self { anchor, ..self }
    }

    /// The same, turned.
    pub fn rotated(self, rotation: f64) -> Self {
        Self { rotation, ..self }
    }

    /// The same in another colour.
    pub fn colour(self, colour: &'static str) -> Self {
        Self { colour, ..self }
    }

    /// The same in bold.
    pub fn bold(self) -> Self {
        Self { bold: true, ..self }
    }
}

/// A picture that is being drawn.
#[derive(Clone, Debug, Default)]
pub struct Svg {
    body: String,
}

impl Svg {
    /// Anything that the methods below do not draw.
    pub fn raw(&mut self, element: &str) {
        self.body.push_str(element);
        self.body.push('\n');
    }

    /// A filled rectangle.
    pub fn rect(&mut self, [x, y, width, height]: [f64; 4], fill: &str) {
        let [x, y, w, h] = [x, y, width, height].map(number);
        let _ = writeln!(self.body, r#"<rect x="{x}" y="{y}" width="{w}" height="{h}" fill="{fill}"/>"#);
    }

    /// The outline of a rectangle.
    pub fn frame(&mut self, [x, y, width, height]: [f64; 4]) {
        let [x, y, w, h] = [x, y, width, height].map(number);
        let _ = writeln!(self.body, r#"<rect x="{x}" y="{y}" width="{w}" height="{h}" fill="none" stroke="{LINE}"/>"#);
    }

    /// A straight line.
    pub fn line(&mut self, [x1, y1, x2, y2]: [f64; 4], colour: &str) {
        let [x1, y1, x2, y2] = [x1, y1, x2, y2].map(number);
        let _ = writeln!(self.body, r#"<path d="M{x1} {y1}L{x2} {y2}" stroke="{colour}"/>"#);
    }

    /// A dot that shows `title` where the viewer can hover.
    pub fn dot(&mut self, [x, y, radius]: [f64; 3], fill: &str, title: &str) {
        let [x, y, r] = [x, y, radius].map(number);
        let title = escape(title);
        let _ = writeln!(
            self.body,
            r##"<circle cx="{x}" cy="{y}" r="{r}" fill="{fill}" stroke="#ffffff"><title>{title}</title></circle>"##
        );
    }

    /// A text; `x` and `y` are the place of its anchor on the base line.
    pub fn text(&mut self, [x, y]: [f64; 2], style: TextStyle, text: &str) {
        let [x, y, size] = [x, y, style.size].map(number);
        let place = if style.rotation == 0.0 {
            format!(r#"x="{x}" y="{y}""#)
        } else {
            format!(r#"transform="translate({x} {y}) rotate({})""#, number(style.rotation))
        };
        let anchor = match style.anchor {
            Anchor::Start => "",
            Anchor::Middle => r#" text-anchor="middle""#,
            Anchor::End => r#" text-anchor="end""#,
        };
        let bold = if style.bold { r#" font-weight="bold""# } else { "" };
        let (colour, text) = (style.colour, escape(text));
        let _ = writeln!(
            self.body,
            r#"<text {place} font-size="{size}" fill="{colour}"{anchor}{bold} xml:space="preserve">{text}</text>"#
        );
    }

    /// What was drawn, without a document around it.
    pub fn elements(self) -> String {
        self.body
    }

    /// The whole document, `width` by `height` pixels.
    pub fn finish(self, width: f64, height: f64) -> String {
        let [w, h] = [width.ceil(), height.ceil()].map(number);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\" \
             font-family=\"{FONTS}\">\n<rect width=\"{w}\" height=\"{h}\" fill=\"#ffffff\"/>\n{}</svg>\n",
            self.body
        )
    }
}

/// Text that can stand inside an element or a quoted attribute.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            // XML has no way to write these.
            '\u{0}'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => {
                escaped.push(char::REPLACEMENT_CHARACTER)
            }
            c => escaped.push(c),
        }
    }
    escaped
}

/// A coordinate without needless digits.
pub fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".into() } else { text.into() }
}

/// About how wide `text` is in pixels, rather more than less: the advances of DejaVu Sans, which is among the widest fonts.
pub fn text_width(text: &str, size: f64) -> f64 {
    text.chars().map(advance).sum::<f64>() * size
}

/// The advance of a character in parts of the font size.
fn advance(c: char) -> f64 {
    match c {
        'i' | 'j' | 'l' | '\'' | '|' => 0.34,
        'I' | 'f' | 't' | 'r' | 's' | ' ' | '.' | ',' | ':' | ';' | '!' | '(' | ')' | '[' | ']' | '-' | '/' => 0.53,
        'm' | 'w' | 'M' | 'W' | '@' | '%' | '<' | '>' | '—' | '…' | '+' | '=' => 1.0,
        'A'..='Z' => 0.79,
        c if is_combining(c) => 0.0,
        c if is_wide(c) => 1.3,
        c if c < '\u{250}' => 0.65,
        _ => 0.8,
    }
}

/// Whether a character is drawn over the one before it, or not at all.
fn is_combining(c: char) -> bool {
    matches!(u32::from(c), 0x300..=0x36f | 0x591..=0x5c7 | 0x610..=0x61a | 0x64b..=0x65f | 0x200b..=0x200f | 0xfe00..=0xfe0f)
}

/// Whether a character is as wide as it is high: East Asian scripts and emoji.
fn is_wide(c: char) -> bool {
    matches!(u32::from(c),
        0x1100..=0x115f | 0x2600..=0x27bf | 0x2e80..=0xa4cf | 0xac00..=0xd7a3 | 0xf900..=0xfaff | 0xfe30..=0xfe6f
        | 0xff00..=0xff60 | 0x1f000..=0x3ffff)
}

/// `text`, cut with an ellipsis where it is wider than `width` pixels.
pub fn fitted(text: &str, size: f64, width: f64) -> String {
    if text_width(text, size) <= width {
        return text.to_string();
    }
    let mut cut = String::new();
    for c in text.chars() {
        if text_width(&cut, size) + (advance(c) + 1.0) * size > width {
            break;
        }
        cut.push(c);
    }
    cut + "…"
}
