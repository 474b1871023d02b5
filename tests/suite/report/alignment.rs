//! Alignments: reading gold ones, words of tokens, links, and the error rate on paper.

use super::map;
use lookback::data::tokenizer::{CharConfig, SubwordConfig, TokenizerConfig, WordConfig};
use lookback::data::{Pair, Tokenizers, UNK};
use lookback::report::alignment::{AlignmentCounts, Gold, links, words_of_ids, words_of_tokens};
use lookback::report::attention::Part;
use std::collections::BTreeSet;

#[test]
fn pharaoh_lines_have_sure_and_possible_links() {
    let gold = Gold::parse("0-0 2-1 1?1 3p2").unwrap();
    assert_eq!(gold.sure, BTreeSet::from([(0, 0), (2, 1)]));
    assert_eq!(gold.possible, BTreeSet::from([(0, 0), (2, 1), (1, 1), (3, 2)]));
    assert_eq!(Gold::parse("").unwrap(), Gold::default());
    assert_eq!((gold.beyond(4, 3), gold.beyond(3, 3), gold.beyond(4, 2)), (None, Some((3, 2)), Some((3, 2))));
    for line in ["0", "a-b", "0-", "-1", "0-1-2", "0+1", "0–1", "1-99999999999999999999999"] {
        assert!(Gold::parse(line).unwrap_err().starts_with(&format!("\"{line}\" is no link")), "{line}");
    }
}

#[test]
fn the_error_rate_on_paper() {
    let mut counts = AlignmentCounts::default();
    assert_eq!(counts.error_rate(), 0.0, "nothing to link");
    // A = {00, 11, 21}, S = {00, 22}, P = S and {11}: 1 - (1 + 2) / (3 + 2).
    counts.add(&BTreeSet::from([(0, 0), (1, 1), (2, 1)]), &Gold::parse("0-0 2-2 1?1").unwrap());
    assert!((counts.error_rate() - 0.4).abs() < 1e-12);
    // A second sentence without a fault: 1 - (2 + 3) / (4 + 3).
    counts.add(&BTreeSet::from([(0, 0)]), &Gold::sure([(0, 0)]));
    assert!((counts.error_rate() - (1.0 - 5.0 / 7.0)).abs() < 1e-12);
}

#[test]
fn tokens_are_pooled_to_words() {
    // Source words: tokens 0 and 1, token 2; the last column is the end symbol. Target words: tokens 0 and 1.
    let rows = [0.3, 0.3, 0.35, 0.05, 0.0, 0.1, 0.4, 0.5, 0.0, 0.0, 0.0, 1.0];
    let map = map(Part::Cross, [1, 1], 4, &rows);
    // Pooled: word 0 has (0.6 + 0.1) / 2, word 1 has (0.35 + 0.4) / 2.
    assert_eq!(links(&map, &[0, 0, 1], &[0, 0]), BTreeSet::from([(1, 0)]));
    assert_eq!(links(&map, &[0, 0, 1], &[0, 1]), BTreeSet::from([(0, 0), (1, 1)]));
    assert_eq!(links(&map, &[], &[]), BTreeSet::new());
}

#[test]
fn words_of_tokens_are_those_between_spaces_whatever_the_tokenizer() {
    let text = "the dogs,  running dogs.";
    let subword = || SubwordConfig { vocab_size: 30, ..SubwordConfig::default() };
    for config in [
        TokenizerConfig::Word(WordConfig::default()),
        TokenizerConfig::Char(CharConfig::default()),
        TokenizerConfig::Bpe(subword()),
        TokenizerConfig::Unigram(subword()),
    ] {
        let pairs = [Pair::new(text, text), Pair::new("the dog runs", "the dog runs")];
        let tokenizers = Tokenizers::train(&pairs, &config).unwrap();
        let (ids, words) = (tokenizers.source().encode(text), words_of_tokens(text, tokenizers.source()));
        assert_eq!(words.len(), ids.len(), "{config:?}");
        assert!(words.is_sorted() && words.first() == Some(&0) && words.last() == Some(&3), "{config:?}: {words:?}");
        let last: Vec<u32> = ids.iter().zip(&words).filter(|(_, word)| **word == 3).map(|(id, _)| *id).collect();
        assert_eq!(tokenizers.source().decode(&last).trim(), "dogs.", "{config:?}");
        // What a model has written has the same words.
        assert_eq!(words_of_ids(&ids, tokenizers.source()), words, "{config:?}");
    }
}

#[test]
fn an_unknown_word_that_was_written_is_one_token_of_one_word() {
    let pairs = [Pair::new("the dog sleeps", "the dog sleeps")];
    let tokenizers = Tokenizers::train(&pairs, &TokenizerConfig::Word(WordConfig::default())).unwrap();
    let ids = [tokenizers.target().encode("the"), vec![UNK], tokenizers.target().encode("sleeps")].concat();
    assert_eq!(tokenizers.target().decode(&ids), "the <unk> sleeps");
    assert_eq!(words_of_ids(&ids, tokenizers.target()), [0, 1, 2]);
    assert_eq!(words_of_ids(&[], tokenizers.target()), [0; 0]);
}
