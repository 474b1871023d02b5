//! The columns that text takes in a terminal, where some characters take two and some none.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The columns that `text` takes.
pub fn width(text: &str) -> usize {
    UnicodeWidthStr::width(text)
}

/// `text` without what would move a terminal's cursor or change its colours.
pub fn without_controls(text: &str) -> String {
    text.replace(|c: char| c.is_control(), "\u{fffd}")
}

/// The same, with an ellipsis where it is wider than `room`.
pub fn cut(text: &str, room: usize) -> String {
    let text = without_controls(text);
    if width(&text) <= room {
        return text;
    }
    let mut kept = String::new();
    let mut used = 1;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used > room {
            break;
        }
        kept.push(c);
    }
    kept + "…"
}
