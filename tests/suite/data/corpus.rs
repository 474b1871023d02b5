//! Reading sentence pairs and lines, and what bad files get.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::{Compression, write::GzEncoder};
use lookback::data::corpus::{Dropped, MAX_LINE_BYTES};
use lookback::data::{LengthFilter, Pair, SplitFiles, read_lines, read_pairs, sha256_of_file};
use tempfile::TempDir;

/// A folder with the given files.
fn folder(files: &[(&str, &[u8])]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, contents) in files {
        fs::write(dir.path().join(name), contents).unwrap();
    }
    dir
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<Pair> {
    expected.iter().map(|(source, target)| Pair::new(*source, *target)).collect()
}

/// Reads two parallel files `a` and `b`.
fn parallel(a: &[u8], b: &[u8]) -> (TempDir, Result<Vec<Pair>, String>) {
    let dir = folder(&[("a", a), ("b", b)]);
    let result = read_pairs(&SplitFiles::parallel(dir.path().join("a"), dir.path().join("b")));
    (dir, result.map_err(|e| e.to_string()))
}

/// Reads a file `t.tsv`.
fn tsv(text: &[u8]) -> (TempDir, Result<Vec<Pair>, String>) {
    let dir = folder(&[("t.tsv", text)]);
    let result = read_pairs(&SplitFiles::tsv(dir.path().join("t.tsv")));
    (dir, result.map_err(|e| e.to_string()))
}

fn at(dir: &TempDir, name: &str) -> String {
    dir.path().join(name).display().to_string()
}

#[test]
fn parallel_files_pair_line_by_line_and_surrounding_space_goes() {
    let (_dir, read) =
        parallel(" a dog \r\n\u{a0}two\tcats\r\n".as_bytes(), "un chien\ndeux  chats\u{202f}".as_bytes());
    assert_eq!(read.unwrap(), pairs(&[("a dog", "un chien"), ("two\tcats", "deux  chats")]));
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_first_sentence() {
    let (_dir, read) = tsv("\u{feff}a\tb\n".as_bytes());
    assert_eq!(read.unwrap(), pairs(&[("a", "b")]));
}

#[test]
fn gzip_is_told_by_content_and_may_have_several_parts() {
    let packed = [gzip(b"a\tb\nc"), gzip(b"\td\n")].concat();
    let (_dir, read) = tsv(&packed);
    assert_eq!(read.unwrap(), pairs(&[("a", "b"), ("c", "d")]));
}

#[test]
fn truncated_gzip_names_the_file() {
    let packed = gzip(&b"a\tb\n".repeat(1000));
    let (dir, read) = tsv(&packed[..packed.len() - 12]);
    let message = read.unwrap_err();
    assert!(message.starts_with(&format!("{}: damaged or incomplete gzip data", at(&dir, "t.tsv"))), "{message}");
}

fn zstd(text: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(text, ruzstd::encoding::CompressionLevel::Fastest)
}

#[test]
fn zstd_is_told_by_content_and_may_have_several_parts() {
    let skipped = [&[0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"xyz"].concat();
    let packed = [zstd(b"a\tb\nc"), skipped, zstd(b"\td\n"), zstd(b"")].concat();
    let (_dir, read) = tsv(&packed);
    assert_eq!(read.unwrap(), pairs(&[("a", "b"), ("c", "d")]));
    let long: String = (0..40_000).map(|i| format!("source {i}\ttarget {}\n", i * 7)).collect();
    let (_dir, read) = tsv(&zstd(long.as_bytes()));
    assert_eq!(read.unwrap(), tsv(long.as_bytes()).1.unwrap());
}

#[test]
fn damaged_zstd_names_the_file() {
    let long: String = (0..1000).map(|i| format!("a {i}\tb\n")).collect();
    let packed = zstd(long.as_bytes());
    for cut in [packed.len() - 1, packed.len() / 2, 5] {
        let (dir, read) = tsv(&packed[..cut]);
        let message = read.unwrap_err();
        assert!(message.starts_with(&format!("{}: damaged or incomplete zstd data", at(&dir, "t.tsv"))), "{message}");
    }
    let (dir, read) = tsv(&[&packed[..], b"more"].concat());
    let message = read.unwrap_err();
    assert!(message.starts_with(&format!("{}: damaged or incomplete zstd data", at(&dir, "t.tsv"))), "{message}");
}

#[test]
fn a_bit_that_has_changed_in_zstd_is_seen() {
    let long: String = (0..200).map(|i| format!("a {i}\tb {}\n", i * i)).collect();
    let packed = zstd(long.as_bytes());
    let whole = tsv(&packed).1.unwrap();
    assert_eq!(whole.len(), 200);
    let mut n_refused = 0;
    // Not in the four bytes that tell zstd from plain text.
    for i in (4..packed.len()).step_by(7) {
        let mut changed = packed.clone();
        changed[i] ^= 1 << (i % 8);
        match tsv(&changed).1 {
            // Some bits of the head say nothing of the text.
            Ok(found) => assert_eq!(found, whole, "byte {i}"),
            // Some damage shows before the checksum does: what is read is no UTF-8.
            Err(_) => n_refused += 1,
        }
    }
    assert!(n_refused > packed.len() / 10, "{n_refused} of {} bytes", packed.len());
}

#[test]
fn a_file_of_pzstd_begins_with_a_frame_that_holds_no_text() {
    let sizes = [&[0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0][..], &[9, 0, 0, 0]].concat();
    let (_dir, read) = tsv(&[sizes, zstd(b"a\tb\nc\td\n")].concat());
    assert_eq!(read.unwrap(), pairs(&[("a", "b"), ("c", "d")]));
}

#[test]
fn zstd_without_line_ends_ends_at_the_longest_line() {
    let (dir, read) = tsv(&zstd(&vec![b'a'; 1 << 26]));
    let message = read.unwrap_err();
    assert_eq!(message, format!("{}:1: longer than 1048576 bytes; put one sentence on a line", at(&dir, "t.tsv")));
}

#[test]
fn swap_exchanges_the_sides() {
    let dir = folder(&[("t.tsv", b"a\tb\n")]);
    let files = SplitFiles { swap: true, ..SplitFiles::tsv(dir.path().join("t.tsv")) };
    assert_eq!(read_pairs(&files).unwrap(), pairs(&[("b", "a")]));
}

#[test]
fn blank_tsv_lines_and_empty_columns_stay_as_blank_pairs() {
    let (_dir, read) = tsv(b"a\tb\n\n\tc\nd\t\n");
    assert_eq!(read.unwrap(), pairs(&[("a", "b"), ("", ""), ("", "c"), ("d", "")]));
}

#[test]
fn a_tsv_line_of_one_column_names_file_and_line() {
    let (dir, read) = tsv(b"a\tb\nno tab here\n");
    let expected = format!("{}:2: 1 column instead of 2; a line is `source TAB target`", at(&dir, "t.tsv"));
    assert_eq!(read.unwrap_err(), expected);
}

#[test]
fn a_tsv_line_of_three_columns_is_refused_unless_extra_columns_are_ignored() {
    let text = b"a\tb\tCC-BY 2.0\n";
    let (dir, read) = tsv(text);
    let message = read.unwrap_err();
    assert!(message.starts_with(&format!("{}:1: 3 columns instead of 2", at(&dir, "t.tsv"))), "{message}");
    assert!(message.contains("ignore_extra_columns = true"), "{message}");
    let files = SplitFiles { ignore_extra_columns: true, ..SplitFiles::tsv(dir.path().join("t.tsv")) };
    assert_eq!(read_pairs(&files).unwrap(), pairs(&[("a", "b")]));
}

#[test]
fn unequal_line_counts_name_both_files_and_counts() {
    let (dir, read) = parallel(b"a\nb\nc\n", b"x\ny\n");
    let expected = format!("{}: 3 lines, but {} has 2", at(&dir, "a"), at(&dir, "b"));
    let message = read.unwrap_err();
    assert!(message.starts_with(&expected), "{message}");
}

#[test]
fn invalid_utf8_names_file_and_line() {
    let (dir, read) = parallel(b"fine\nca\xe9t\n", b"x\ny\n");
    let expected = format!("{}:2: not UTF-8 (byte 3 of the line); convert the file to UTF-8", at(&dir, "a"));
    assert_eq!(read.unwrap_err(), expected);
}

#[test]
fn an_over_long_line_names_file_and_line_and_the_longest_allowed_passes() {
    let longest = vec![b'a'; MAX_LINE_BYTES];
    let (_dir, read) = parallel(&[b"x\n", &longest[..], b"\r\n"].concat(), b"x\ny\n");
    assert_eq!(read.unwrap()[1].source.len(), MAX_LINE_BYTES);
    let (dir, read) = parallel(&[b"x\n", &longest[..], b"a\n"].concat(), b"x\ny\n");
    assert_eq!(
        read.unwrap_err(),
        format!("{}:2: longer than 1048576 bytes; put one sentence on a line", at(&dir, "a"))
    );
}

#[test]
fn an_empty_corpus_names_the_file() {
    for text in [&b""[..], b"\n\n", b"a\t\n\tb\n"] {
        let (dir, read) = tsv(text);
        let expected = format!("{}: the corpus is empty: there is no pair with text on both sides", at(&dir, "t.tsv"));
        assert_eq!(read.unwrap_err(), expected);
    }
}

#[test]
fn a_missing_file_is_named() {
    let message = read_pairs(&SplitFiles::tsv("no/such/file.tsv")).unwrap_err().to_string();
    assert!(message.starts_with("no/such/file.tsv: "), "{message}");
}

#[test]
fn a_folder_instead_of_a_file_is_an_error() {
    let dir = folder(&[]);
    let message = read_lines(dir.path()).unwrap_err().to_string();
    assert!(message.starts_with(&dir.path().display().to_string()), "{message}");
}

#[test]
fn every_incomplete_choice_of_files_says_what_is_missing() {
    let file = || Some(PathBuf::from("f"));
    let none = SplitFiles::default();
    let cases = [
        (none.clone(), "data.train: no file; give source and target"),
        (SplitFiles { source: file(), ..none.clone() }, "data.train: source is given but target is missing"),
        (SplitFiles { target: file(), ..none.clone() }, "data.train: target is given but source is missing"),
        (
            SplitFiles { tsv: file(), source: file(), ..none.clone() },
            "data.train: give either source and target, or tsv",
        ),
        (
            SplitFiles { ignore_extra_columns: true, ..SplitFiles::parallel("a", "b") },
            "data.train: ignore_extra_columns is for a tsv",
        ),
    ];
    for (files, expected) in cases {
        let message = files.validate("data.train").unwrap_err().to_string();
        assert!(message.starts_with(expected), "{message}");
    }
    assert!(SplitFiles::tsv("t").validate("data.train").is_ok());
    assert!(SplitFiles::parallel("a", "b").validate("data.train").is_ok());
    assert_eq!(SplitFiles::parallel("a", "b").paths(), [Path::new("a"), Path::new("b")]);
}

#[test]
fn the_filter_counts_each_reason_once() {
    let filter = LengthFilter { min_len: 2, max_len: Some(5), max_ratio: Some(2.0) };
    let all = pairs(&[
        ("a b", "x y z"),
        ("", "x y"),
        ("a b", " "),
        ("a", "x y"),
        ("a b c d e f", "x y z x y z"),
        ("a b", "x y z u v"),
        ("a b", "x y z u"),
    ]);
    let (kept, dropped) = filter.apply(all).unwrap();
    assert_eq!(kept, pairs(&[("a b", "x y z"), ("a b", "x y z u")]));
    assert_eq!(dropped, Dropped { blank: 2, too_short: 1, too_long: 1, ratio: 1 });
    assert_eq!(dropped.total(), 5);
}

#[test]
fn the_default_filter_drops_only_blank_pairs() {
    let (kept, dropped) = LengthFilter::default().apply(pairs(&[("a", "b"), ("", "c")])).unwrap();
    assert_eq!(kept, pairs(&[("a", "b")]));
    assert_eq!(dropped.to_string(), "1 blank, 0 too short, 0 too long, 0 of unequal length");
}

#[test]
fn a_filter_that_leaves_nothing_says_why() {
    let filter = LengthFilter { max_len: Some(1), ..LengthFilter::default() };
    let message = filter.apply(pairs(&[("a b", "c d")])).unwrap_err().to_string();
    let counts = "0 blank, 0 too short, 1 too long, 0 of unequal length";
    assert_eq!(message, format!("no training pairs are left after filtering: {counts}"));
}

#[test]
fn impossible_filters_are_refused_by_field() {
    let cases = [
        (LengthFilter { max_len: Some(0), ..LengthFilter::default() }, "data.filter.max_len: must be at least 1"),
        (
            LengthFilter { min_len: 4, max_len: Some(3), max_ratio: None },
            "data.filter.max_len: must be at least 1 and min_len = 4",
        ),
        (
            LengthFilter { max_ratio: Some(0.5), ..LengthFilter::default() },
            "data.filter.max_ratio: must be at least 1 and finite, got 0.5",
        ),
        (LengthFilter { max_ratio: Some(f64::NAN), ..LengthFilter::default() }, "data.filter.max_ratio: must be"),
    ];
    for (filter, expected) in cases {
        let message = filter.validate("data.filter").unwrap_err().to_string();
        assert!(message.starts_with(expected), "{message}");
    }
}

#[test]
fn a_misspelt_key_is_refused() {
    assert!(serde_json::from_str::<SplitFiles>(r#"{"sorce": "a"}"#).unwrap_err().to_string().contains("sorce"));
    assert!(serde_json::from_str::<LengthFilter>(r#"{"maxlen": 3}"#).unwrap_err().to_string().contains("maxlen"));
}

#[test]
fn input_lines_keep_blank_ones_and_the_last_without_line_end() {
    let dir = folder(&[("plain", b"one\n\n  \nlast"), ("packed.gz", &gzip(b"one\n\n\nlast\n"))]);
    for name in ["plain", "packed.gz"] {
        assert_eq!(read_lines(dir.path().join(name)).unwrap(), ["one", "", "", "last"]);
    }
}

#[test]
fn the_checksum_is_the_sha256_of_the_bytes() {
    let dir = folder(&[("abc", b"abc")]);
    let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(sha256_of_file(dir.path().join("abc")).unwrap(), expected);
}
