//! Plain text: streams of tokens, windows to learn from and to be measured on, held-out lines.

use crate::support::flex;
use lookback::data::batch::Batch;
use lookback::data::text::{Windows, prompt_ids, scored_windows, text_of};
use lookback::data::tokenizer::{Chunks, SubwordConfig};
use lookback::data::{EOS, Split, TextConfig, TokenStream, TokenizerConfig, Tokenizers, UNK};
use std::path::PathBuf;
use tempfile::TempDir;

fn letters(lines: &[&str]) -> Tokenizers {
    let config = TokenizerConfig::Char(Default::default());
    Tokenizers::train_text(lines, &(&config).into(), false).unwrap()
}

#[test]
fn a_stream_has_an_end_of_line_before_and_after_every_line() {
    let lines = ["ab", "", "bé"];
    let tokenizers = letters(&lines);
    let stream = TokenStream::new(&lines, tokenizers.target());
    let id = |letter| tokenizers.target().id(letter).unwrap();
    assert_eq!(stream.ids, [EOS, id("a"), id("b"), EOS, EOS, id("b"), id("é"), EOS]);
    assert_eq!((stream.n_tokens(), stream.n_characters, stream.n_bytes), (7, 7, 8));
    assert_eq!(text_of(&stream.ids[1..], tokenizers.target()), "ab\n\nbé\n");
    assert_eq!(TokenStream::new(&["xa"], tokenizers.target()).n_unknown(), 1);
}

#[test]
fn a_prompt_is_the_beginning_of_a_line_or_of_the_one_after_it() {
    let tokenizers = letters(&["ab"]);
    let [a, b] = ["a", "b"].map(|letter| tokenizers.target().id(letter).unwrap());
    assert_eq!(prompt_ids("", tokenizers.target()), [EOS]);
    assert_eq!(prompt_ids("ab", tokenizers.target()), [EOS, a, b]);
    assert_eq!(prompt_ids("ab\r\nx", tokenizers.target()), [EOS, a, b, EOS, UNK]);
    assert_eq!(prompt_ids("ab\n", tokenizers.target()), [EOS, a, b, EOS]);
}

#[test]
fn the_windows_of_an_epoch_predict_every_token_once_but_for_the_ends() {
    for (n_ids, context) in [(103, 10), (11, 10), (12, 10), (50, 2)] {
        let mut firsts = std::collections::BTreeSet::new();
        for epoch in 0..40 {
            let windows = Windows::of_epoch(n_ids, context, 7, epoch);
            assert_eq!(windows, Windows::of_epoch(n_ids, context, 7, epoch));
            assert!(!windows.is_empty(), "{n_ids} tokens have a window of {context}");
            let ranges: Vec<_> = (0..windows.len()).map(|i| windows.range(i)).collect();
            firsts.insert(ranges[0].start);
            assert!(ranges.iter().all(|range| range.len() == context + 1));
            assert!(ranges.windows(2).all(|pair| pair[1].start == pair[0].end - 1), "neighbours share one token");
            assert!(ranges[0].start < context && ranges.last().unwrap().end <= n_ids);
            assert!(n_ids - ranges.last().unwrap().end < context, "no window is left out at the end");
            let mut planned = windows.plan(3 * context, 7, epoch).iter().collect::<Vec<_>>().concat();
            planned.sort_unstable();
            assert_eq!(planned, (0..windows.len() as u32).collect::<Vec<_>>());
        }
        let most = context.min(n_ids - context);
        assert_eq!(firsts.len(), most, "40 epochs see every beginning");
    }
    assert!(Windows::of_epoch(10, 10, 7, 0).is_empty());
    let plan = Windows::of_epoch(103, 10, 7, 0).plan(30, 7, 0);
    assert!(
        plan.iter().all(|batch| batch.len() <= 3) && plan.len() == Windows::of_epoch(103, 10, 7, 0).len().div_ceil(3)
    );
    let next = Windows::of_epoch(103, 10, 7, 1).plan(30, 7, 1);
    assert!(!plan.iter().eq(next.iter()));
}

#[test]
fn every_token_of_a_scored_text_counts_once_with_half_a_context_before_it() {
    for (n_ids, context) in [(2, 4), (5, 4), (6, 4), (101, 10), (40, 3)] {
        let mut counted = Vec::new();
        for window in scored_windows(n_ids, context) {
            assert!(window.range.len() <= context + 1);
            for place in window.counted..window.range.len() - 1 {
                let target = window.range.start + place + 1;
                assert!(place + 1 >= (context / 2).min(target), "target {target} sees {} tokens", place + 1);
                counted.push(target);
            }
        }
        assert_eq!(counted, (1..n_ids).collect::<Vec<_>>(), "{n_ids} tokens, context {context}");
    }
}

#[test]
fn a_batch_of_text_reads_each_token_and_predicts_the_next() {
    let batch = Batch::of_text(&[&[5, 6, 7], &[8, 9]], &flex());
    let ids: Vec<i32> = batch.target_input.ids.clone().into_data().iter::<i32>().collect();
    assert_eq!(ids, [5, 6, 8, 0]);
    assert_eq!(batch.target_ids, [6, 7, 9, 0]);
    assert_eq!((batch.n_target_tokens(), batch.source.n_tokens(), batch.source.batch_size()), (3, 0, 2));
}

#[test]
fn lines_are_held_out_from_the_end_where_no_files_are_named() {
    let dir = TempDir::new().unwrap();
    let text: String = (0..100).map(|i| format!("line {i} \n")).collect();
    std::fs::write(dir.path().join("a.txt"), text).unwrap();
    std::fs::write(dir.path().join("b.txt"), "other\n\n").unwrap();
    let file = |name: &str| vec![PathBuf::from(name)];
    let lines = |config: &TextConfig, split| config.lines(split, Some(dir.path()), Some(50)).unwrap();
    let config = TextConfig { train: file("a.txt"), ..TextConfig::default() };
    let splits = [Split::Train, Split::Valid, Split::Test].map(|split| lines(&config, split));
    assert_eq!(splits.each_ref().map(Vec::len), [90, 5, 5]);
    assert_eq!((&*splits[1][0], &*splits[2][0], &*splits[2][4]), ("line 90 ", "line 95 ", "line 99 "));
    let named = TextConfig { valid: file("b.txt"), ..config };
    assert_eq!([Split::Train, Split::Valid, Split::Test].map(|split| lines(&named, split).len()), [95, 2, 5]);
    let error = named.lines(Split::Test, Some(dir.path()), Some(1)).unwrap_err().to_string();
    assert!(error.contains("data.text.test") && error.contains("holds out none"), "{error}");
}

#[test]
fn text_in_pieces_has_the_tokens_of_the_whole() {
    // White space of several kinds, and what GPT-2's pattern tells apart.
    let parts = ["a", "b1", " ", "  ", "\t", "\u{a0}", ".", "'s", " = ", "né"];
    let mut rng = lookback::data::stream(3, "lines", 0);
    let mut part = || parts[rng.below(parts.len() as u64) as usize];
    let mut line = |i: usize| -> String { (0..i % 5).map(|_| part()).collect() };
    let lines: Vec<String> = (0..3000).map(&mut line).collect();
    let config = TokenizerConfig::ByteBpe(SubwordConfig { vocab_size: 320, ..SubwordConfig::default() });
    let tokenizers = Tokenizers::train_text(&lines, &(&config).into(), false).unwrap();
    let ids_in_pieces = |lines: &[String]| {
        let mut chunks = Chunks::default();
        let mut pieces: Vec<String> = lines.iter().filter_map(|line| chunks.push(line)).collect();
        pieces.extend(chunks.finish());
        (pieces.len(), pieces.iter().flat_map(|piece| tokenizers.target().encode(piece)).collect::<Vec<u32>>())
    };
    let whole = |lines: &[String]| tokenizers.target().encode(&(lines.join("\n") + "\n"));
    let (n, ids) = ids_in_pieces(&lines);
    assert_eq!(ids, whole(&lines));
    assert!(n > lines.len() / 4, "{n} pieces");
    // As in WikiText: a space at both ends of each line.
    let wiki: Vec<String> = (0..40).map(|i| format!(" = Title {i} = ")).collect();
    let (n, ids) = ids_in_pieces(&wiki);
    assert_eq!((n, ids), (wiki.len(), whole(&wiki)));
}
