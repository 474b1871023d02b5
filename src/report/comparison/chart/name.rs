//! The names of lines, beside their ends.

use super::{Chart, NAME, NAME_PITCH, NAME_ROOM, Plane, Series};
use crate::report::comparison::marker::marker;
use crate::report::svg::{LINE, Svg, TextStyle, text_width};
use std::borrow::Cow;

/// The name of each line beside its end, moved apart where ends are close.
pub(super) fn names<'a>(chart: &'a Chart, plane: &Plane) -> Vec<Name<'a>> {
    let mut names: Vec<Name> = Vec::new();
    for (series, _) in chart.legend() {
        let last = series.points.iter().rev().find_map(|point| Some([plane.x(point.x)?, plane.y(point.y)?]));
        let Some(end) = last else { continue };
        names.push(Name { series, end, y: end[1] });
    }
    names.sort_by(|a, b| a.y.total_cmp(&b.y));
    let mut next = plane.top + 4.0;
    for name in &mut names {
        name.y = name.y.max(next);
        next = name.y + NAME_PITCH;
    }
    let mut most = plane.bottom();
    for name in names.iter_mut().rev() {
        name.y = name.y.min(most);
        most = name.y - NAME_PITCH;
    }
    names
}

/// A name at the end of its line.
pub(super) struct Name<'a> {
    /// The line.
    pub(super) series: &'a Series,
    /// The end of the line.
    end: [f64; 2],
    /// Where the name stands.
    y: f64,
}

impl Name<'_> {
    /// Its marker and its text, and a thin line where they are away from the end.
    pub(super) fn draw(&self, svg: &mut Svg, right: f64) {
        let [x, y] = self.end;
        if (self.y - y).abs() > 3.0 || right - x > 3.0 {
            svg.line([x + 4.0, y, right + 8.0, self.y], LINE);
        }
        svg.raw(&marker(self.series.place, [right + 14.0, self.y], ""));
        svg.text([right + 22.0, self.y + 4.3], TextStyle::new(NAME), &fitting(&self.series.name, NAME_ROOM));
    }
}

/// A name that fits into `room`; of a longer one, its end tells it apart.
pub(super) fn fitting(name: &str, room: f64) -> Cow<'_, str> {
    if text_width(name, 12.5) <= room {
        return name.into();
    }
    let fits = |i: &usize| text_width(&name[*i..], 12.5) + text_width("…", 12.5) <= room;
    let start = name.char_indices().map(|(i, _)| i).find(fits).unwrap_or(name.len());
    format!("…{}", &name[start..]).into()
}
