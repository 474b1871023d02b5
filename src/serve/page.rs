//! The page at `/`: a sentence, its translation, and the translation after an intervention.

use crate::report::page::{MARKS_SCRIPT, Page};
use maud::PreEscaped;

/// One script of several files, each of which uses only those above it and the marks of tokens.
const SCRIPT: &str = concat!(
    include_str!("page/api.js"),
    include_str!("page/state.js"),
    include_str!("page/tokens.js"),
    include_str!("page/maps.js"),
    include_str!("page/draw.js"),
    include_str!("page/choices.js"),
    include_str!("page/column_draw.js"),
    include_str!("page/column.js"),
    include_str!("page/page.js"),
    include_str!("page/keyboard.js"),
);

/// The page. It requests all of its content from the server.
pub(super) fn page() -> String {
    Page {
        title: "Lookback".to_owned(),
        body: PreEscaped(include_str!("page/page.html").to_owned()),
        style: include_str!("page/page.css").to_owned(),
        script: [MARKS_SCRIPT, SCRIPT].concat(),
        is_connected: true,
        ..Page::default()
    }
    .render()
}
