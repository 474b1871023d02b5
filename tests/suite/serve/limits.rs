//! Wrong requests, limits, tokens, callers that go, and signals.

use super::server::{Server, answer};
use crate::cli::trained;
use crate::training::assert_says;
use serde_json::json;
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::time::Duration;

const JSON: &str = "Content-Type: application/json";
const FORM: &str = "Content-Type: application/x-www-form-urlencoded";

/// Method, path, content type and body of a request, and the status and message that it gets.
type Case<'a> = (&'a str, &'a str, &'a str, &'a [u8], u16, &'a str);

#[test]
fn a_wrong_request_is_told_what_is_wrong() {
    let limits = ["--run", "run", "--max-lines", "3", "--max-body", "300", "--max-source-len", "9"];
    let server = Server::start(trained(), &limits);
    let long = format!("{{\"q\": \"{}\"}}", "a ".repeat(20));
    let cases: [Case; 20] = [
        ("POST", "/translate", JSON, b"{\"q\": ", 400, "no valid JSON: EOF while parsing"),
        ("POST", "/translate", JSON, b"[]", 400, "the body is JSON, but no object"),
        ("POST", "/translate", JSON, b"{}", 400, "q is missing"),
        ("POST", "/translate", JSON, b"", 400, "q is missing"),
        ("POST", "/translate", JSON, b"{\"q\": 3}", 400, "q is a number; q is a string or a list of strings"),
        ("POST", "/translate", JSON, b"{\"q\": [\"a\", null]}", 400, "q[1] is null"),
        ("POST", "/translate", JSON, b"{\"q\": \"\xff\"}", 400, "no valid JSON"),
        ("POST", "/translate", FORM, b"q=%ff", 400, "no valid UTF-8"),
        (
            "POST",
            "/translate",
            "Content-Type: text/xml",
            b"<q/>",
            415,
            "Content-Type is text/xml; send application/json",
        ),
        (
            "POST",
            "/translate",
            JSON,
            b"{\"q\": \"a\", \"format\": \"html\"}",
            400,
            "format is html; the only one is text",
        ),
        (
            "POST",
            "/translate",
            JSON,
            b"{\"q\": \"a\", \"alternatives\": -1}",
            400,
            "alternatives is -1; give a whole number",
        ),
        ("POST", "/translate", JSON, b"{\"q\": \"a\", \"target\": 1}", 400, "target is a number; give a string"),
        ("POST", "/translate", JSON, b"{\"q\": \"a\", \"target\": \"xx\"}", 400, "no model from any language to xx"),
        ("POST", "/translate", JSON, b"{\"q\": \"a\\nb\\nc\\nd\"}", 400, "q has 4 lines, and a request may have 3"),
        (
            "POST",
            "/translate",
            JSON,
            long.as_bytes(),
            400,
            "with the end symbol, more than decoding.max_source_len = 9",
        ),
        ("POST", "/translate", JSON, &[b' '; 301], 413, "the body has more than 300 bytes"),
        ("POST", "/tokenize", JSON, b"{\"q\": \"a\", \"side\": \"left\"}", 400, "side is left"),
        (
            "POST",
            "/score",
            JSON,
            b"{\"q\": \"a\", \"translation\": \"a a a a a a a a a a a a\"}",
            400,
            "more than decoding.max_source_len = 9",
        ),
        ("GET", "/translate", JSON, b"", 405, "/translate takes POST, not GET"),
        ("GET", "/../../etc/passwd", JSON, b"", 404, "no such path; there are /translate"),
    ];
    for (method, path, kind, body, expected, part) in cases {
        let (status, answer) = server.send(method, path, &[kind], body);
        assert_eq!(status, expected, "{method} {path} {}: {answer}", String::from_utf8_lossy(body));
        assert_says(answer["error"].as_str().unwrap(), &[part]);
    }
    assert_eq!(server.send("DELETE", "/info", &[], "").1, json!({ "error": "/info takes GET, not DELETE" }));
    // What OpenAI's clients ask for is refused in words that they read.
    let (status, answer_of_chat) = server.send("POST", "/v1/chat/completions", &[JSON], "{}");
    assert_eq!((status, &answer_of_chat["error"]["code"]), (404, &json!(null)));
    assert_says(answer_of_chat["error"]["message"].as_str().unwrap(), &["no such path", "/v1/completions"]);
    let (status, wrong) = server.send("GET", "/v1/completions", &[], "");
    assert_eq!(status, 405);
    assert_says(wrong["error"]["message"].as_str().unwrap(), &["/v1/completions takes POST"]);
    // A body without a length, in chunks, is counted as it comes.
    let mut stream = server.connect();
    let head = "POST /translate HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n";
    stream.write_all(format!("{head}200\r\n{}\r\n0\r\n\r\n", "a".repeat(512)).as_bytes()).unwrap();
    assert_eq!(answer(stream).0, 413);
    // What is no HTTP at all gets an answer or none; the server goes on.
    let mut stream = server.connect();
    stream.write_all(b"\x16\x03\x01 hello\r\n\r\n").unwrap();
    let _ = stream.read_to_end(&mut Vec::new());
    // Half a head, half a body, and gone.
    for half in ["POST /tran", "POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{\"q\""] {
        let mut stream = server.connect();
        stream.write_all(half.as_bytes()).unwrap();
        stream.shutdown(Shutdown::Both).unwrap();
    }
    assert_eq!(server.post("/translate", &json!({ "q": "a" })).0, 200);
    server.terminate();
    assert_eq!(server.end(), (Some(0), String::new()));
}

#[test]
fn a_full_queue_says_when_to_come_again() {
    // The first request waits for others that fit into its batch, and has the only place meanwhile.
    let server = Server::start(trained(), &["--run", "run", "--max-queue", "1", "--max-wait", "3000"]);
    let first = server.begin("POST", "/translate", &[JSON], "{\"q\": \"a\"}");
    server.wait_for_queue(1);
    let (status, head, body) = answer(server.begin("POST", "/translate", &[JSON], "{\"q\": \"b\"}"));
    assert_eq!(status, 503, "{body}");
    assert_says(&head, &["retry-after: 1"]);
    assert_says(&body, &["the queue of 1 requests is full; try again in 1 s"]);
    assert_eq!(answer(first).0, 200);
    assert_eq!(server.post("/score", &json!({ "q": "b", "translation": "b" })).0, 200);
}

#[test]
fn nothing_is_translated_for_a_caller_that_has_gone() {
    let server = Server::start(trained(), &["--run", "run", "--max-wait", "1000"]);
    let gone = server.begin("POST", "/translate", &[JSON], "{\"q\": \"a\"}");
    server.wait_for_queue(1);
    gone.shutdown(Shutdown::Both).unwrap();
    drop(gone);
    server.wait_for_queue(0);
    assert_eq!(server.metric("lookback_batches_total"), 0);
}

#[test]
fn a_request_that_takes_too_long_is_ended() {
    let server = Server::start(trained(), &["--run", "run", "--timeout", "1", "--max-wait", "4000"]);
    let (status, body) = server.post("/translate", &json!({ "q": "a" }));
    assert_eq!((status, body), (504, json!({ "error": "the answer took longer than 1 s; send less at once" })));
    let mut stream = server.connect();
    let half = "POST /translate HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 100\r\n\r\n{\"q\"";
    stream.write_all(half.as_bytes()).unwrap();
    assert_eq!(answer(stream).0, 408);
    // A head that never ends, and a connection that says nothing, are closed.
    for part in ["GET /health HTTP/1.1\r\n", ""] {
        let mut stream = server.connect();
        stream.write_all(part.as_bytes()).unwrap();
        let _ = stream.read_to_end(&mut Vec::new()).unwrap();
    }
}

#[test]
fn a_client_that_asks_and_does_not_read_is_let_go() {
    let server = Server::start(trained(), &["--run", "run", "--timeout", "1"]);
    let mut stream = server.connect();
    stream.set_write_timeout(Some(Duration::from_secs(60))).unwrap();
    // Answers fill the buffers between the two; then the server neither writes nor reads, and at last closes the connection.
    let request = format!("GET / HTTP/1.1\r\nHost: {}\r\n\r\n", server.address());
    let error = loop {
        if let Err(error) = stream.write_all(request.as_bytes()) {
            break error;
        }
    };
    let kind = error.kind();
    assert!(matches!(kind, ErrorKind::ConnectionReset | ErrorKind::BrokenPipe), "{error}");
    assert_eq!(server.get("/health").0, 200);
}

#[test]
fn sigterm_answers_what_was_accepted() {
    let server = Server::start(trained(), &["--run", "run", "--max-wait", "1500", "--verbose"]);
    let idle = server.connect();
    let asked = server.begin("POST", "/translate", &[JSON], "{\"q\": \"a b c\"}");
    server.wait_for_queue(1);
    server.terminate();
    let (status, _, body) = answer(asked);
    assert_eq!(status, 200, "{body}");
    assert_says(&body, &["translatedText"]);
    let (code, text) = server.end();
    drop(idle);
    assert_eq!(code, Some(0), "{text}");
    assert_says(&text, &["POST /translate 200 ", "GET /metrics 200 "]);
}

#[test]
fn without_the_token_there_is_no_answer() {
    let server = Server::start(trained(), &["--run", "run", "--token", "secret"]);
    assert_eq!(server.get("/health").0, 200);
    let cases: [(&str, &str, &str, u16); 7] = [
        ("Authorization: Bearer secret", JSON, "{\"q\": \"a\"}", 200),
        ("Authorization: bearer secret", JSON, "{\"q\": \"a\"}", 200),
        ("X: y", FORM, "q=a&api_key=secret", 200),
        ("X: y", JSON, "{\"q\": \"a\", \"api_key\": \"secret\"}", 200),
        ("X: y", JSON, "{\"q\": \"a\"}", 401),
        ("Authorization: Bearer secre", JSON, "{\"q\": \"a\", \"api_key\": \"secret\"}", 401),
        ("X: y", JSON, "{\"q\"", 401),
    ];
    for (header, kind, body, expected) in cases {
        let (status, answer) = server.send("POST", "/translate", &[header, kind], body);
        assert_eq!(status, expected, "{header} {body}: {answer}");
    }
    for path in ["/info", "/languages", "/metrics", "/nothing"] {
        assert_eq!(server.get(path).0, 401, "{path}");
    }
    assert_says(&answer(server.begin("GET", "/info", &[], "")).1, &["www-authenticate: bearer"]);
}

#[test]
fn other_machines_are_let_in_without_a_token_where_it_is_said() {
    let server = Server::start(trained(), &["--run", "run", "--host", "0.0.0.0", "--no-token"]);
    let (status, answer) = server.post("/translate", &json!({ "q": "a b" }));
    assert_eq!(status, 200, "{answer}");
}

#[test]
fn a_page_that_calls_this_machine_by_a_name_of_its_own_gets_nothing() {
    let server = Server::start(trained(), &["--run", "run"]);
    assert_eq!(server.send("GET", "/info", &["Host: evil.example"], "").0, 403);
    assert_eq!(server.send("GET", "/info", &["Host: localhost:5000"], "").0, 200);
    let (_, head, _) = answer(server.begin("GET", "/info", &["Origin: http://evil.example"], ""));
    assert!(!head.contains("access-control"), "{head}");
}
