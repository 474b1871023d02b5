//! What the models looked at.

use super::rows::{AlignedSentence, Map};
use crate::report::comparison::data::Comparison;
use crate::report::comparison::html::parts::themed;
use crate::report::heat_map::{HeatMap, cell_colours, heat_map};
use maud::{Markup, PreEscaped, html};

/// The maps of a few sentences, and whether each answer was right.
pub(super) fn alignments(comparison: &Comparison) -> Option<Markup> {
    let maps = html! {
        @for sentence in &comparison.alignments {
            h3 { "A sentence " (sentence.what) }
            p.sentence { (sentence.source) }
            div.maps {
                @for map in &sentence.maps {
                    figure.scroll { (on_page(map)) figcaption { (verdict(map, sentence)) } }
                }
            }
        }
    };
    (!comparison.alignments.is_empty()).then_some(maps)
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
fn on_page(map: &Map) -> Markup {
    let PreEscaped(mut text) = themed(&map_svg(map), &map.contestant);
    // Cells of no weight are not drawn: white is the ink of numbers on dark cells.
    for (colour, share) in cell_colours().filter(|(_, share)| *share > 0.0) {
        let strength = format!("\"rgba(var(--weight), calc({share:.3} * var(--darkest)))\"");
        text = text.replace(&format!("\"{colour}\""), &strength);
    }
    PreEscaped(text.replace("\"#ffffff\"", "\"var(--ink)\""))
}
