//! The interactive page: sentences and tokens in the plane.

use super::nearest::nearest;
use super::{Grouping, Map, SentenceStates};
use crate::report::page::{Page, VIEW_SCRIPT, VIEW_STYLE, json};
use maud::{Markup, PreEscaped, html};
use serde::Serialize;

/// Others that a point is linked with when it is pointed at.
const N_NEAREST: usize = 3;

#[derive(Serialize)]
struct PageSentence<'a> {
    number: usize,
    label: Option<&'a str>,
    text: &'a str,
    length: usize,
}

#[derive(Serialize)]
struct PageData<'a> {
    sentences: Vec<PageSentence<'a>>,
    maps: [(&'static str, &'a Map); 2],
    /// For each map and point, the nearest others and their cosines in all dimensions.
    nearest: [Vec<Vec<(usize, f64)>>; 2],
    grouping: Option<Grouping>,
}

/// The page. `about` says in plain text what the vectors are; `grouping` is what came out; `tables` stands at the end.
pub fn page(
    about: &str,
    states: &[SentenceStates],
    [sentences, tokens]: [&Map; 2],
    grouping: Option<Grouping>,
    tables: &Markup,
) -> Page {
    let of = |state: &'_ SentenceStates| state.tokens.len();
    let listed = states.iter().map(|state| PageSentence {
        number: state.sentence.number,
        label: state.sentence.label.as_deref(),
        text: &state.sentence.text,
        length: of(state),
    });
    let data = PageData {
        sentences: listed.collect(),
        maps: [("sentences", sentences), ("tokens", tokens)],
        nearest: [
            nearest(&states.iter().map(|state| &state.vector[..]).collect::<Vec<_>>(), N_NEAREST),
            nearest(
                &states.iter().flat_map(|state| state.states.iter().map(|v| &v[..])).collect::<Vec<_>>(),
                N_NEAREST,
            ),
        ],
        grouping,
    };
    Page {
        title: "States".into(),
        body: html! { (PreEscaped(include_str!("page.html"))) (tables) p.about.muted { (about) } },
        style: [VIEW_STYLE, include_str!("page.css")].concat(),
        script: [VIEW_SCRIPT, include_str!("page_data.js"), include_str!("page_draw.js"), include_str!("page.js")]
            .concat(),
        data: json(&data),
        ..Page::default()
    }
}
