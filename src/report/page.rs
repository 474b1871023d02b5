//! The shell of a self-contained HTML page: no network, light and dark, any width, printable.
//!
//! A report brings its own markup, style, script and data; the shell brings the document around them, a small stylesheet
//! (buttons, tables, panels, colours that follow the reader's theme) and a few functions for scripts. In scripts `data` is
//! the page's data and `el(tag, attributes, ...children)` makes an element.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, html};
use serde::Serialize;
use sha2::{Digest, Sha256};

pub use maud::{Markup, PreEscaped};

/// Marks of tokens: what they mean, and how a token looks without them. It goes before a page's own script.
pub const MARKS_SCRIPT: &str = include_str!("page/marks.js");

/// What the pages of reports share beyond the shell: shortcuts, the wall, the address, hints, marks of tokens, vectors as cells,
/// copying. It goes before a page's own script.
pub const VIEW_SCRIPT: &str = concat!(
    include_str!("page/marks.js"),
    include_str!("page/view.js"),
    include_str!("page/vector.js"),
    include_str!("page/pen.js"),
    include_str!("page/copy.js"),
);

/// How that looks. It goes before a page's own style.
pub const VIEW_STYLE: &str = include_str!("page/view.css");

/// The parts of a page.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The title, as plain text.
    pub title: String,
    /// The heading, as plain text; the title if it is empty.
    pub heading: String,
    /// The content of `<main>`.
    pub body: Markup,
    /// CSS after the shell's own.
    pub style: String,
    /// JavaScript that runs when the page is loaded.
    pub script: String,
    /// What the script finds in `data`, as JSON ([`json`]); nothing if empty.
    pub data: String,
    /// Whether the page sends requests to its server. Others need no network.
    pub is_connected: bool,
}

/// What keeps a page from loading anything, as everything is in the file, and from running any script but its own.
fn policy(script: &str, is_connected: bool) -> String {
    let hash = STANDARD.encode(Sha256::digest(script.as_bytes()));
    let server = if is_connected { "; connect-src 'self'; form-action 'self'" } else { "" };
    format!("default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{hash}'; img-src data:{server}")
}

impl Page {
    /// The whole document.
    pub fn render(&self) -> String {
        let heading = if self.heading.is_empty() { &self.title } else { &self.heading };
        let data = if self.data.is_empty() { "null" } else { &self.data };
        // Byte for byte what the policy has the hash of.
        let script = format!("\n\"use strict\";\n{}\n{}", include_str!("page/shell.js"), self.script);
        let page = html! {
            (DOCTYPE) "\n"
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta http-equiv="Content-Security-Policy" content=(policy(&script, self.is_connected));
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (self.title) }
                    link rel="icon" href="data:,";
                    style { "\n" (PreEscaped(include_str!("page/shell.css"))) "\n" (PreEscaped(&self.style)) }
                }
                "\n"
                body {
                    header { h1 { (heading) } }
                    "\n"
                    main { "\n" (self.body) "\n" }
                    "\n"
                    script type="application/json" id="data" { (PreEscaped(data)) }
                    "\n"
                    script { (PreEscaped(&script)) }
                }
            }
            "\n"
        };
        page.into_string()
    }
}

/// Plain data as the JSON of [`Page::data`].
pub fn json(data: &impl Serialize) -> String {
    // `<` stands only inside strings, where the escaped form means the same and cannot end the script element.
    serde_json::to_string(data).expect("the data of a page are plain").replace('<', "\\u003c")
}
