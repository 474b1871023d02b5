//! The marks of points.

use crate::report::svg::{escape, number};
use std::fmt::Write;

/// Colours that people with any colour vision tell apart (Okabe and Ito 2008), darkest first.
pub const COLOURS: [&str; 7] = ["#0072b2", "#d55e00", "#009e73", "#aa4499", "#e69f00", "#56b4e9", "#555555"];

/// A marker whose shape tells its series too, for those who see no colours.
pub(super) fn marker(place: usize, [x, y]: [f64; 2], tip: &str) -> String {
    let colour = COLOURS[place % COLOURS.len()];
    let title = if tip.is_empty() { String::new() } else { format!("<title>{}</title>", escape(tip)) };
    let path = |corners: &[[f64; 2]]| {
        let mut d = String::new();
        for (i, [dx, dy]) in corners.iter().enumerate() {
            let _ = write!(d, "{}{} {}", if i == 0 { "M" } else { "L" }, number(x + dx), number(y + dy));
        }
        format!(r#"<path class="point" d="{d}z" fill="{colour}">{title}</path>"#)
    };
    match place % 4 {
        0 => {
            let [x, y] = [x, y].map(number);
            format!(r#"<circle class="point" cx="{x}" cy="{y}" r="4.4" fill="{colour}">{title}</circle>"#)
        }
        1 => path(&[[-4.0, -4.0], [4.0, -4.0], [4.0, 4.0], [-4.0, 4.0]]),
        2 => path(&[[0.0, -5.4], [5.2, 4.0], [-5.2, 4.0]]),
        _ => path(&[[0.0, -5.6], [5.6, 0.0], [0.0, 5.6], [-5.6, 0.0]]),
    }
}

/// The marker of a series as a small picture of its own, for tables.
pub(super) fn key(place: usize) -> String {
    format!(r#"<svg class="key" viewBox="0 0 14 14" aria-hidden="true">{}</svg>"#, marker(place, [7.0, 7.0], ""))
}
