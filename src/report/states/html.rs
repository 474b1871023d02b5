//! The interactive page: sentences and tokens in the plane.

use super::{Map, SentenceStates};
use crate::report::page::{Page, escape, json};
use serde::Serialize;

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
    colours: &'static [&'static str],
}

/// The page. `about` says in plain text what the vectors are; `tables` is HTML to stand at the end.
pub fn page(about: &str, states: &[SentenceStates], sentences: &Map, tokens: &Map, tables: &str) -> Page {
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
        colours: &super::scatter::COLOURS,
    };
    Page {
        title: "States".into(),
        body: include_str!("page.html").replace("{{about}}", &escape(about)).replace("{{tables}}", tables),
        style: include_str!("page.css").into(),
        script: include_str!("page.js").into(),
        data: json(&data),
        ..Page::default()
    }
}
