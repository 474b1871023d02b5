//! Line charts: axes with units, intervals, markers that differ in shape and colour, values on hovering, a shaded region.
//! Knows numbers and labels, and nothing of what they mean.

mod name;

use super::marker::{COLOURS, marker};
use super::scale::{Division, Scale, short};
use crate::report::svg::{Anchor, LINE, MUTED, Svg, TextStyle, escape, number, text_width};
use name::{fitting, names};
use std::fmt::Write;

/// The ground of the shaded region.
pub const SHADE: &str = "#eceff3";

/// The width of a chart in pixels.
pub const WIDTH: f64 = 560.0;
/// The height of the plane; a longer legend makes the chart higher.
const PLANE: f64 = 227.0;
/// The base line of the first line of the legend.
const LEGEND: f64 = 44.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 18.0;
/// The size of the names of lines, and the least distance of their base lines.
const NAME: f64 = 12.5;
const NAME_PITCH: f64 = 15.0;
/// The most room that names at the ends of lines take.
const NAME_ROOM: f64 = 150.0;
const BOTTOM: f64 = 52.0;

/// An axis.
#[derive(Clone, Debug)]
pub struct Axis {
    /// What it measures, with its unit.
    pub label: String,
    /// How it is divided.
    pub division: Division,
    /// Its ends, where they are given.
    pub ends: Option<[f64; 2]>,
}

impl Axis {
    /// A linear axis from zero.
    pub fn linear(label: &str) -> Self {
        Self { label: label.into(), division: Division::Linear, ends: None }
    }

    /// A linear axis with given ends.
    pub fn between(label: &str, low: f64, high: f64) -> Self {
        Self { ends: Some([low, high]), ..Self::linear(label) }
    }

    /// A logarithmic axis.
    pub fn logarithmic(label: &str, division: Division) -> Self {
        Self { label: label.into(), division, ends: None }
    }
}

/// A point with its interval.
#[derive(Clone, Debug)]
pub struct Point {
    /// To the right.
    pub x: f64,
    /// Up.
    pub y: f64,
    /// The interval of `y`.
    pub interval: Option<[f64; 2]>,
    /// What hovering shows.
    pub tip: String,
}

/// A line; those of one name share a place in the legend.
#[derive(Clone, Debug)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// Decides colour and marker.
    pub place: usize,
    /// Left to right.
    pub points: Vec<Point>,
    /// Whether the points are marked; curves of many points are not.
    pub is_marked: bool,
}

/// A chart.
#[derive(Clone, Debug)]
pub struct Chart {
    /// Its name in files.
    pub id: String,
    /// What stands above it.
    pub title: String,
    /// One sentence for those who read the picture.
    pub caption: String,
    /// To the right.
    pub x: Axis,
    /// Up.
    pub y: Axis,
    /// The lines.
    pub series: Vec<Series>,
    /// From where on the ground is shaded, and what that means.
    pub shaded: Option<(f64, String)>,
}

struct Plane {
    x: Scale,
    y: Scale,
    top: f64,
    right: f64,
}

impl Plane {
    fn x(&self, value: f64) -> Option<f64> {
        Some(LEFT + self.x.place(value)? * (self.right - LEFT))
    }

    fn y(&self, value: f64) -> Option<f64> {
        Some(self.bottom() - self.y.place(value)? * PLANE)
    }

    fn bottom(&self) -> f64 {
        self.top + PLANE
    }
}

impl Chart {
    /// Whether there is anything to draw.
    pub fn is_empty(&self) -> bool {
        self.series.iter().all(|series| series.points.is_empty())
    }

    /// The chart as an SVG picture.
    pub fn svg(&self) -> String {
        self.draw().finish(WIDTH, self.height())
    }

    /// Its height in pixels.
    pub fn height(&self) -> f64 {
        self.top() + PLANE + BOTTOM
    }

    fn top(&self) -> f64 {
        if self.is_named_directly() {
            return LEGEND - 8.0;
        }
        self.legend().last().map_or(LEGEND, |(_, [_, y])| *y) + 17.0
    }

    /// Whether the names stand at the ends of the lines; a legend is for lines that are too many for that.
    fn is_named_directly(&self) -> bool {
        self.legend().len() as f64 * NAME_PITCH <= PLANE
    }

    /// Where the plane ends on the right.
    fn right(&self) -> f64 {
        if !self.is_named_directly() {
            return WIDTH - RIGHT;
        }
        let widest = self.series.iter().map(|series| text_width(&series.name, NAME)).fold(0.0, f64::max);
        WIDTH - widest.min(NAME_ROOM) - 30.0
    }

    /// The elements of the picture alone, to be put into a larger one.
    pub fn drawing(&self) -> String {
        self.draw().elements()
    }

    fn draw(&self) -> Svg {
        let mut svg = Svg::default();
        svg.text([8.0, 20.0], TextStyle::new(15.0).bold(), &self.title);
        if !self.is_named_directly() {
            self.draw_legend(&mut svg);
        }
        let points = || self.series.iter().flat_map(|series| &series.points);
        let ys = points().flat_map(|p| [Some(p.y), p.interval.map(|i| i[0]), p.interval.map(|i| i[1])]).flatten();
        let plane = Plane {
            x: Scale::new(self.x.division, points().map(|point| point.x), self.x.ends),
            y: Scale::new(self.y.division, ys, self.y.ends),
            top: self.top(),
            right: self.right(),
        };
        self.draw_ground(&mut svg, &plane);
        let names = if self.is_named_directly() { names(self, &plane) } else { Vec::new() };
        for series in &self.series {
            svg.raw(&format!(r#"<g class="series" data-series="{}">"#, series.place));
            draw_series(&mut svg, &plane, series);
            for name in names.iter().filter(|name| std::ptr::eq(name.series, series)) {
                name.draw(&mut svg, plane.right);
            }
            svg.raw("</g>");
        }
        svg
    }

    /// One series of each name with its place in the legend.
    fn legend(&self) -> Vec<(&Series, [f64; 2])> {
        let (mut x, mut y) = (10.0, LEGEND);
        let mut found: Vec<(&Series, [f64; 2])> = Vec::new();
        for series in &self.series {
            if found.iter().any(|(other, _)| other.name == series.name) {
                continue;
            }
            let width = text_width(&fitting(&series.name, WIDTH - 60.0), NAME) + 42.0;
            if x + width > WIDTH && x > 10.0 {
                (x, y) = (10.0, y + 18.0);
            }
            found.push((series, [x, y]));
            x += width;
        }
        found
    }

    /// Names with their markers.
    fn draw_legend(&self, svg: &mut Svg) {
        for (series, [x, y]) in self.legend() {
            let [left, middle] = [number(x), number(y - 4.0)];
            svg.raw(&format!(r#"<path d="M{left} {middle}h22" {}/>"#, stroke(series.place)));
            svg.raw(&marker(series.place, [x + 11.0, y - 4.0], ""));
            svg.text([x + 28.0, y], TextStyle::new(NAME), &fitting(&series.name, WIDTH - 60.0));
        }
    }

    fn draw_ground(&self, svg: &mut Svg, plane: &Plane) {
        let (right, bottom) = (plane.right, plane.bottom());
        let small = TextStyle::new(12.0).colour(MUTED);
        if let Some((from, what)) = &self.shaded
            && let Some(x) = plane.x(*from)
            && x < right - 1.0
        {
            svg.rect([x, plane.top, right - x, bottom - plane.top], SHADE);
            let fits = text_width(what, 11.0) < right - x - 8.0;
            let (place, anchor) = if fits { (x + 5.0, Anchor::Start) } else { (right - 4.0, Anchor::End) };
            svg.text([place, plane.top + 13.0], TextStyle::new(11.0).colour(MUTED).anchor(anchor), what);
        }
        for tick in plane.y.ticks() {
            let Some(y) = plane.y(tick) else { continue };
            svg.line([LEFT, y, right, y], LINE);
            svg.text([LEFT - 7.0, y + 4.0], small.anchor(Anchor::End), &short(tick));
        }
        for tick in plane.x.ticks() {
            let Some(x) = plane.x(tick) else { continue };
            svg.line([x, bottom, x, bottom + 5.0], MUTED);
            svg.text([x, bottom + 19.0], small.anchor(Anchor::Middle), &short(tick));
        }
        svg.line([LEFT, bottom, right, bottom], MUTED);
        let middle = (LEFT + right) / 2.0;
        svg.text([middle, bottom + BOTTOM - 12.0], TextStyle::new(12.5).anchor(Anchor::Middle), &self.x.label);
        let upright = TextStyle::new(12.5).anchor(Anchor::Middle).rotated(-90.0);
        svg.text([15.0, (plane.top + bottom) / 2.0], upright, &self.y.label);
    }
}

/// How the lines of a series look: where colours come round again, they are dashed.
fn stroke(place: usize) -> String {
    let dashes = if place < COLOURS.len() { "" } else { r#" stroke-dasharray="7 4""# };
    format!(r#"stroke="{}" stroke-width="2.2"{dashes}"#, COLOURS[place % COLOURS.len()])
}

fn draw_series(svg: &mut Svg, plane: &Plane, series: &Series) {
    let colour = COLOURS[series.place % COLOURS.len()];
    let placed: Vec<(f64, f64, &Point)> =
        series.points.iter().filter_map(|point| Some((plane.x(point.x)?, plane.y(point.y)?, point))).collect();
    // The band of the intervals, there and back.
    let ends: Vec<(f64, f64, f64)> = placed
        .iter()
        .filter_map(|(x, _, point)| {
            let [low, high] = point.interval?;
            Some((*x, plane.y(low)?, plane.y(high)?))
        })
        .collect();
    if ends.len() == placed.len() && ends.len() > 1 {
        let mut path = String::new();
        let there = ends.iter().map(|(x, _, high)| (x, high));
        let back = ends.iter().rev().map(|(x, low, _)| (x, low));
        for (i, (x, y)) in there.chain(back).enumerate() {
            let _ = write!(path, "{}{} {}", if i == 0 { "M" } else { "L" }, number(*x), number(*y));
        }
        svg.raw(&format!(r#"<path d="{path}z" fill="{colour}" fill-opacity="0.16"/>"#));
    }
    let mut path = String::new();
    for (i, (x, y, _)) in placed.iter().enumerate() {
        let _ = write!(path, "{}{} {}", if i == 0 { "M" } else { "L" }, number(*x), number(*y));
    }
    if placed.len() > 1 {
        svg.raw(&format!(r#"<path d="{path}" fill="none" {}/>"#, stroke(series.place)));
    }
    for (x, y, point) in &placed {
        if series.is_marked
            && let Some([low, high]) = point.interval
            && let (Some(low), Some(high)) = (plane.y(low), plane.y(high))
        {
            let [x, low, high] = [*x, low, high].map(number);
            svg.raw(&format!(r#"<path d="M{x} {low}V{high}" stroke="{colour}" stroke-width="1.2"/>"#));
        }
        if series.is_marked || placed.len() == 1 {
            svg.raw(&marker(series.place, [*x, *y], &point.tip));
        } else {
            let [x, y] = [*x, *y].map(number);
            let tip = escape(&point.tip);
            svg.raw(&format!(
                r#"<circle cx="{x}" cy="{y}" r="6" fill="{colour}" fill-opacity="0"><title>{tip}</title></circle>"#
            ));
        }
    }
}
