//! Fetching, against a small server on this machine that can break off, ignore ranges and serve wrong content.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

use flate2::{Compression, write::DeflateEncoder};
use lookback::data::fetch::{DATASETS, Progress, RemoteFile, dataset, download, fetch};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

/// How the server answers.
#[derive(Clone, Copy, PartialEq)]
enum Manner {
    /// As it should, ranges included.
    Good,
    /// The first `n` answers break off after half of the bytes that were asked for.
    BreakOff(usize),
    /// The first answer breaks off, and ranges are ignored.
    NoRanges,
    /// With this status and no content.
    Status(u16),
}

/// The path and the `Range` header of each request.
type Requests = Mutex<Vec<(String, Option<String>)>>;

/// A server that gives `content` for every path until the test ends, and notes the requests.
struct Server {
    url: String,
    requests: Arc<Requests>,
}

impl Server {
    fn start(content: &[u8], manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/base", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (content, noted) = (content.to_vec(), requests.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                answer(stream.unwrap(), &content, manner, &noted);
            }
        });
        Self { url, requests }
    }

    fn ranges(&self) -> Vec<Option<String>> {
        self.requests.lock().unwrap().iter().map(|(_, range)| range.clone()).collect()
    }
}

fn answer(mut stream: TcpStream, content: &[u8], manner: Manner, noted: &Requests) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
    let Some(first) = lines.next() else { return };
    let path = first.split(' ').nth(1).unwrap_or("").to_owned();
    let header = |line: String| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("range").then(|| value.to_owned())
    };
    let range = lines.take_while(|line| !line.is_empty()).filter_map(header).last();
    let number = {
        let mut noted = noted.lock().unwrap();
        noted.push((path, range.clone()));
        noted.len()
    };
    let from =
        range.as_deref().and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-')?.parse::<usize>().ok());
    let from = if manner == Manner::NoRanges { None } else { from };
    let (status, start) = match (manner, from) {
        (Manner::Status(status), _) => (status, content.len()),
        (_, Some(from)) if from >= content.len() => (416, content.len()),
        (_, Some(from)) => (206, from),
        (_, None) => (200, 0),
    };
    let body = &content[start..];
    let range = if status == 206 {
        format!("Content-Range: bytes {start}-{}/{}\r\n", content.len() - 1, content.len())
    } else {
        String::new()
    };
    let head = format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n{range}Connection: close\r\n\r\n", body.len());
    let broken = match manner {
        Manner::BreakOff(n) => number <= n,
        Manner::NoRanges => number == 1,
        _ => false,
    };
    let sent = if broken { &body[..body.len() / 2] } else { body };
    // The client may have gone away, which is what some tests are about.
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(sent));
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Content that is too long for one packet and differs everywhere.
fn content() -> Vec<u8> {
    (0..300_000u32).flat_map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes()).collect()
}

/// Downloads a file `f.bin` whose right content is `expected` into `dir`.
fn get(server: &Server, expected: &[u8], dir: &Path) -> Result<(), String> {
    let sha256 = sha256(expected);
    let file = RemoteFile { path: "sub/f", member: None, name: "f.bin", bytes: expected.len() as u64, sha256: &sha256 };
    let paths = download(&[file], &server.url, dir, &mut |_| {}).map_err(|e| e.to_string())?;
    assert_eq!(paths, [dir.join("f.bin")]);
    Ok(())
}

/// Asserts that the folder holds `f.bin` with this content and nothing else.
fn assert_holds_only(dir: &TempDir, expected: &[u8]) {
    let names: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["f.bin"]);
    assert!(fs::read(dir.path().join("f.bin")).unwrap() == expected);
}

#[test]
fn a_file_arrives_whole_from_below_the_base_address_with_progress() {
    let (content, dir) = (content(), tempfile::tempdir().unwrap());
    let server = Server::start(&content, Manner::Good);
    let sha256 = sha256(&content);
    let n_bytes = content.len() as u64;
    let file = RemoteFile { path: "sub/f", member: None, name: "f.bin", bytes: n_bytes, sha256: &sha256 };
    let mut seen = Vec::new();
    let out = dir.path().join("made/for/it");
    download(&[file], &server.url, &out, &mut |p: Progress<'_>| seen.push((p.file.to_owned(), p.bytes, p.total_bytes)))
        .unwrap();
    assert!(fs::read(out.join("f.bin")).unwrap() == content);
    assert_eq!(server.requests.lock().unwrap()[0], ("/base/sub/f".to_owned(), None));
    assert_eq!(seen.first(), Some(&("f.bin".to_owned(), 0, Some(n_bytes))));
    assert_eq!(seen.last(), Some(&("f.bin".to_owned(), n_bytes, Some(n_bytes))));
    assert!(seen.is_sorted(), "bytes only grow");
}

#[test]
fn a_broken_connection_is_taken_up_where_it_stopped() {
    let (content, dir) = (content(), tempfile::tempdir().unwrap());
    let server = Server::start(&content, Manner::BreakOff(2));
    get(&server, &content, dir.path()).unwrap();
    assert_holds_only(&dir, &content);
    let half = content.len() / 2;
    let resumed = |from: usize| Some(format!("bytes={from}-"));
    assert_eq!(server.ranges(), [None, resumed(half), resumed(half + half / 2)]);
}

#[test]
fn a_later_run_goes_on_from_the_partial_file() {
    let (content, dir) = (content(), tempfile::tempdir().unwrap());
    fs::write(dir.path().join("f.bin.part"), &content[..1000]).unwrap();
    let server = Server::start(&content, Manner::Good);
    get(&server, &content, dir.path()).unwrap();
    assert_holds_only(&dir, &content);
    assert_eq!(server.ranges(), [Some("bytes=1000-".to_owned())]);
}

#[test]
fn a_server_that_ignores_ranges_sends_everything_again() {
    let (content, dir) = (content(), tempfile::tempdir().unwrap());
    fs::write(dir.path().join("f.bin.part"), content.repeat(2)).unwrap();
    let server = Server::start(&content, Manner::NoRanges);
    get(&server, &content, dir.path()).unwrap();
    assert_holds_only(&dir, &content);
    assert_eq!(server.ranges().len(), 2);
}

#[test]
fn a_partial_file_longer_than_the_real_one_is_fetched_afresh() {
    let (content, dir) = (content(), tempfile::tempdir().unwrap());
    fs::write(dir.path().join("f.bin.part"), [&content[..], b"more"].concat()).unwrap();
    get(&Server::start(&content, Manner::Good), &content, dir.path()).unwrap();
    assert_holds_only(&dir, &content);
}

#[test]
fn a_connection_that_always_breaks_is_an_error_that_says_how_to_go_on() {
    let (content, dir) = (content(), tempfile::tempdir().unwrap());
    let server = Server::start(&content, Manner::BreakOff(usize::MAX));
    let message = get(&server, &content, dir.path()).unwrap_err();
    assert!(message.starts_with(&format!("{}/sub/f: ", server.url)), "{message}");
    assert!(message.ends_with("run the same command again to go on from here"), "{message}");
    let part = fs::read(dir.path().join("f.bin.part")).unwrap();
    assert!(part.len() > content.len() / 2 && content.starts_with(&part), "{}", part.len());
    assert!(!dir.path().join("f.bin").exists());
}

#[test]
fn a_wrong_checksum_names_both_and_leaves_nothing() {
    let (content, dir) = (content(), tempfile::tempdir().unwrap());
    let mut wrong = content.clone();
    wrong[5] ^= 1;
    let longer = [&content[..], b"more"].concat();
    for wrong in [&wrong[..], &content[..100], &longer] {
        let message = get(&Server::start(wrong, Manner::Good), &content, dir.path()).unwrap_err();
        let expected = format!("wrong checksum: expected sha256 {}, got ", sha256(&content));
        assert!(message.starts_with(&format!("{}: {expected}", dir.path().join("f.bin").display())), "{message}");
        if wrong.len() <= content.len() {
            assert!(message.contains(&sha256(wrong)), "{message}");
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}

#[test]
fn an_http_error_names_address_and_status() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(b"", Manner::Status(404));
    let message = get(&server, b"x", dir.path()).unwrap_err();
    assert_eq!(message, format!("{}/sub/f: the server answers with HTTP status 404", server.url));
    assert_eq!(server.ranges().len(), 1, "asking again cannot help");
}

#[test]
fn whole_files_are_not_fetched_again_and_damaged_ones_are() {
    let (content, dir) = (content(), tempfile::tempdir().unwrap());
    let server = Server::start(&content, Manner::Good);
    get(&server, &content, dir.path()).unwrap();
    get(&server, &content, dir.path()).unwrap();
    assert_eq!(server.ranges().len(), 1);
    fs::write(dir.path().join("f.bin"), b"damaged").unwrap();
    get(&server, &content, dir.path()).unwrap();
    assert_eq!(server.ranges().len(), 2);
    assert_holds_only(&dir, &content);
}

/// A zip archive with one deflated file and one stored decoy before it.
fn zip(name: &str, contents: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(contents).unwrap();
    let packed = encoder.finish().unwrap();
    let (mut archive, mut directory) = (Vec::new(), Vec::new());
    let entries = [("folder/decoy.txt", 0u16, b"decoy".to_vec(), 5), (name, 8, packed, contents.len())];
    for (name, method, data, size) in entries {
        let sizes = [0u32, data.len() as u32, size as u32].map(u32::to_le_bytes).concat();
        let lengths = [name.len() as u16, 0].map(u16::to_le_bytes).concat();
        let common = [&20u16.to_le_bytes()[..], &[0, 0], &method.to_le_bytes(), &[0; 4], &sizes, &lengths].concat();
        directory
            .extend([b"PK\x01\x02\x14\x00", &common[..], &[0; 10], &(archive.len() as u32).to_le_bytes()].concat());
        directory.extend(name.as_bytes());
        archive.extend([b"PK\x03\x04", &common[..], name.as_bytes(), &data].concat());
    }
    let end = [directory.len() as u32, archive.len() as u32].map(u32::to_le_bytes).concat();
    archive.extend([&directory[..], b"PK\x05\x06\0\0\0\0\x02\0\x02\0", &end, &[0, 0]].concat());
    archive
}

#[test]
fn one_file_is_taken_out_of_a_zip_archive() {
    let content = b"the same words again and again, ".repeat(100);
    let dir = tempfile::tempdir().unwrap();
    let archive = zip("some folder/wanted.txt", &content);
    let sha256 = sha256(&content);
    let bytes = content.len() as u64;
    let file = RemoteFile { path: "a.zip", member: Some("wanted.txt"), name: "f.bin", bytes, sha256: &sha256 };
    download(&[file], &Server::start(&archive, Manner::Good).url, dir.path(), &mut |_| {}).unwrap();
    assert_holds_only(&dir, &content);
    for n in 0..archive.len() {
        let damaged = Server::start(&archive[..n], Manner::Good);
        if n % 97 == 0 {
            let out = dir.path().join("damaged");
            let message = download(&[file], &damaged.url, &out, &mut |_| {}).unwrap_err().to_string();
            assert!(message.contains("wrong checksum"), "{message}");
        }
    }
}

#[test]
fn fetch_takes_another_base_address_and_checks_what_comes() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(b"something else", Manner::Good);
    for data in DATASETS {
        let message = fetch(data.name, dir.path(), Some(&server.url), false, &mut |_| {}).unwrap_err().to_string();
        assert!(message.contains(data.files[0].sha256), "{message}");
    }
    let paths: Vec<String> = server.requests.lock().unwrap().iter().map(|(path, _)| path.clone()).collect();
    assert_eq!(paths, DATASETS.map(|data| format!("/base/{}", data.files[0].path)));
}

#[test]
fn a_file_of_somebody_else_is_not_fetched_over() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(b"something else", Manner::Good);
    let own = dir.path().join(DATASETS[0].files[0].name);
    fs::write(&own, "mine").unwrap();
    let fetched = |replaces| fetch(DATASETS[0].name, dir.path(), Some(&server.url), replaces, &mut |_| {}).unwrap_err();
    let message = fetched(false).to_string();
    assert!(message.contains("is there already with other content") && message.contains("--force"), "{message}");
    assert!(server.requests.lock().unwrap().is_empty(), "nothing was asked for");
    assert!(fetched(true).to_string().contains("wrong checksum"));
    assert_eq!(fs::read(&own).unwrap(), b"mine", "what came was not the file");
}

#[test]
fn a_mirror_may_be_a_folder_of_this_machine() {
    let dir = tempfile::tempdir().unwrap();
    let (mirror, out) = (dir.path().join("my mirror"), tempfile::tempdir().unwrap());
    fs::create_dir_all(mirror.join("sub")).unwrap();
    let content = content();
    fs::write(mirror.join("sub/f"), &content).unwrap();
    let path = mirror.display().to_string().replace(' ', "%20");
    let get = |url: &str, expected: &[u8]| {
        let sha256 = sha256(expected);
        let bytes = expected.len() as u64;
        let file = RemoteFile { path: "sub/f", member: None, name: "f.bin", bytes, sha256: &sha256 };
        download(&[file], url, out.path(), &mut |_| {}).map_err(|error| error.to_string())
    };
    for url in [format!("file://{path}"), format!("file://localhost{path}/")] {
        // What is left of another download is not gone on with.
        fs::write(out.path().join("f.bin.part"), b"something else").unwrap();
        get(&url, &content).unwrap();
        assert_holds_only(&out, &content);
        fs::remove_file(out.path().join("f.bin")).unwrap();
    }
    let message = get(&format!("file://{path}"), b"another").unwrap_err();
    assert!(message.contains("wrong checksum"), "{message}");
    let message = get(&format!("file://{path}/nowhere"), &content).unwrap_err();
    assert!(message.contains("my mirror/nowhere/sub/f: No such file"), "{message}");
}

#[test]
fn an_address_that_nothing_can_be_fetched_from_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    for url in ["/mnt/mirror", "ftp://example.org", "file://relative/path", "mirror"] {
        let message = fetch("scan", dir.path().join("out"), Some(url), false, &mut |_| {}).unwrap_err().to_string();
        assert!(message.starts_with(&format!("\"{url}\" is no address")) && message.contains("file:///"), "{message}");
    }
    assert!(!dir.path().join("out").exists(), "nothing was made");
}

#[test]
fn an_unknown_data_set_lists_those_there_are() {
    let message = dataset("multi3k").unwrap_err().to_string();
    assert_eq!(
        message,
        "unknown data set `multi3k`; there are: multi30k, multi30k-tokenized, tatoeba-en-fr, scan, cmudict, sigmorphon2021-g2p"
    );
}

#[test]
fn every_listed_file_has_a_complete_checksum_and_its_own_name() {
    for data in DATASETS {
        let names: std::collections::HashSet<&str> = data.files.iter().map(|file| file.name).collect();
        assert_eq!(names.len(), data.files.len());
        assert!(data.files.iter().all(|file| file.bytes > 0));
        let is_hex = |sha256: &str| sha256.len() == 64 && sha256.bytes().all(|b| b"0123456789abcdef".contains(&b));
        assert!(data.files.iter().all(|file| is_hex(file.sha256)), "{}", data.name);
    }
}

#[test]
fn the_command_fetches_from_another_place_than_the_corpus_home() {
    let dir = TempDir::new().unwrap();
    let from = format!("file://{}", dir.path().join("nowhere").display());
    let message = crate::training::fail(dir.path(), &["data", "fetch", "scan", "--out", "scan", "--base-url", &from]);
    crate::training::assert_says(&message, &["nowhere"]);
}
