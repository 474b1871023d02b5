//! One picture of one sentence: a map with its labels, or all heads in a grid.

use crate::error::Result;
use crate::report::attention::select::{Choice, Selection};
use crate::report::attention::{AttentionMap, Part, SentenceMaps};
use crate::report::heat_map::{HeatMap, grid, heat_map};
use std::collections::BTreeSet;

/// The picture as SVG; unless a part is chosen, of the cross-attention, or of what there is where there is none.
pub(super) fn of(sentence: &SentenceMaps, selection: Selection) -> Result<String> {
    let there = Part::ALL.into_iter().find(|part| sentence.maps.iter().any(|map| map.part == *part));
    let part = selection.part.or(there).unwrap_or(Part::Cross);
    let selection = Selection { part: Some(part), ..selection };
    let maps = selection.apply(sentence)?;
    let what = match part {
        Part::Cross => "What each target word looks at",
        Part::Encoder if sentence.target.is_empty() => "What each step looks at",
        Part::Encoder => "What each source word looks at",
        Part::Decoder if sentence.is_text() => "What each token of the text looks at",
        Part::Decoder => "What the decoder looks at in its own words",
        Part::Memory => "What the state keeps of each token",
        Part::EncoderMemory => "What the encoder's state keeps of each token",
        Part::EncoderMemoryBackward => "What the encoder's state keeps of each token, read from the end",
    };
    let average = average(sentence, part, selection);
    let rows = row_labels(sentence, part);
    let drawn = |map, title| drawn(sentence, map, &rows, title);
    if let [map] = &maps[..] {
        let place = if map.layer.or(map.head).is_some() { format!(", {}", map.label()) } else { String::new() };
        return Ok(heat_map(&drawn(map, format!("{what}{place}{average}"))));
    }
    let mut lines: Vec<Vec<HeatMap>> = Vec::new();
    let mut layer = None;
    for map in &maps {
        if lines.is_empty() || layer != map.layer {
            lines.push(Vec::new());
            layer = map.layer;
        }
        lines.last_mut().expect("a line was pushed").push(drawn(map, map.label()));
    }
    let every = if maps.iter().all(|map| map.head.is_none()) { "layer" } else { "head" };
    Ok(grid(&format!("{what}: every {every}{average}"), &lines))
}

/// What the maps are means of, where there is more than one of that.
fn average(sentence: &SentenceMaps, part: Part, selection: Selection) -> &'static str {
    let several = |number: fn(&AttentionMap) -> Option<usize>| {
        let numbers: BTreeSet<_> = sentence.maps.iter().filter(|map| map.part == part).filter_map(number).collect();
        numbers.len() > 1
    };
    let of_layers = selection.layer == Choice::Average && several(|map| map.layer);
    let of_heads = selection.head == Choice::Average && several(|map| map.head);
    match (of_layers, of_heads) {
        (true, true) => ", mean of all layers and heads",
        (true, false) => ", mean of all layers",
        (false, true) => ", mean of all heads",
        (false, false) => "",
    }
}

/// What stands beside the rows: in the attention of a text the token that was read, and the one that it predicts.
fn row_labels(sentence: &SentenceMaps, part: Part) -> Vec<String> {
    let rows = sentence.rows(part).into_iter();
    if sentence.is_text() && !part.is_memory() {
        return rows.zip(&sentence.target).map(|(read, predicted)| format!("{read} → {predicted}")).collect();
    }
    rows.map(str::to_owned).collect()
}

fn drawn<'a>(sentence: &'a SentenceMaps, map: &'a AttentionMap, rows: &'a [String], title: String) -> HeatMap<'a> {
    let (row_axis, column_axis) = match map.part {
        Part::Cross => ("target", "source"),
        Part::Encoder => ("source", "source"),
        Part::Decoder if sentence.is_text() => ("token → next token", "text so far"),
        Part::Decoder => ("target", "target so far"),
        Part::Memory | Part::EncoderMemory | Part::EncoderMemoryBackward => ("state after", "what is left of"),
    };
    let unit = if map.part.is_memory() { "share" } else { "weight" };
    let rows = rows.iter().map(String::as_str).collect();
    HeatMap { title, rows, columns: sentence.columns(map.part), row_axis, column_axis, values: &map.weights, unit }
}
