//! Colours, widths, numbers and tables of a terminal page.

use super::Look;
pub(super) use crate::report::columns::{cut, width};
use anstyle::{AnsiColor, Style};

/// What a piece of text is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Tone {
    /// Text and numbers.
    Plain,
    /// A heading.
    Heading,
    /// A formula.
    Formula,
    /// A remark.
    Muted,
    /// A token.
    Token,
    /// What the model chose.
    Choice,
    /// Something to look at twice.
    Notice,
    /// A weight between 0 and 1.
    Weight(f32),
}

impl Tone {
    fn style(self) -> Style {
        let color = |color: AnsiColor| Style::new().fg_color(Some(color.into()));
        match self {
            Self::Plain => Style::new(),
            Self::Heading => Style::new().bold(),
            Self::Formula => color(AnsiColor::Magenta),
            Self::Muted => Style::new().dimmed(),
            Self::Token => color(AnsiColor::Cyan),
            Self::Choice => color(AnsiColor::Green).bold(),
            Self::Notice => color(AnsiColor::Yellow),
            Self::Weight(weight) if weight >= 0.5 => color(AnsiColor::Blue).bold(),
            Self::Weight(weight) if weight >= 0.05 => color(AnsiColor::Blue),
            Self::Weight(_) => Style::new().dimmed(),
        }
    }
}

/// A piece of text in its tone.
#[derive(Clone, Debug)]
pub(super) struct Piece(pub String, pub Tone);

/// Plain text.
pub(super) fn plain(text: impl Into<String>) -> Piece {
    Piece(text.into(), Tone::Plain)
}

/// A remark.
pub(super) fn muted(text: impl Into<String>) -> Piece {
    Piece(text.into(), Tone::Muted)
}

/// A token, cut to a width at which tables stay readable.
pub(super) fn token(text: &str) -> Piece {
    Piece(cut(text, 18), Tone::Token)
}

/// As many numbers as fit into `room` columns.
pub(super) fn numbers(values: &[f32], room: usize) -> String {
    let mut text = String::new();
    for (i, value) in values.iter().enumerate() {
        // No minus before what rounds to zero.
        let value = if value.abs() < 0.005 { 0.0 } else { *value };
        let number = format!("{value:>6.2}");
        let rest = if i + 1 < values.len() { 2 } else { 0 };
        if width(&text) + 1 + number.len() + rest > room.max(9) {
            return text + " …";
        }
        if i > 0 {
            text.push(' ');
        }
        text += &number;
    }
    text
}

/// A bar of `share` of `room` columns, in eighths.
pub(super) fn bar(share: f32, room: usize) -> String {
    let eighths = (share.clamp(0.0, 1.0) * 8.0 * room as f32).round() as usize;
    let rest = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
    format!("{}{rest}", "█".repeat(eighths / 8))
}

/// A bar for `value` beside its number of `digits` decimals, as long as `room` for the `largest`; none for what rounds to zero.
pub(super) fn bar_beside(value: f32, digits: usize, largest: f32, room: usize) -> String {
    let is_zero = format!("{:.digits$}", value.abs()).trim_matches(['0', '.']).is_empty();
    if is_zero { String::new() } else { bar(value.abs() / largest, room) }
}

/// A number with its sign; what rounds to zero has none.
pub(super) fn signed(value: f32, digits: usize) -> String {
    let text = format!("{value:+.digits$}");
    if text.trim_matches(['+', '-', '0', '.']).is_empty() { text.replace(['+', '-'], "") } else { text }
}

/// A probability as people say it.
pub(super) fn percent(probability: f32) -> String {
    let percent = 100.0 * probability;
    match percent {
        p if p >= 99.95 => "100 %".to_owned(),
        p if p >= 9.95 => format!("{p:.0} %"),
        p if p >= 0.1 => format!("{p:.1} %"),
        _ => "< 0.1 %".to_owned(),
    }
}

/// A page that is being written.
pub(super) struct Sheet<'a> {
    pub look: &'a Look,
    pub text: String,
}

impl Sheet<'_> {
    fn paint(&self, text: &str, tone: Tone) -> String {
        if !self.look.color || tone == Tone::Plain || text.is_empty() {
            return text.to_owned();
        }
        let style = tone.style();
        format!("{}{text}{}", style.render(), style.render_reset())
    }

    /// A line of pieces, cut at the width of the page.
    pub fn line(&mut self, pieces: &[Piece]) {
        let (mut line, mut room) = (String::new(), self.look.width);
        for (i, Piece(text, tone)) in pieces.iter().enumerate() {
            if room == 0 {
                break;
            }
            let text = if i + 1 == pieces.len() { text.trim_end() } else { text };
            let text = cut(text, room);
            room -= width(&text);
            line += &self.paint(&text, *tone);
        }
        self.text += line.trim_end();
        self.text.push('\n');
    }

    /// An empty line.
    pub fn space(&mut self) {
        self.text.push('\n');
    }

    /// Text broken at blanks; lines after the first are indented like the first.
    pub fn paragraph(&mut self, indent: usize, pieces: &[Piece]) {
        let room = self.look.width.max(40) - indent;
        let words = pieces.iter().flat_map(|piece| piece.0.split_inclusive(' ').map(|word| (word, piece.1)));
        let mut line = vec![plain(" ".repeat(indent))];
        let mut used = 0;
        for (word, tone) in words {
            if used > 0 && used + width(word.trim_end()) > room {
                self.line(&line);
                line.truncate(1);
                used = 0;
            }
            match line.last_mut() {
                Some(piece) if piece.1 == tone => piece.0 += word,
                _ => line.push(Piece(word.to_owned(), tone)),
            }
            used += width(word);
        }
        self.line(&line);
    }

    /// Rows of cells in columns; `columns` has `<` or `>` for each, the side on which its text stands. Cells that are wider
    /// than what is left of the line are cut.
    pub fn table(&mut self, columns: &str, rows: &[Vec<Piece>]) {
        let sides: Vec<char> = columns.chars().collect();
        let widest = |i: usize| rows.iter().filter_map(|row| row.get(i)).map(|cell| width(&cell.0)).max().unwrap_or(0);
        let widths: Vec<usize> = (0..sides.len()).map(widest).collect();
        for row in rows {
            let mut line = String::from("  ");
            let mut used = 2;
            for (i, cell) in row.iter().enumerate() {
                let gap = if i == 0 { 0 } else { 2 };
                let room = self.look.width.saturating_sub(used + gap);
                if room < 2 {
                    break;
                }
                let text = cut(&cell.0, room.max(2));
                let fill = widths[i].min(room).saturating_sub(width(&text));
                let (before, after) = if sides[i] == '>' { (fill, 0) } else { (0, fill) };
                line += &format!("{:gap$}{:before$}{}{:after$}", "", "", self.paint(&text, cell.1), "");
                used += gap + fill + width(&text);
            }
            self.text += line.trim_end();
            self.text.push('\n');
        }
    }
}
