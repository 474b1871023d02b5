//! Matrices as colours, one large with labels or many small ones in a grid. Knows numbers and labels, and nothing else.

use super::svg::{Anchor, INK, MUTED, Svg, TextStyle, fitted, number, text_width};
use std::fmt::Write;

/// A matrix with labels.
#[derive(Clone, Debug)]
pub struct HeatMap<'a> {
    /// What stands above it.
    pub title: String,
    /// One label for each row.
    pub rows: Vec<&'a str>,
    /// One label for each column.
    pub columns: Vec<&'a str>,
    /// What the rows are.
    pub row_axis: &'a str,
    /// What the columns are.
    pub column_axis: &'a str,
    /// Row-major, from 0 up.
    pub values: &'a [f32],
    /// What the values are.
    pub unit: &'a str,
}

/// Colours from nothing to the most, in equal steps.
const SCALE: [[f64; 3]; 5] =
    [[255.0, 255.0, 255.0], [206.0, 224.0, 242.0], [126.0, 182.0, 221.0], [42.0, 114.0, 184.0], [8.0, 42.0, 96.0]];
/// Distinct colours in a picture.
const LEVELS: usize = 48;
/// Labels closer than this would touch.
const SMALLEST_PITCH: f64 = 11.0;
/// The longest label, in pixels.
const LONGEST_LABEL: f64 = 150.0;
const MARGIN: f64 = 16.0;

impl HeatMap<'_> {
    fn most(&self) -> f32 {
        self.values.iter().copied().fold(0.0, f32::max)
    }

    /// The side of a cell and the size of the letters for matrices of this size.
    fn cell(&self) -> f64 {
        let n = self.rows.len().max(self.columns.len()).max(1) as f64;
        (2400.0 / n).min(680.0 / n.min(40.0)).clamp(3.0, 36.0)
    }

    /// The matrix alone, its upper left corner at `(x, y)`.
    fn draw_cells(&self, svg: &mut Svg, [x, y]: [f64; 2], cell: f64, most: f32) {
        let mut levels = vec![String::new(); LEVELS + 1];
        let n_columns = self.columns.len();
        for (i, row) in self.values.chunks(n_columns.max(1)).enumerate() {
            let mut j = 0;
            // A matrix read from a file may be cut short.
            while j < row.len() {
                // Neighbours of one colour are one rectangle: pictures of long sentences stay small.
                let level = level(row[j], most);
                let start = j;
                while j < row.len() && self::level(row[j], most) == level {
                    j += 1;
                }
                if level > 0 {
                    let [left, top] = [x + start as f64 * cell, y + i as f64 * cell].map(number);
                    let [width, height] = [(j - start) as f64 * cell, cell].map(number);
                    let _ = write!(levels[level], "M{left} {top}h{width}v{height}h-{width}z");
                }
            }
        }
        for (level, path) in levels.iter().enumerate().filter(|(_, path)| !path.is_empty()) {
            let fill = colour(level as f64 / LEVELS as f64);
            svg.raw(&format!(r#"<path fill="{fill}" d="{path}"/>"#));
        }
        svg.frame([x, y, cell * n_columns as f64, cell * self.rows.len() as f64]);
    }

    /// The weights as numbers, where there is room.
    fn draw_values(&self, svg: &mut Svg, [x, y]: [f64; 2], cell: f64, most: f32) {
        if cell < 34.0 || self.columns.is_empty() {
            return;
        }
        let style = TextStyle::new(10.0).anchor(Anchor::Middle);
        for (k, value) in self.values.iter().enumerate().filter(|(_, value)| **value >= 0.005) {
            let (i, j) = (k / self.columns.len(), k % self.columns.len());
            let colour = ink_on(level(*value, most) as f64 / LEVELS as f64);
            let place = [x + (j as f64 + 0.5) * cell, y + (i as f64 + 0.5) * cell + 3.5];
            svg.text(place, style.colour(colour), format!("{value:.2}").trim_start_matches('0'));
        }
    }

    fn draw_row_labels(&self, svg: &mut Svg, [x, y]: [f64; 2], cell: f64) {
        let style = TextStyle::new(label_size(cell)).anchor(Anchor::End);
        for (i, label) in every(&self.rows, cell) {
            let place = [x - 5.0, y + (i as f64 + 0.5) * cell + style.size * 0.35];
            svg.text(place, style, &fitted(label, style.size, LONGEST_LABEL));
        }
    }

    fn draw_column_labels(&self, svg: &mut Svg, [x, y]: [f64; 2], cell: f64) {
        let size = label_size(cell);
        let rotation = column_rotation(cell);
        let style = TextStyle::new(size).rotated(rotation);
        // The foot of an upright letter stands right of the middle of its column.
        let shift = if rotation == -90.0 { size * 0.35 } else { 2.0 };
        for (j, label) in every(&self.columns, cell) {
            let place = [x + (j as f64 + 0.5) * cell + shift, y - 5.0];
            svg.text(place, style, &fitted(label, size, LONGEST_LABEL));
        }
    }

    /// The room for labels: left of the matrix, above it, and to the right where slanted labels lean out.
    fn label_room(&self, cell: f64) -> [f64; 3] {
        let size = label_size(cell);
        let widest = |labels: &[&str]| {
            labels.iter().map(|label| text_width(label, size).min(LONGEST_LABEL)).fold(0.0, f64::max) + 8.0
        };
        let slant = -column_rotation(cell).to_radians();
        let above = widest(&self.columns);
        [widest(&self.rows), above * slant.sin() + size, above * slant.cos()]
    }
}

/// One matrix with its labels, numbers where there is room, and the scale of its colours.
pub fn heat_map(map: &HeatMap) -> String {
    let (cell, most) = (map.cell(), map.most());
    let [left, above, lean] = map.label_room(cell);
    let (x, y) = (MARGIN + 18.0 + left, MARGIN + 46.0 + above);
    let (width, height) = (map.columns.len() as f64 * cell, map.rows.len() as f64 * cell);
    let right = (x + width + lean.max(90.0)).max(MARGIN + text_width(&map.title, 15.0) * 1.08);
    let mut svg = Svg::default();
    svg.text([MARGIN, MARGIN + 14.0], TextStyle::new(15.0).bold(), &map.title);
    let axis = TextStyle::new(12.0).colour(MUTED);
    svg.text([x, MARGIN + 36.0], axis, &format!("{} →", map.column_axis));
    svg.text([MARGIN + 10.0, y], axis.anchor(Anchor::End).rotated(-90.0), &format!("← {}", map.row_axis));
    map.draw_column_labels(&mut svg, [x, y], cell);
    map.draw_row_labels(&mut svg, [x, y], cell);
    map.draw_cells(&mut svg, [x, y], cell, most);
    map.draw_values(&mut svg, [x, y], cell, most);
    let bottom = (y + height).max(y + text_width(map.row_axis, 12.0) + 20.0);
    draw_scale(&mut svg, [x, bottom + 16.0], most, map.unit);
    svg.finish(right.max(x + 240.0) + MARGIN, bottom + 50.0)
}

/// Many matrices over the same tokens, row by row, in one scale of colours; tokens are written at the outer edges if there
/// are few.
pub fn grid(title: &str, rows: &[Vec<HeatMap>]) -> String {
    const LABELLED: usize = 32;
    let all = || rows.iter().flatten();
    let most = all().map(HeatMap::most).fold(0.0, f32::max);
    let n = all().map(|map| map.rows.len().max(map.columns.len())).max().unwrap_or(1).max(1);
    let is_labelled =
        n <= LABELLED && all().all(|map| map.rows == rows[0][0].rows && map.columns == rows[0][0].columns);
    let cell = (220.0 / n as f64).clamp(if is_labelled { SMALLEST_PITCH } else { 1.0 }, 24.0);
    let [left, above, lean] = if is_labelled { rows[0][0].label_room(cell) } else { [0.0; 3] };
    let width = all().map(|map| map.columns.len()).max().unwrap_or(0) as f64 * cell;
    let height = all().map(|map| map.rows.len()).max().unwrap_or(0) as f64 * cell;
    // Wide enough for the titles of narrow matrices.
    let pitch = all().map(|map| text_width(&map.title, 12.0)).fold(width, f64::max) + 18.0;
    let (x, y) = (MARGIN + left, MARGIN + 34.0);
    let mut svg = Svg::default();
    svg.text([MARGIN, MARGIN + 14.0], TextStyle::new(15.0).bold(), title);
    let mut top = y;
    for (i, row) in rows.iter().enumerate() {
        top += 20.0 + if i == 0 { above } else { 0.0 };
        for (j, map) in row.iter().enumerate() {
            let corner = [x + j as f64 * pitch, top];
            let name = [corner[0], if i == 0 { MARGIN + 44.0 } else { top - 6.0 }];
            svg.text(name, TextStyle::new(12.0).colour(MUTED), &map.title);
            if is_labelled && i == 0 {
                map.draw_column_labels(&mut svg, corner, cell);
            }
            if is_labelled && j == 0 {
                map.draw_row_labels(&mut svg, corner, cell);
            }
            map.draw_cells(&mut svg, corner, cell, most);
        }
        top += height + 10.0;
    }
    draw_scale(&mut svg, [x, top + 10.0], most, all().next().map_or("", |map| map.unit));
    let n_wide = rows.iter().map(Vec::len).max().unwrap_or(0) as f64;
    let right = (x + n_wide * pitch + lean).max(MARGIN + text_width(title, 15.0) * 1.08).max(x + 240.0);
    svg.finish(right + MARGIN, top + 44.0)
}

/// What the colours mean.
fn draw_scale(svg: &mut Svg, [x, y]: [f64; 2], most: f32, unit: &str) {
    const STEPS: usize = 24;
    for i in 0..STEPS {
        svg.rect([x + 30.0 + i as f64 * 5.0, y, 5.2, 10.0], &colour((i + 1) as f64 / STEPS as f64));
    }
    svg.frame([x + 30.0, y, STEPS as f64 * 5.0, 10.0]);
    let style = TextStyle::new(11.0).colour(MUTED);
    svg.text([x + 24.0, y + 9.0], style.anchor(Anchor::End), "0");
    svg.text([x + 36.0 + STEPS as f64 * 5.0, y + 9.0], style, &format!("{most:.2} ({unit})"));
}

fn label_size(cell: f64) -> f64 {
    (cell * 0.8).clamp(9.5, 13.0)
}

fn column_rotation(cell: f64) -> f64 {
    if cell >= 20.0 { -45.0 } else { -90.0 }
}

/// Every label, or every k-th where they would touch.
fn every<'a>(labels: &'a [&'a str], cell: f64) -> impl Iterator<Item = (usize, &'a str)> {
    let step = (SMALLEST_PITCH / cell - 1e-9).ceil().max(1.0) as usize;
    labels.iter().copied().enumerate().step_by(step)
}

fn level(value: f32, most: f32) -> usize {
    if most <= 0.0 { 0 } else { (f64::from(value / most) * LEVELS as f64).round() as usize }
}

/// Every colour of cells with the share of the most that it stands for: a page has its own colours for them.
pub(crate) fn cell_colours() -> impl Iterator<Item = (String, f64)> {
    (0..=LEVELS).map(|level| level as f64 / LEVELS as f64).map(|share| (colour(share), share))
}

/// Black or white, whichever is read more easily on the colour of a share (the contrast of WCAG 2).
fn ink_on(share: f64) -> &'static str {
    let part = |i: usize| {
        let value = f64::from(mixed(share)[i]) / 255.0;
        if value <= 0.03928 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    };
    let lightness = 0.2126 * part(0) + 0.7152 * part(1) + 0.0722 * part(2);
    // There the contrasts with white and with the ink are alike.
    if lightness > 0.19 { INK } else { "#ffffff" }
}

/// The colour of a share of the most.
fn colour(share: f64) -> String {
    let [red, green, blue] = mixed(share);
    format!("#{red:02x}{green:02x}{blue:02x}")
}

fn mixed(share: f64) -> [u8; 3] {
    let place = share.clamp(0.0, 1.0) * (SCALE.len() - 1) as f64;
    let from = (place as usize).min(SCALE.len() - 2);
    let part = place - from as f64;
    [0, 1, 2].map(|i| (SCALE[from][i] + part * (SCALE[from + 1][i] - SCALE[from][i])).round() as u8)
}
