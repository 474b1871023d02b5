//! One picture of one sentence: a map with its labels, or all heads in a grid.

use crate::error::Result;
use crate::report::attention::select::{Choice, Selection};
use crate::report::attention::{AttentionMap, Part, SentenceMaps};
use crate::report::heat_map::{HeatMap, grid, heat_map};

/// The picture as SVG; unless a part is chosen, of the cross-attention, or of what there is where there is none.
pub(super) fn of(sentence: &SentenceMaps, selection: Selection) -> Result<String> {
    let parts = [Part::Cross, Part::Encoder, Part::Decoder].into_iter();
    let there = parts.into_iter().find(|part| sentence.maps.iter().any(|map| map.part == *part));
    let part = selection.part.or(there).unwrap_or(Part::Cross);
    let selection = Selection { part: Some(part), ..selection };
    let maps = selection.apply(sentence)?;
    let what = match part {
        Part::Cross => "What each target word looks at",
        Part::Encoder => "What each source word looks at",
        Part::Decoder => "What the decoder looks at in its own words",
    };
    if let [map] = &maps[..] {
        let average = match (selection.layer, selection.head) {
            (Choice::Average, Choice::Average) => ", mean of all layers and heads",
            (Choice::Average, _) => ", mean of all layers",
            (_, Choice::Average) => ", mean of all heads",
            _ => "",
        };
        let place = if map.layer.or(map.head).is_some() { format!(", {}", map.label()) } else { String::new() };
        return Ok(heat_map(&drawn(sentence, map, format!("{what}{place}{average}"))));
    }
    let mut rows: Vec<Vec<HeatMap>> = Vec::new();
    let mut layer = None;
    for map in &maps {
        if rows.is_empty() || layer != map.layer {
            rows.push(Vec::new());
            layer = map.layer;
        }
        rows.last_mut().expect("a row was pushed").push(drawn(sentence, map, map.label()));
    }
    Ok(grid(&format!("{what}: every head"), &rows))
}

fn drawn<'a>(sentence: &'a SentenceMaps, map: &'a AttentionMap, title: String) -> HeatMap<'a> {
    let (row_axis, column_axis) = match map.part {
        Part::Cross => ("target", "source"),
        Part::Encoder => ("source", "source"),
        Part::Decoder => ("target", "target so far"),
    };
    let (rows, columns) = (sentence.rows(map.part), sentence.columns(map.part));
    HeatMap { title, rows, columns, row_axis, column_axis, values: &map.weights }
}
