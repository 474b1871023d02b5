//! A headless Chromium that tests drive over its DevTools protocol, through two named pipes: no crate and no port is needed.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// What the browser may be called.
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// How long one answer of the browser may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Browsers that a test has done with: the next one takes one of them, since starting takes a second. They end with the process of the
/// tests, whose end of their pipes is closed then.
static IDLE: Mutex<Vec<Process>> = Mutex::new(Vec::new());

/// A browser without a tab.
struct Process {
    commands: File,
    messages: Receiver<Value>,
    n_sent: u64,
}

impl Process {
    /// Without Chromium, nothing, which is said; in CI that is a failure.
    fn start() -> Option<Self> {
        let is_there = |name: &&&str| {
            Command::new(name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
        };
        let Some(name) = NAMES.iter().find(is_there) else {
            assert!(std::env::var_os("CI").is_none(), "CI needs the package chromium");
            println!("skipped: there is no Chromium on this machine");
            return None;
        };
        let dir = TempDir::new().unwrap().keep();
        let pipe = |name: &str| dir.join(name).to_str().unwrap().to_string();
        assert!(Command::new("mkfifo").args([pipe("in"), pipe("out")]).status().unwrap().success());
        let options =
            "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --remote-debugging-pipe";
        // What it leaves behind goes with the folder, whatever it is that ends it.
        let line = format!(
            "{name} {options} --user-data-dir=\"$1/data\" about:blank 3<\"$1/in\" 4>\"$1/out\"; cd / && rm -rf \"$1\""
        );
        let mut command = Command::new("sh");
        command.args(["-c", &line, "sh"]).arg(&dir).env("TMPDIR", &dir);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // Each of these waits until the other side opens its end, in the order in which the shell does.
        let commands = File::options().write(true).open(pipe("in")).unwrap();
        let answers = File::open(pipe("out")).unwrap();
        Some(Self { commands, messages: listen(child, answers), n_sent: 0 })
    }
}

/// One tab of a browser, with cookies and storage of its own, that is closed with this value.
pub struct Browser {
    /// Until it is given back.
    process: Option<Process>,
    n_opened: u64,
    context: Value,
    session: Option<String>,
    /// What went wrong on the page: exceptions, and errors on the console.
    pub faults: Vec<String>,
    /// What the page asked for, beside itself.
    pub requests: Vec<String>,
}

impl Browser {
    /// One empty tab; none without Chromium.
    pub fn start() -> Option<Self> {
        let idle = IDLE.lock().unwrap().pop();
        let process = idle.or_else(Process::start)?;
        let mut browser = Self {
            process: Some(process),
            n_opened: 0,
            context: Value::Null,
            session: None,
            faults: Vec::new(),
            requests: Vec::new(),
        };
        browser.context = browser.send("Target.createBrowserContext", json!({}))["browserContextId"].clone();
        let place = json!({ "url": "about:blank", "browserContextId": browser.context });
        let tab = browser.send("Target.createTarget", place)["targetId"].clone();
        let session = browser.send("Target.attachToTarget", json!({ "targetId": tab, "flatten": true }));
        browser.session = Some(session["sessionId"].as_str().unwrap().to_string());
        for domain in ["Page.enable", "Runtime.enable", "Log.enable", "Network.enable"] {
            browser.send(domain, json!({}));
        }
        Some(browser)
    }

    /// Sends a command and waits for its answer.
    pub fn send(&mut self, method: &str, parameters: Value) -> Value {
        let process = self.process();
        process.n_sent += 1;
        let id = process.n_sent;
        let mut command = json!({ "id": id, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            command["sessionId"] = json!(session);
        }
        self.process().commands.write_all(format!("{command}\0").as_bytes()).unwrap();
        loop {
            let answer = self.process().messages.recv_timeout(PATIENCE);
            let message = answer.unwrap_or_else(|_| panic!("{method} was not answered"));
            // What an earlier tab still had to say is not of this one.
            if message["sessionId"].as_str() == self.session.as_deref() {
                self.note(&message);
            }
            if message["id"] == id {
                assert!(message["error"].is_null(), "{method}: {message}");
                return message["result"].clone();
            }
        }
    }

    fn process(&mut self) -> &mut Process {
        self.process.as_mut().expect("it is given back at the end")
    }

    fn note(&mut self, message: &Value) {
        let parameters = &message["params"];
        match message["method"].as_str() {
            Some("Runtime.exceptionThrown") => self.faults.push(parameters["exceptionDetails"].to_string()),
            Some("Runtime.consoleAPICalled") if parameters["type"] == "error" => {
                self.faults.push(parameters.to_string())
            }
            Some("Network.requestWillBeSent") => {
                let url = parameters["request"]["url"].as_str().unwrap_or_default();
                let is_own = ["file:", "data:", "blob:", "about:"].iter().any(|scheme| url.starts_with(scheme));
                if !is_own {
                    self.requests.push(url.to_string());
                }
            }
            // A status that is no success is told here, too; what the page makes of it is tested by itself.
            Some("Log.entryAdded")
                if parameters["entry"]["level"] == "error" && parameters["entry"]["source"] != "network" =>
            {
                self.faults.push(parameters["entry"]["text"].to_string());
            }
            _ => {}
        }
    }

    /// Opens an address anew, also one that differs from the last behind its `#` alone.
    pub fn open(&mut self, url: &str) {
        if !url.starts_with("file:") {
            self.send("Page.navigate", json!({ "url": "about:blank" }));
            self.send("Page.navigate", json!({ "url": url }));
            self.wait("document.readyState === 'complete' && location.href !== 'about:blank'");
            return;
        }
        // A file has no use for what is asked of it, which makes another address of it without another process.
        self.n_opened += 1;
        let (path, state) = url.split_once('#').unwrap_or((url, ""));
        let query = format!("?{}", self.n_opened);
        self.send("Page.navigate", json!({ "url": format!("{path}{query}#{state}") }));
        self.wait(&format!("document.readyState === 'complete' && location.search === '{query}'"));
    }

    /// The value of an expression; a promise is waited for.
    pub fn value(&mut self, expression: &str) -> Value {
        let parameters =
            json!({ "expression": expression, "awaitPromise": true, "returnByValue": true, "userGesture": true });
        let result = self.send("Runtime.evaluate", parameters);
        assert!(result["exceptionDetails"].is_null(), "{expression}: {}", result["exceptionDetails"]);
        result["result"]["value"].clone()
    }

    /// The value of an expression that is a text.
    pub fn text(&mut self, expression: &str) -> String {
        let value = self.value(expression);
        value.as_str().unwrap_or_else(|| panic!("{expression} is {value}")).to_string()
    }

    /// Waits until a condition holds.
    pub fn wait(&mut self, condition: &str) {
        let start = Instant::now();
        while start.elapsed() < PATIENCE / 2 {
            if self.value(condition) == true {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let body = self.value("document.body.innerText");
        panic!("{condition} did not come true; the page says {body}");
    }

    /// Clicks the first element that a selector finds.
    pub fn click(&mut self, selector: &str) {
        let found =
            self.value(&format!("(e => e ? (e.click(), true) : false)(document.querySelector({}))", json!(selector)));
        assert_eq!(found, true, "there is no {selector}");
    }

    /// Presses a key, as a keyboard does.
    pub fn press(&mut self, key: &str) {
        for kind in ["keyDown", "keyUp"] {
            if key == "Enter" || key == " " || key == "Tab" {
                let (code, text) = match key {
                    "Enter" => (13, "\r"),
                    " " => (32, " "),
                    _ => (9, ""),
                };
                let text = if kind == "keyDown" { text } else { "" };
                let event = json!({ "type": kind, "key": key, "text": text, "windowsVirtualKeyCode": code });
                self.send("Input.dispatchKeyEvent", event);
                continue;
            }
            let text = if kind == "keyDown" && key.chars().count() == 1 { key } else { "" };
            self.send("Input.dispatchKeyEvent", json!({ "type": kind, "key": key, "text": text }));
        }
    }

    /// Clicks the middle of the first element that a selector finds, as a pointer does: it takes the focus.
    pub fn point_and_click(&mut self, selector: &str) {
        let [x, y] = self.middle(selector);
        for kind in ["mousePressed", "mouseReleased"] {
            let event = json!({ "type": kind, "x": x, "y": y, "button": "left", "clickCount": 1 });
            self.send("Input.dispatchMouseEvent", event);
        }
    }

    /// Moves the pointer to a place of the window.
    pub fn point_at(&mut self, [x, y]: [f64; 2]) {
        self.send("Input.dispatchMouseEvent", json!({ "type": "mouseMoved", "x": x, "y": y }));
    }

    /// The middle of the first element that a selector finds, which is scrolled into sight.
    pub fn middle(&mut self, selector: &str) -> [f64; 2] {
        let place = format!(
            "(e => {{ e.scrollIntoView({{ block: 'nearest' }}); const b = e.getBoundingClientRect(); \
             return [b.x + b.width / 2, b.y + b.height / 2]; }})(document.querySelector({}))",
            json!(selector)
        );
        let place = self.value(&place);
        [0, 1].map(|i| place[i].as_f64().unwrap_or_else(|| panic!("there is no {selector}")))
    }

    /// Shows the page as paper or as a screen.
    pub fn set_medium(&mut self, medium: &str) {
        self.send("Emulation.setEmulatedMedia", json!({ "media": medium }));
    }

    /// Sets the size of the window.
    pub fn resize(&mut self, width: u32, height: u32) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600 });
        self.send("Emulation.setDeviceMetricsOverride", size);
    }

    /// Sets what the reader prefers: `prefers-color-scheme` and the like.
    pub fn prefer(&mut self, features: &[(&str, &str)]) {
        let features: Value = features.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
        self.send("Emulation.setEmulatedMedia", json!({ "features": features }));
    }

    /// Writes what is to be seen to a file, for people, where the variable `LOOKBACK_SHOTS` names a folder.
    pub fn shot(&mut self, name: &str) {
        let Some(dir) = std::env::var_os("LOOKBACK_SHOTS") else { return };
        let answer = self.send("Page.captureScreenshot", json!({ "format": "png", "captureBeyondViewport": true }));
        let bytes = STANDARD.decode(answer["data"].as_str().unwrap()).unwrap();
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(Path::new(&dir).join(format!("{name}.png")), bytes).unwrap();
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // Without the pipe of its commands it ends, and whatever was wrong with it.
            return;
        }
        self.session = None;
        let context = self.context.take();
        self.send("Target.disposeBrowserContext", json!({ "browserContextId": context }));
        IDLE.lock().unwrap().extend(self.process.take());
    }
}

/// The messages of the browser, each of which ends with a zero byte; after the last one it has ended.
fn listen(mut browser: Child, answers: File) -> Receiver<Value> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for message in BufReader::new(answers).split(0) {
            let Ok(message) = message else { break };
            if sender.send(serde_json::from_slice(&message).unwrap()).is_err() {
                break;
            }
        }
        let _ = browser.wait();
    });
    receiver
}

#[test]
fn a_tab_tells_what_goes_wrong_and_nothing_of_the_tab_before() {
    let dir = TempDir::new().unwrap();
    let [broken, whole] = ["broken", "whole"].map(|name| dir.path().join(format!("{name}.html")));
    let code =
        "localStorage.setItem('a', 'b'); fetch('http://127.0.0.1:9/').catch(() => {}); throw new Error('broken')";
    std::fs::write(&broken, format!("<!DOCTYPE html><title>broken</title><script>{code}</script>")).unwrap();
    std::fs::write(&whole, "<!DOCTYPE html><title>whole</title>").unwrap();
    let [broken, whole] = [broken, whole].map(|path| format!("file://{}", path.display()));

    let Some(mut browser) = Browser::start() else { return };
    browser.open(&broken);
    assert_eq!(browser.text("localStorage.getItem('a')"), "b");
    assert!(browser.faults.iter().any(|fault| fault.contains("broken")), "{:?}", browser.faults);
    assert_eq!(browser.requests, ["http://127.0.0.1:9/"]);
    drop(browser);

    // Most likely the same browser.
    let mut browser = Browser::start().unwrap();
    browser.open(&whole);
    assert_eq!(browser.value("localStorage.getItem('a')"), Value::Null);
    assert!(browser.faults.is_empty() && browser.requests.is_empty(), "{:?} {:?}", browser.faults, browser.requests);
}
