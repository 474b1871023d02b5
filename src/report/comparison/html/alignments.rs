//! What the models looked at.

use super::themed;
use crate::report::comparison::data::Comparison;
use crate::report::comparison::measured::{AlignedSentence, Map};
use crate::report::heat_map::{HeatMap, cell_colours, heat_map};
use crate::report::page::escape;
use std::fmt::Write;

/// The maps of a few sentences, and whether each answer was right.
pub(super) fn alignments(comparison: &Comparison) -> String {
    let mut text = "<p class=\"muted\">The mean of all cross-attention while each model wrote its own answer. A model without attention \
             has no map.</p>\n"
        .to_string();
    for sentence in &comparison.alignments {
        let _ = write!(
            text,
            "<h3>A sentence {}</h3>\n<p class=\"sentence\">{}</p>\n<div class=\"maps\">\n",
            escape(&sentence.what),
            escape(&sentence.source)
        );
        for map in &sentence.maps {
            let verdict = verdict(map, sentence);
            let (drawing, verdict) = (on_page(map), escape(&verdict));
            let _ = writeln!(text, "<figure class=\"scroll\">{drawing}<figcaption>{verdict}</figcaption></figure>");
        }
        text += "</div>\n";
    }
    text
}

fn verdict(map: &Map, sentence: &AlignedSentence) -> String {
    let is_right = std::iter::once(&sentence.reference).chain(&sentence.other_references).any(|text| *text == map.text);
    let verdict = if is_right { "right" } else { "not the reference" };
    format!("{}: {} tokens written, {verdict}", map.contestant, map.rows.len().saturating_sub(1))
}

/// A map as a picture.
pub fn map_svg(map: &Map) -> String {
    heat_map(&HeatMap {
        title: map.contestant.clone(),
        rows: map.rows.iter().map(String::as_str).collect(),
        columns: map.columns.iter().map(String::as_str).collect(),
        row_axis: "written",
        column_axis: "source",
        values: &map.weights,
        unit: "weight",
    })
}

/// A map in the colours of the page, light or dark. The darkest cell leaves the numbers on it legible.
fn on_page(map: &Map) -> String {
    let mut text = themed(&map_svg(map), &map.contestant);
    // Cells of no weight are not drawn: white is the ink of numbers on dark cells.
    for (colour, share) in cell_colours().filter(|(_, share)| *share > 0.0) {
        let strength = format!("\"rgba(var(--weight), calc({share:.3} * var(--darkest)))\"");
        text = text.replace(&format!("\"{colour}\""), &strength);
    }
    text.replace("\"#ffffff\"", "\"var(--ink)\"")
}
