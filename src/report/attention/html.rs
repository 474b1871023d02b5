//! The interactive page: every sentence or text, layer and head, as a matrix, as lines and side by side.
//!
//! Weights are packed so that long sentences load at once: whole numbers of 16 bits, or of 8 bits on a square-root scale where
//! there are many, compressed and written in base64. The page unpacks a map when it is looked at.

use super::measure::{HeadSummary, Measures, coverage};
use super::memory::MemorySummary;
use super::{AttentionMap, Part, SentenceMaps};
use crate::report::page::{Page, VIEW_SCRIPT, VIEW_STYLE, json};
use base64::Engine;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use maud::{Markup, PreEscaped, html};
use rayon::prelude::*;
use serde::Serialize;
use std::io::Write;

/// More weights than this on a page are packed in 8 bits.
const MOST_EXACT: usize = 2_000_000;

/// How weights are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Packing {
    /// `round(65535 w)`, little-endian: at most 0.00001 off.
    Exact,
    /// `round(255 sqrt(w))`: off by at most 0.004, and by less for small weights.
    Small,
}

impl Packing {
    /// The way that suits this many weights.
    pub fn for_weights(n: usize) -> Self {
        if n <= MOST_EXACT { Self::Exact } else { Self::Small }
    }

    fn pack(self, weights: &[f32]) -> Vec<u8> {
        let bounded = weights.iter().map(|weight| weight.clamp(0.0, 1.0));
        match self {
            Self::Exact => bounded.flat_map(|weight| ((weight * 65535.0).round() as u16).to_le_bytes()).collect(),
            Self::Small => bounded.map(|weight| (weight.sqrt() * 255.0).round() as u8).collect(),
        }
    }
}

#[derive(Serialize)]
struct PageMap {
    part: Part,
    layer: Option<usize>,
    head: Option<usize>,
    rows: usize,
    columns: usize,
    measures: Measures,
    looks_at: String,
    /// Deflated and in base64.
    weights: String,
}

#[derive(Serialize)]
struct PageSentence<'a> {
    number: usize,
    source_text: &'a str,
    target_text: &'a str,
    source: &'a [String],
    target: &'a [String],
    input: Vec<&'a str>,
    probabilities: &'a [f32],
    coverage: Option<Vec<f32>>,
    maps: Vec<PageMap>,
    /// The mean of each part, so that the first picture of a long sentence does not wait for every head to be unpacked.
    means: Vec<PageMap>,
}

#[derive(Serialize)]
struct PageData<'a> {
    packing: Packing,
    heads: &'a [HeadSummary],
    sentences: Vec<PageSentence<'a>>,
}

/// The page of these sentences. `about` says in plain text where the maps come from; `tables` stands at the end.
pub fn page(title: &str, about: &str, sentences: &[SentenceMaps], heads: &[HeadSummary], tables: &Markup) -> Page {
    let n_weights = sentences.iter().flat_map(|sentence| &sentence.maps).map(|map| map.weights.len()).sum();
    let packing = Packing::for_weights(n_weights);
    let data = PageData { packing, heads, sentences: sentences.iter().map(|s| of_sentence(s, packing)).collect() };
    let precision = match packing {
        Packing::Exact => "Weights on this page are exact to 0.00001.",
        Packing::Small => {
            "There are many weights on this page, so they are rounded: those near 1 by up to 0.004, small ones by less. \
             The CSV and safetensors files have them in full."
        }
    };
    Page {
        title: title.to_string(),
        body: html! { (PreEscaped(include_str!("page.html"))) (tables) p.about.muted { (about) " " (precision) } },
        style: [VIEW_STYLE, include_str!("page.css")].concat(),
        script: [
            VIEW_SCRIPT,
            include_str!("page_data.js"),
            include_str!("page_paint.js"),
            include_str!("page_draw.js"),
            include_str!("page_heads.js"),
            include_str!("page.js"),
        ]
        .concat(),
        data: json(&data),
        ..Page::default()
    }
}

fn of_sentence(sentence: &SentenceMaps, packing: Packing) -> PageSentence<'_> {
    let of_map = |map: &AttentionMap| of_map(map, sentence.has_end(), packing);
    PageSentence {
        number: sentence.number,
        source_text: &sentence.source_text,
        target_text: &sentence.target_text,
        source: &sentence.source,
        target: &sentence.target,
        input: sentence.columns(Part::Decoder),
        probabilities: &sentence.probabilities,
        coverage: sentence.average(Part::Cross).map(|map| coverage(&map)),
        maps: sentence.maps.par_iter().map(of_map).collect(),
        means: Part::ALL.iter().filter_map(|part| sentence.average(*part)).map(|map| of_map(&map)).collect(),
    }
}

fn of_map(map: &AttentionMap, has_end: bool, packing: Packing) -> PageMap {
    let (measures, looks_at) = if map.part.is_memory() {
        (Measures::default(), format!("keeps {:.1} tokens", MemorySummary::of(map).tokens))
    } else {
        let measures = Measures::of(map);
        (measures, measures.looks_at(map.part, has_end).to_owned())
    };
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::new(4));
    encoder.write_all(&packing.pack(&map.weights)).expect("a vector takes every byte");
    let bytes = encoder.finish().expect("a vector takes every byte");
    PageMap {
        part: map.part,
        layer: map.layer,
        head: map.head,
        rows: map.n_rows,
        columns: map.n_columns,
        looks_at,
        measures,
        weights: base64::engine::general_purpose::STANDARD.encode(bytes),
    }
}
