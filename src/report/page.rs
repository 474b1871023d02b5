//! The shell of a self-contained HTML page: no network, light and dark, any width, printable.
//!
//! A report brings its own markup, style, script and data; the shell brings the document around them, a small stylesheet
//! (buttons, tables, panels, colours that follow the reader's theme) and a few functions for scripts. In scripts `data` is
//! the page's data and `el(tag, attributes, ...children)` makes an element.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use sha2::{Digest, Sha256};

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
    /// The content of `<main>`, as HTML; text in it is escaped with [`escape`].
    pub body: String,
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
        let title = escape(&self.title);
        let heading = if self.heading.is_empty() { title.clone() } else { escape(&self.heading) };
        let data = if self.data.is_empty() { "null" } else { &self.data };
        let script = format!("\n\"use strict\";\n{}\n{}", include_str!("page/shell.js"), self.script);
        let policy = policy(&script, self.is_connected);
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
             <link rel=\"icon\" href=\"data:,\">\n\
             <style>\n{}\n{}</style>\n</head>\n<body>\n<header><h1>{heading}</h1></header>\n<main>\n{}\n</main>\n\
             <script type=\"application/json\" id=\"data\">{}</script>\n<script>{script}</script>\n\
             </body>\n</html>\n",
            include_str!("page/shell.css"),
            self.style,
            self.body,
            data,
        )
    }
}

/// Text that can stand in HTML, inside an element or a quoted attribute.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Plain data as the JSON of [`Page::data`].
pub fn json(data: &impl Serialize) -> String {
    // `<` stands only inside strings, where the escaped form means the same and cannot end the script element.
    serde_json::to_string(data).expect("the data of a page are plain").replace('<', "\\u003c")
}
