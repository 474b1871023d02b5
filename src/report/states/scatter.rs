//! Points in the plane as a picture. Knows places, colours and names, and nothing else.

use crate::report::svg::{Anchor, LINE, MUTED, Svg, TextStyle, fitted, text_width};

/// A point to draw.
#[derive(Clone, Debug)]
pub struct Dot {
    /// Its place.
    pub at: [f64; 2],
    /// Its group, an index into the names.
    pub group: usize,
    /// What is written beside it, where there is room.
    pub name: String,
    /// What is shown when it is pointed at.
    pub title: String,
}

/// Colours of groups, told apart by most people; after the last they come again with other shapes of text only.
pub const COLOURS: [&str; 12] = [
    "#0b62c4", "#d1580c", "#1d8348", "#b0255f", "#6c3fb5", "#8a6d00", "#0f8b8d", "#c0392b", "#5d6d7e", "#7b3f00",
    "#2e4fa3", "#4d7c0f",
];
const SIDE: f64 = 560.0;
const LEFT: f64 = 48.0;
const TOP: f64 = 64.0;

/// The picture: dots, their names where they do not touch, the groups' colours, and what the axes hold.
pub fn scatter(title: &str, dots: &[Dot], groups: &[String], explained: [f64; 2]) -> String {
    let mut svg = Svg::default();
    svg.text([16.0, 30.0], TextStyle::new(15.0).bold(), title);
    svg.frame([LEFT, TOP, SIDE, SIDE]);
    let axis = TextStyle::new(12.0).colour(MUTED).anchor(Anchor::Middle);
    let held = |i: usize| format!("component {}: {:.1} % of the variance", i + 1, 100.0 * explained[i]);
    svg.text([LEFT + SIDE / 2.0, TOP + SIDE + 24.0], axis, &held(0));
    svg.text([LEFT - 16.0, TOP + SIDE / 2.0], axis.rotated(-90.0), &held(1));
    let place = placer(dots);
    let mut taken: Vec<[f64; 4]> = Vec::new();
    for dot in dots {
        let [x, y] = place(dot.at);
        taken.push([x - 5.0, y - 5.0, x + 5.0, y + 5.0]);
    }
    for (i, dot) in dots.iter().enumerate() {
        let [x, y] = place(dot.at);
        let name = fitted(&dot.name, 10.0, 170.0);
        let width = text_width(&name, 10.0);
        let at_right = [x + 7.0, y - 6.0, x + 7.0 + width, y + 6.0];
        let at_left = [x - 7.0 - width, y - 6.0, x - 7.0, y + 6.0];
        let fits = |room: &[f64; 4]| {
            room[0] > LEFT
                && room[2] < LEFT + SIDE
                && taken.iter().enumerate().all(|(k, other)| k == i || !touch(room, other))
        };
        let style = TextStyle::new(10.0).colour(MUTED);
        if fits(&at_right) {
            svg.text([x + 7.0, y + 3.5], style, &name);
            taken.push(at_right);
        } else if fits(&at_left) {
            svg.text([x - 7.0, y + 3.5], style.anchor(Anchor::End), &name);
            taken.push(at_left);
        }
    }
    for dot in dots {
        let [x, y] = place(dot.at);
        svg.dot([x, y, 4.5], COLOURS[dot.group % COLOURS.len()], &dot.title);
    }
    let right = draw_legend(&mut svg, groups);
    svg.finish(right, TOP + SIDE.max(groups.len().min(26) as f64 * 20.0) + 44.0)
}

/// The groups' names with their colours; the right edge of the picture.
fn draw_legend(svg: &mut Svg, groups: &[String]) -> f64 {
    const LINES: usize = 26;
    let x = LEFT + SIDE + 24.0;
    svg.line([x - 10.0, TOP, x - 10.0, TOP + SIDE], LINE);
    let mut widest = 120.0_f64;
    for (i, group) in groups.iter().take(LINES).enumerate() {
        let y = TOP + 10.0 + i as f64 * 20.0;
        svg.dot([x, y, 4.5], COLOURS[i % COLOURS.len()], group);
        svg.text([x + 10.0, y + 4.0], TextStyle::new(12.0), &fitted(group, 12.0, 240.0));
        widest = widest.max(text_width(group, 12.0).min(240.0));
    }
    if groups.len() > LINES {
        let more = format!("and {} more", groups.len() - LINES);
        svg.text([x + 10.0, TOP + 14.0 + LINES as f64 * 20.0], TextStyle::new(12.0).colour(MUTED), &more);
    }
    x + 10.0 + widest + 20.0
}

/// From places to pixels, the same scale in both directions so that distances are true.
fn placer(dots: &[Dot]) -> impl Fn([f64; 2]) -> [f64; 2] {
    let range = |axis: usize| {
        let values = || dots.iter().map(|dot| dot.at[axis]);
        (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max))
    };
    let ((left, right), (low, high)) = (range(0), range(1));
    let span = (right - left).max(high - low).max(1e-9) * 1.12;
    let (x, y) = ((left + right) / 2.0, (low + high) / 2.0);
    move |at| [LEFT + SIDE * (0.5 + (at[0] - x) / span), TOP + SIDE * (0.5 - (at[1] - y) / span)]
}

fn touch(a: &[f64; 4], b: &[f64; 4]) -> bool {
    a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3]
}
