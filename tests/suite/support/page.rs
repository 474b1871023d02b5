//! Pages of reports in a browser: opened from a file as a reader opens them, and looked over for what a reader stumbles on.

use super::browser::Browser;
use crate::reliability::{campaign, is_thorough};
use serde_json::{Value, json};
use std::ops::{Deref, DerefMut};
use tempfile::TempDir;

/// What a reader could stumble over, as a script that lists it.
const AUDIT: &str = include_str!("audit.js");

/// The widths of a desk, a tablet and a telephone.
const SIZES: [(u32, u32); 3] = [(1440, 900), (768, 1024), (390, 844)];

/// A page in a browser.
pub struct PageView {
    browser: Browser,
    url: String,
    dir: TempDir,
}

impl Deref for PageView {
    type Target = Browser;

    fn deref(&self) -> &Browser {
        &self.browser
    }
}

impl DerefMut for PageView {
    fn deref_mut(&mut self) -> &mut Browser {
        &mut self.browser
    }
}

impl PageView {
    /// The page in a window of 1280 by 720; none without Chromium.
    pub fn open(html: &str) -> Option<Self> {
        let mut browser = Browser::start()?;
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("page.html");
        std::fs::write(&path, html).unwrap();
        let url = format!("file://{}", path.display());
        browser.resize(1280, 720);
        browser.open(&url);
        let mut page = Self { browser, url, dir };
        page.settle();
        Some(page)
    }

    /// Puts another page in the place of this one.
    pub fn show(&mut self, html: &str) {
        std::fs::write(self.dir.path().join("page.html"), html).unwrap();
        self.go("");
    }

    /// Opens the same page with another state in its address.
    pub fn go(&mut self, state: &str) {
        let url = format!("{}#{state}", self.url);
        self.browser.open(&url);
        self.settle();
    }

    /// Waits until what was asked for is drawn.
    pub fn settle(&mut self) {
        self.value(
            "new Promise(done => setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(() => done(1))), 60))",
        );
    }

    /// Presses a key and waits for what it does.
    pub fn key(&mut self, key: &str) {
        self.press(key);
        self.settle();
    }

    /// What the address says of the page.
    pub fn state(&mut self) -> String {
        self.text("decodeURIComponent(location.hash)")
    }

    /// Whether an expression holds.
    pub fn holds(&mut self, expression: &str) -> bool {
        self.value(expression) == true
    }

    /// Looks the page over as it is.
    pub fn audit(&mut self, what: &str) {
        self.settle();
        self.audit_now(what);
    }

    fn audit_now(&mut self, what: &str) {
        assert_eq!(self.value(AUDIT), json!([]), "{what}");
        assert_eq!(self.browser.faults, Vec::<String>::new(), "{what}");
        assert_eq!(self.browser.requests, Vec::<String>::new(), "{what}");
    }

    /// The same for the page opened with another state in its address, which has settled then.
    fn audit_state(&mut self, state: &str, what: &str) {
        self.go(state);
        self.audit_now(what);
    }

    /// Looks each of these states of the page over in both schemes, at three widths, at twice the size and on a wall: each state in
    /// each scheme and at each width, and in a campaign in all combinations of them.
    pub fn audit_everywhere(&mut self, what: &str, states: &[&str]) {
        let is_chosen = |turn: usize| campaign() > 1 || turn.is_multiple_of(SIZES.len());
        for (i, scheme) in ["light", "dark"].into_iter().enumerate() {
            self.prefer(&[("prefers-color-scheme", scheme), ("prefers-reduced-motion", "reduce")]);
            for (j, (width, height)) in SIZES.into_iter().enumerate() {
                self.resize(width, height);
                for (_, state) in states.iter().enumerate().filter(|(k, _)| is_chosen(i + j + k)) {
                    self.audit_state(state, &format!("{what}#{state}, {scheme}, {width} wide"));
                }
            }
            // Twice the size: half as many pixels for the page.
            self.send(
                "Emulation.setDeviceMetricsOverride",
                json!({ "width": 640, "height": 360, "deviceScaleFactor": 2, "mobile": false }),
            );
            for (_, state) in states.iter().enumerate().filter(|(k, _)| is_thorough() || (i + k).is_multiple_of(2)) {
                self.audit_state(state, &format!("{what}#{state}, {scheme}, at 200 %"));
            }
            self.resize(1280, 720);
            for (_, state) in states.iter().enumerate().filter(|(k, _)| campaign() > 1 || (i + k).is_multiple_of(2)) {
                self.audit_state(&format!("{state}&wall=1"), &format!("{what}#{state}, {scheme}, on a wall"));
                let shot = format!("{what}-{scheme}-{}", states.iter().position(|other| other == state).unwrap());
                self.shot(&shot);
            }
        }
        self.prefer(&[]);
        self.go(states[0]);
    }

    /// The page printed from a dark system: what is painted and written is dark on white, and controls are left out.
    pub fn audit_print(&mut self, what: &str) {
        self.prefer(&[("prefers-color-scheme", "dark")]);
        self.settle();
        self.value("dispatchEvent(new Event('beforeprint'))");
        let ink = self.value("channels(theme('--ink'))");
        assert!(ink[0].as_f64().unwrap() < 60.0, "{what}: what is painted for paper has the ink {ink}");
        self.send(
            "Emulation.setEmulatedMedia",
            json!({ "media": "print", "features": [{ "name": "prefers-color-scheme", "value": "dark" }] }),
        );
        let shown = "[...document.querySelectorAll('.controls, .help')].filter(e => e.checkVisibility()).length";
        assert_eq!(self.value(shown), 0, "{what}: controls are printed");
        let ink = self.value("channels(getComputedStyle(document.body).color)");
        assert!(ink[0].as_f64().unwrap() < 60.0, "{what}: {ink}");
        let squeezed = "[...document.querySelectorAll('#canvas')].filter(c => c.clientWidth && \
                        Math.abs(c.clientWidth / c.clientHeight - c.width / c.height) > 0.03).length";
        assert_eq!(self.value(squeezed), 0, "{what}: a picture is squeezed");
        self.value("dispatchEvent(new Event('afterprint'))");
        self.set_medium("");
        self.prefer(&[]);
    }

    /// What can be copied: numbers, shapes that are well-formed, and a picture with something on it. A click tells what it did.
    pub fn audit_copies(&mut self, what: &str, root: &str, says: &str) {
        let svg = format!("pictureOf(document.querySelector('{root}'))");
        let kinds = self.value(&format!(
            "(svg => {{ const xml = new DOMParser().parseFromString(svg, 'image/svg+xml'); \
             return [xml.querySelector('parsererror')?.textContent ?? '', xml.querySelectorAll('text, path, image').length]; }})({svg})"
        ));
        assert_eq!(kinds[0], "", "{what}: SVG that is not well-formed");
        assert!(kinds[1].as_u64() > Some(3), "{what}: {kinds}");
        let text = self.text(&svg);
        assert!(text.contains(says), "{what}: {says} is not in the picture");
        let bytes = self.value(&format!("pngOf({svg}).then(blob => blob.size)"));
        assert!(bytes.as_u64() > Some(2000), "{what}: a PNG of {bytes} bytes");
        for kind in ["TSV", "SVG", "PNG"] {
            self.value("document.getElementById('told').textContent = ''");
            self.point_and_click(&format!("[data-copy={kind}]"));
            self.wait(&format!("/^(copied as {kind}|saved as .*)/.test(document.getElementById('told').textContent)"));
        }
    }

    /// Every element that Tab reaches, in its order, as a selector matches them.
    pub fn reached_by_tab(&mut self, n: usize) -> Vec<Value> {
        self.value("document.activeElement.blur()");
        let mut found = Vec::new();
        for _ in 0..n {
            self.press("Tab");
            found.push(self.value(
                "(e => [e.tagName, e.id, e.className?.baseVal ?? e.className, e.textContent.slice(0, 20)].join('|'))(document.activeElement)",
            ));
        }
        found
    }
}
