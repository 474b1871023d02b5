//! A server as a process of its own, and callers that speak to it byte by byte.

use crate::training::lookback;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A server that ends with this value.
pub struct Server {
    child: Child,
    address: String,
}

impl Server {
    /// Starts one in `dir` on a free port, and waits until it listens.
    pub fn start(dir: &Path, arguments: &[&str]) -> Self {
        Self::start_with(dir, arguments, Stdio::piped())
    }

    /// The same, with another standard error.
    pub fn start_with(dir: &Path, arguments: &[&str], stderr: Stdio) -> Self {
        let arguments = [&["serve", "--port", "0"][..], arguments].concat();
        let mut command = lookback(dir, &arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(stderr).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let Some(address) = line.trim().strip_prefix("listening on http://") else {
            let mut fault = String::new();
            if let Some(mut stderr) = child.stderr.take() {
                stderr.read_to_string(&mut fault).unwrap();
            }
            panic!("{arguments:?}: {line:?} {fault}");
        };
        Self { address: address.to_string(), child }
    }

    /// A connection.
    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        // A server that does not answer shall fail the test and not stop it.
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }

    /// Sends a request that is to be the last of its connection.
    pub fn begin(&self, method: &str, path: &str, headers: &[&str], body: impl AsRef<[u8]>) -> TcpStream {
        let body = body.as_ref();
        let mut head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
        if !headers.iter().any(|header| header.starts_with("Host:")) {
            head += &format!("Host: {}\r\n", self.address);
        }
        headers.iter().for_each(|header| head += &format!("{header}\r\n"));
        let mut stream = self.connect();
        stream.write_all(format!("{head}\r\n").as_bytes()).unwrap();
        // The server may answer before it has read all.
        let _ = stream.write_all(body);
        stream
    }

    /// Sends a request; the status and the body.
    pub fn text(&self, method: &str, path: &str, headers: &[&str], body: impl AsRef<[u8]>) -> (u16, String) {
        let (status, _, body) = answer(self.begin(method, path, headers, body));
        (status, body)
    }

    /// Sends JSON; the status and the body.
    pub fn post_text(&self, path: &str, body: &Value) -> (u16, String) {
        self.text("POST", path, &["Content-Type: application/json"], body.to_string())
    }

    /// The address, as a host with a port.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Sends a request; the status and the body, which is JSON.
    pub fn send(&self, method: &str, path: &str, headers: &[&str], body: impl AsRef<[u8]>) -> (u16, Value) {
        let (status, body) = self.text(method, path, headers, body);
        (status, serde_json::from_str(&body).unwrap_or_else(|error| panic!("{path}: {error}: {body:?}")))
    }

    /// Sends JSON.
    pub fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        self.send("POST", path, &["Content-Type: application/json"], body.to_string())
    }

    /// Asks without a body.
    pub fn get(&self, path: &str) -> (u16, Value) {
        self.send("GET", path, &[], "")
    }

    /// The value of a metric that is a whole number.
    pub fn metric(&self, name: &str) -> u64 {
        let (_, _, text) = answer(self.begin("GET", "/metrics", &[], ""));
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        value.unwrap_or_else(|| panic!("no {name} in\n{text}"))
    }

    /// Waits until as many requests are in the queue.
    pub fn wait_for_queue(&self, n: u64) {
        while self.metric("lookback_queue_size") != n {
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Asks the server to end.
    pub fn terminate(&self) {
        let status = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status().unwrap();
        assert!(status.success());
    }

    /// Closes the end of its standard output that a reader has.
    pub fn stop_reading(&mut self) {
        drop(self.child.stdout.take());
    }

    /// The exit code, once the server has ended, and what it wrote to standard error.
    pub fn end(mut self) -> (Option<i32>, String) {
        let mut text = String::new();
        if let Some(mut stderr) = self.child.stderr.take() {
            stderr.read_to_string(&mut text).unwrap();
        }
        (self.child.wait().unwrap().code(), text)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The status, the head in small letters and the body of the answer on a connection that ends with it.
pub fn answer(mut stream: TcpStream) -> (u16, String, String) {
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    (status.unwrap_or_else(|| panic!("no status: {head:?}")), head.to_lowercase(), body.to_string())
}
