//! Tokenizers: exact ids, lossless decoding, deterministic training, and refused settings and files.

use std::fs;

use lookback::data::tokenizer::{CharConfig, SPECIALS, SubwordConfig, WordConfig};
use lookback::data::{BOS, EOS, PAD, Pair, Split, TaskConfig, TokenizerConfig, Tokenizers, TokenizersConfig, UNK};

/// Texts with what makes decoding hard: punctuation, apostrophes, several scripts, combining marks, markers, double
/// spaces.
const HARD: [&str; 12] = [
    "The dog's bowl (a red one), isn't here... or is it?",
    "Aujourd'hui, l'été « arrive » : quatre-vingt-dix-sept !",
    "\"Quoted.\" 'single' -- dash - and a-b, a- b, a -b",
    "3.14 + 1,000 = 1003.14; 50% of $20 is €10",
    "e\u{301}te\u{301} n\u{303}",
    "снег идёт; 雪が降る。 हिन्दी भाषा",
    "I_TURN_LEFT I_JUMP x_1^2",
    "<s> literal </s> <unk> <pad>",
    "tab\there",
    "mail@example.org/path?q=1&r=#2",
    "...!?",
    "👩\u{200d}🔬 emoji",
];

fn pairs(texts: &[&str]) -> Vec<Pair> {
    texts.iter().map(|text| Pair::new(*text, *text)).collect()
}

fn char_config() -> TokenizerConfig {
    TokenizerConfig::Char(CharConfig::default())
}

fn word_config() -> TokenizerConfig {
    TokenizerConfig::Word(WordConfig::default())
}

fn subword(vocab_size: usize) -> SubwordConfig {
    SubwordConfig { vocab_size, ..SubwordConfig::default() }
}

/// The kinds whose vocabulary comes from the training text, with one that the small texts here fit into.
fn kinds_of_text() -> [TokenizerConfig; 4] {
    [char_config(), word_config(), TokenizerConfig::Bpe(subword(300)), TokenizerConfig::Unigram(subword(300))]
}

/// Every kind: bytes besides, of which all are known before there is any text.
fn every_kind() -> impl Iterator<Item = TokenizerConfig> {
    kinds_of_text().into_iter().chain([TokenizerConfig::ByteBpe(subword(300))])
}

/// Some hundred sentence pairs whose words repeat, as in a real corpus.
fn number_pairs() -> Vec<Pair> {
    TaskConfig::from_name("numbers").unwrap().generate(Split::Train, 400, 5).unwrap()
}

fn error(pairs: &[Pair], config: &TokenizerConfig) -> String {
    Tokenizers::train(pairs, config).unwrap_err().to_string()
}

#[test]
fn bytes_know_every_text_and_change_none() {
    let pairs: Vec<Pair> = number_pairs();
    let tokenizers = Tokenizers::train(&pairs, &TokenizerConfig::ByteBpe(subword(300))).unwrap();
    let tokenizer = tokenizers.source();
    assert_eq!(tokenizer.vocab_size(), 300);
    for text in HARD.iter().copied().chain(["two\n\nlines\n", "  spaces  ", "\u{0}\u{feff}", ""]) {
        let ids = tokenizer.encode(text);
        assert!(!ids.contains(&UNK), "{text:?}");
        assert_eq!(tokenizer.decode(&ids), text);
    }
    let known = &pairs[0].source;
    assert!(tokenizer.encode(known).len() < known.len(), "merges make {known} shorter");
    let message = error(&pairs, &TokenizerConfig::ByteBpe(subword(100)));
    assert!(message.contains("tokenizer.vocab_size") && message.contains("at least 260"), "{message}");
}

#[test]
fn words_of_a_three_line_corpus_get_exact_ids() {
    let pairs = [Pair::new("the cat .", "x"), Pair::new("the dog", "y"), Pair::new("a dog", "x")];
    let tokenizers = Tokenizers::train(&pairs, &word_config()).unwrap();
    let source = tokenizers.source();
    // Count descending, then the symbol: dog 2, the 2, then ".", "a", "cat".
    let tokens: Vec<&str> = (0..9).map(|id| source.token(id)).collect();
    assert_eq!(tokens, ["<pad>", "<s>", "</s>", "<unk>", "dog", "the", ".", "a", "cat"]);
    assert_eq!(source.encode("the bird . a dog"), [5, UNK, 6, 7, 4]);
    assert_eq!(source.vocab_size(), 9);
    assert_eq!(tokenizers.target().encode("y x"), [5, 4]);
    assert_eq!(source.id("cat"), Some(8));
    assert_eq!(source.id("bird"), None);
}

#[test]
fn characters_of_a_small_corpus_get_exact_ids() {
    let tokenizers = Tokenizers::train(&pairs(&["ab b", "b é"]), &char_config()).unwrap();
    // b 3, space 2, then a and é.
    assert_eq!(tokenizers.source().encode("é a?b"), [7, 5, 6, UNK, 4]);
    assert_eq!(tokenizers.source().decode(&[7, 5, 6, UNK, 4]), "é a<unk>b");
    assert_eq!(tokenizers.source().label(5), "␣");
}

#[test]
fn byte_pairs_of_a_small_corpus_get_exact_ids() {
    let tokenizers = Tokenizers::train(&pairs(&["ab ab abc"]), &TokenizerConfig::Bpe(subword(11))).unwrap();
    let source = tokenizers.source();
    // Characters by code point, then merges: a+b and ▁+a both stand 3 times, and a is the older token.
    let tokens: Vec<&str> = (4..11).map(|id| source.token(id)).collect();
    assert_eq!(tokens, ["a", "b", "c", "▁", "ab", "▁ab", "▁abc"]);
    assert_eq!(source.encode("abc ab b"), [10, 9, 7, 5]);
    assert_eq!(source.decode(&[10, 9, 7, 5]), "abc ab b");
}

#[test]
fn special_ids_are_fixed_and_left_out_of_text() {
    assert_eq!((PAD, BOS, EOS, UNK), (0, 1, 2, 3));
    for config in every_kind() {
        let tokenizers = Tokenizers::train(&number_pairs(), &config).unwrap();
        let target = tokenizers.target();
        assert_eq!((0..4).map(|id| target.token(id)).collect::<Vec<_>>(), SPECIALS);
        let ids = target.encode("deux-cents");
        let with_specials = [&[BOS], &ids[..], &[EOS, PAD, PAD]].concat();
        assert_eq!(target.decode(&with_specials), "deux-cents", "{config:?}");
        assert_eq!(target.decode(&[]), "");
    }
}

#[test]
fn every_kind_decodes_what_it_encoded() {
    let config = [
        char_config(),
        word_config(),
        TokenizerConfig::Bpe(subword(400)),
        TokenizerConfig::Unigram(subword(400)),
        TokenizerConfig::Word(WordConfig { split_punctuation: false, ..WordConfig::default() }),
    ];
    for config in config {
        let tokenizers = Tokenizers::train(&pairs(&HARD), &config).unwrap();
        for text in HARD {
            let ids = tokenizers.source().encode(text);
            // Whole words that are spelled like special tokens are not learnt: a test of their own has them.
            let is_whole = matches!(&config, TokenizerConfig::Word(word) if !word.split_punctuation);
            if is_whole && text.contains("<pad>") {
                continue;
            }
            assert!(!ids.contains(&UNK), "{text}: {ids:?}");
            let is_word = matches!(config, TokenizerConfig::Word(_));
            // Words are separated by any white space and come back separated by plain spaces.
            let expected = if is_word { words_joined(text) } else { text.to_owned() };
            assert_eq!(tokenizers.source().decode(&ids), expected, "{config:?}");
        }
    }
}

fn words_joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn only_plain_spaces_are_words_apart_for_subwords_and_all_are_kept() {
    let text = "a  b\u{a0}c\u{202f}! ";
    for config in [TokenizerConfig::Bpe(subword(40)), TokenizerConfig::Unigram(subword(40)), char_config()] {
        let tokenizers = Tokenizers::train(&pairs(&[text, " a"]), &config).unwrap();
        for text in [text, " a", "a", " ", "  "] {
            let ids = tokenizers.source().encode(text);
            assert_eq!(tokenizers.source().decode(&ids), text, "{config:?}");
        }
        assert!(tokenizers.source().encode("").is_empty());
        let (one, two) = (tokenizers.source().encode(" a"), tokenizers.source().encode("  a"));
        assert!(two.ends_with(&one) && two.len() == one.len() + 1, "{config:?}: {one:?} {two:?}");
    }
}

#[test]
fn punctuation_leaves_words_whole_and_is_marked_where_it_touches() {
    let text = "l'eau, (dit-il)";
    let tokenizers = Tokenizers::train(&pairs(&[text]), &word_config()).unwrap();
    let source = tokenizers.source();
    let ids = source.encode(text);
    let tokens: Vec<&str> = ids.iter().map(|&id| source.token(id)).collect();
    assert_eq!(tokens, ["l", "￭'￭", "eau", "￭,", "(￭", "dit", "￭-￭", "il", "￭)"]);
    let labels: Vec<String> = ids.iter().map(|&id| source.label(id)).collect();
    assert_eq!(labels, ["l", "'", "eau", ",", "(", "dit", "-", "il", ")"]);
    let whole = TokenizerConfig::Word(WordConfig { split_punctuation: false, ..WordConfig::default() });
    let tokenizers = Tokenizers::train(&pairs(&[text]), &whole).unwrap();
    assert_eq!(tokenizers.source().vocab_size(), SPECIALS.len() + 2);
}

#[test]
fn no_subword_reaches_from_a_word_into_punctuation() {
    let text = ["dog. dog. dog. dog."; 20].join(" ");
    for config in [TokenizerConfig::Bpe(subword(60)), TokenizerConfig::Unigram(subword(60))] {
        let tokenizers = Tokenizers::train(&pairs(&[&text]), &config).unwrap();
        let source = tokenizers.source();
        let tokens: Vec<&str> = (4..source.vocab_size() as u32).map(|id| source.token(id)).collect();
        assert!(tokens.contains(&"▁dog") && tokens.contains(&"."), "{tokens:?}");
        assert!(!tokens.iter().any(|token| token.len() > 1 && token.contains('.')), "{tokens:?}");
    }
}

#[test]
fn special_tokens_in_the_text_are_plain_text() {
    for config in every_kind() {
        let tokenizers = Tokenizers::train(&pairs(&HARD), &config).unwrap();
        let ids = tokenizers.source().encode("<s> literal </s> <unk> <pad>");
        assert!(ids.iter().all(|&id| id > UNK), "{config:?}: {ids:?}");
    }
}

#[test]
fn words_that_are_spelled_like_special_tokens_are_not_learnt() {
    let whole = |max_size| {
        let config = WordConfig { split_punctuation: false, max_size, ..WordConfig::default() };
        Tokenizers::train(&pairs(&["<pad> <pad> dog </s> cat <unk> <s> dog"]), &TokenizerConfig::Word(config)).unwrap()
    };
    // They take no room from others.
    for max_size in [None, Some(SPECIALS.len() + 2)] {
        let tokenizers = whole(max_size);
        let source = tokenizers.source();
        assert_eq!(source.vocab_size(), SPECIALS.len() + 2);
        assert_eq!(source.encode("<pad> cat </s> dog <unk>"), [UNK, 5, UNK, 4, UNK]);
        assert_eq!(source.decode(&source.encode("<s> dog")), "<unk> dog");
    }
}

#[test]
fn what_was_never_seen_becomes_unknown_and_nothing_panics() {
    for config in kinds_of_text() {
        let tokenizers = Tokenizers::train(&number_pairs(), &config).unwrap();
        let source = tokenizers.source();
        assert!(source.encode("one 雪雪 two").contains(&UNK), "{config:?}");
        assert!(source.decode(&source.encode("one 雪雪 two")).contains("<unk>"));
        assert!(source.decode(&[u32::MAX]).contains("<unk>"));
        for text in ["\u{0}", "\n", "￭", "▁", "￭￭ ▁▁", &"long".repeat(50_000), "\u{feff}"] {
            source.decode(&source.encode(text));
        }
    }
}

#[test]
fn training_twice_gives_the_same_file_byte_for_byte() {
    let dir = tempfile::tempdir().unwrap();
    let mut pairs = number_pairs();
    pairs.extend(HARD.iter().map(|text| Pair::new(*text, *text)));
    for config in every_kind() {
        let files: Vec<Vec<u8>> = (0..3)
            .map(|i| {
                let path = dir.path().join(format!("{i}.json"));
                Tokenizers::train(&pairs, &config).unwrap().save(&path).unwrap();
                fs::read(path).unwrap()
            })
            .collect();
        assert!(files.iter().all(|file| *file == files[0]), "{config:?}");
    }
}

#[test]
fn saving_and_loading_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tokenizer.json");
    let training = number_pairs();
    let unseen = TaskConfig::from_name("numbers").unwrap().generate(Split::Test, 100, 5).unwrap();
    for config in every_kind() {
        let before = Tokenizers::train(&training, &config).unwrap();
        before.save(&path).unwrap();
        let after = Tokenizers::load(&path).unwrap();
        assert_eq!(after.config(), &TokenizersConfig::from(&config));
        assert_eq!(after.fingerprint(), before.fingerprint());
        assert_eq!(after.fingerprint(), lookback::data::sha256_of_file(&path).unwrap());
        for pair in &unseen {
            assert_eq!(after.source().encode(&pair.source), before.source().encode(&pair.source));
            assert_eq!(after.target().encode(&pair.target), before.target().encode(&pair.target));
        }
    }
}

#[test]
fn the_fingerprint_tells_vocabularies_apart() {
    let one = Tokenizers::train(&pairs(&["a b"]), &word_config()).unwrap();
    let other = Tokenizers::train(&pairs(&["a c"]), &word_config()).unwrap();
    assert_ne!(one.fingerprint(), other.fingerprint());
    assert_eq!(one.fingerprint().len(), 64);
}

#[test]
fn a_shared_vocabulary_holds_both_sides_and_separate_ones_do_not() {
    let pairs = [Pair::new("dog", "chien")];
    let separate = Tokenizers::train(&pairs, &word_config()).unwrap();
    assert_eq!((separate.source().id("chien"), separate.target().id("dog")), (None, None));
    let shared = TokenizerConfig::Word(WordConfig { shared: true, ..WordConfig::default() });
    let shared = Tokenizers::train(&pairs, &shared).unwrap();
    assert_eq!(shared.source().encode("dog chien"), shared.target().encode("dog chien"));
    assert!(shared.source().id("chien").is_some() && shared.target().id("dog").is_some());
}

#[test]
fn lowercase_applies_to_training_and_to_later_text() {
    let configs = [
        TokenizerConfig::Char(CharConfig { lowercase: true, ..CharConfig::default() }),
        TokenizerConfig::Word(WordConfig { lowercase: true, ..WordConfig::default() }),
        TokenizerConfig::Bpe(SubwordConfig { lowercase: true, ..subword(40) }),
        TokenizerConfig::Unigram(SubwordConfig { lowercase: true, ..subword(40) }),
    ];
    for config in configs {
        let tokenizers = Tokenizers::train(&pairs(&["Été Chaud"]), &config).unwrap();
        let ids = tokenizers.source().encode("ÉTÉ chaud");
        assert_eq!(tokenizers.source().decode(&ids), "été chaud");
    }
}

#[test]
fn rare_words_and_words_beyond_the_limit_stay_out() {
    let pairs = pairs(&["a a a b b c"]);
    let word = |min_count, max_size| TokenizerConfig::Word(WordConfig { min_count, max_size, ..WordConfig::default() });
    let encode = |config| Tokenizers::train(&pairs, &config).unwrap().source().encode("a b c");
    assert_eq!(encode(word(1, None)), [4, 5, 6]);
    assert_eq!(encode(word(2, None)), [4, 5, UNK]);
    assert_eq!(encode(word(1, Some(5))), [4, UNK, UNK]);
}

#[test]
fn the_vocabulary_keeps_to_its_size_and_subwords_shorten_text() {
    let pairs = number_pairs();
    let chars = Tokenizers::train(&pairs, &char_config()).unwrap();
    for config in [TokenizerConfig::Bpe(subword(97)), TokenizerConfig::Unigram(subword(97))] {
        let tokenizers = Tokenizers::train(&pairs, &config).unwrap();
        for (tokenizer, chars) in [(tokenizers.source(), chars.source()), (tokenizers.target(), chars.target())] {
            assert!((80..=97).contains(&tokenizer.vocab_size()), "{}", tokenizer.vocab_size());
            let text = "nine hundred ninety-nine";
            assert!(tokenizer.encode(text).len() < chars.encode(text).len());
        }
    }
}

#[test]
fn a_batch_is_encoded_in_order() {
    let tokenizers = Tokenizers::train(&number_pairs(), &TokenizerConfig::Bpe(subword(200))).unwrap();
    let texts: Vec<String> = number_pairs().into_iter().map(|pair| pair.source).collect();
    let one_by_one: Vec<Vec<u32>> = texts.iter().map(|text| tokenizers.source().encode(text)).collect();
    assert_eq!(tokenizers.source().encode_batch(&texts), one_by_one);
}

#[test]
fn a_vocabulary_of_nothing_but_special_tokens_is_an_error() {
    for config in kinds_of_text() {
        let message = error(&[Pair::new("a", "")], &config);
        let expected = "tokenizer: the target vocabulary would hold nothing but special tokens; check the data";
        assert_eq!(message, expected);
        assert!(error(&[], &config).starts_with("tokenizer: the"), "no pairs");
    }
    let rare = TokenizerConfig::Word(WordConfig { min_count: 3, ..WordConfig::default() });
    assert!(error(&pairs(&["a b"]), &rare).ends_with("special tokens; lower tokenizer.min_count = 3"));
}

#[test]
fn a_vocabulary_too_small_for_the_characters_says_how_large_it_must_be() {
    for config in [TokenizerConfig::Bpe(subword(10)), TokenizerConfig::Unigram(subword(10))] {
        let message = error(&pairs(&["abcdefgh"]), &config);
        let expected = "tokenizer.vocab_size: must be at least 13 for this text \
                        (9 different characters and 4 special tokens), got 10";
        assert!(message.starts_with(expected), "{message}");
    }
    let enough = TokenizerConfig::Bpe(subword(13));
    assert_eq!(Tokenizers::train(&pairs(&["abcdefgh"]), &enough).unwrap().source().vocab_size(), 13);
}

#[test]
fn sizes_out_of_range_are_refused_by_name() {
    let tiny = TokenizerConfig::Bpe(subword(4));
    assert_eq!(error(&pairs(&["a"]), &tiny), "tokenizer.vocab_size: must lie in 5..=1000000, got 4");
    let huge = TokenizerConfig::Unigram(subword(usize::MAX));
    assert!(error(&pairs(&["a"]), &huge).starts_with("tokenizer.vocab_size: must lie in 5..=1000000"));
    let small = TokenizerConfig::Word(WordConfig { max_size: Some(4), ..WordConfig::default() });
    assert!(error(&pairs(&["a"]), &small).starts_with("tokenizer.max_size: must be at least 5"));
}

#[test]
fn damaged_files_name_the_file_and_the_fault() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tokenizer.json");
    Tokenizers::train(&pairs(&["a b"]), &TokenizerConfig::Bpe(subword(20))).unwrap().save(&path).unwrap();
    let good = fs::read_to_string(&path).unwrap();
    let cases = [
        (good[..good.len() / 2].to_owned(), "not a tokenizer file: "),
        ("not json".to_owned(), "not a tokenizer file: "),
        (good.replace("\"format\": 1", "\"format\": 2"), "tokenizer format 2, but this program reads format 1"),
        (good.replace("\"merges\": [", "\"merges\": [[\"q\", \"a\"],"), "source: the merges do not fit the vocabulary"),
        (good.replacen("\"a\"", "\"b\"", 1), "source: `b` stands in the vocabulary twice"),
    ];
    for (text, expected) in cases {
        assert_ne!(text, good);
        fs::write(&path, text).unwrap();
        let message = Tokenizers::load(&path).unwrap_err().to_string();
        assert!(message.starts_with(&format!("{}: {expected}", path.display())), "{message}");
    }
    assert!(Tokenizers::load(dir.path().join("none")).unwrap_err().to_string().contains("none: "));
}

#[test]
fn settings_are_told_apart_by_kind_and_misspelt_keys_are_refused() {
    let config: TokenizerConfig = toml::from_str("kind = \"bpe\"\nvocab_size = 123").unwrap();
    assert_eq!(config, TokenizerConfig::Bpe(subword(123)));
    for kind in ["char", "word", "bpe", "unigram"] {
        let message = toml::from_str::<TokenizerConfig>(&format!("kind = \"{kind}\"\nvocabsize = 3")).unwrap_err();
        assert!(message.to_string().contains("vocabsize"), "{message}");
        assert!(toml::from_str::<TokenizerConfig>(&format!("kind = \"{kind}\"")).is_ok());
    }
}

/// Letters on one side, phones on the other.
fn sides() -> TokenizersConfig {
    toml::from_str("source = { kind = \"char\" }\ntarget = { kind = \"word\", split_punctuation = false }").unwrap()
}

#[test]
fn each_side_may_have_its_own_kind() {
    let pairs = [Pair::new("den", "d ɛ n"), Pair::new("end", "ɛ n d")];
    let tokenizers = Tokenizers::train(&pairs, sides()).unwrap();
    assert_eq!(tokenizers.source().encode("den").len(), 3);
    assert_eq!(tokenizers.target().encode("d ɛ n").len(), 3);
    assert_eq!(tokenizers.source().decode(&tokenizers.source().encode("need")), "need");
    assert_eq!(tokenizers.target().decode(&tokenizers.target().encode("n ɛ")), "n ɛ");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tokenizer.json");
    tokenizers.save(&path).unwrap();
    let loaded = Tokenizers::load(&path).unwrap();
    assert_eq!((loaded.config(), loaded.fingerprint()), (&sides(), tokenizers.fingerprint()));
    assert_eq!(loaded.source().encode("dn"), tokenizers.source().encode("dn"));
}

#[test]
fn what_is_wrong_with_a_side_names_the_side() {
    let read = |text: &str| toml::from_str::<TokenizersConfig>(text);
    let message = read("source = { kind = \"char\" }").unwrap_err().to_string();
    assert!(message.contains("missing field `target`"), "{message}");
    let message = read("source = { kind = \"char\" }\ntarget = { kind = \"chars\" }").unwrap_err().to_string();
    assert!(message.contains("unknown variant `chars`"), "{message}");
    let message =
        read("kind = \"char\"\nsource = { kind = \"char\" }\ntarget = { kind = \"char\" }").unwrap_err().to_string();
    assert!(message.contains("unknown field `kind`"), "{message}");
    let shared = read("source = { kind = \"char\", shared = true }\ntarget = { kind = \"word\" }").unwrap();
    assert!(shared.validate().unwrap_err().to_string().starts_with("tokenizer.source.shared: "));
    let small = read("source = { kind = \"char\" }\ntarget = { kind = \"bpe\", vocab_size = 5 }").unwrap();
    let message = Tokenizers::train(&pairs(&["abc"]), &small).unwrap_err().to_string();
    assert!(message.starts_with("tokenizer.target.vocab_size: must be at least"), "{message}");
}

#[test]
fn the_unknown_parts_of_a_text_are_those_that_become_unknown_tokens() {
    for config in kinds_of_text() {
        let tokenizers = Tokenizers::train(&number_pairs(), &config).unwrap();
        let tokenizer = tokenizers.source();
        for text in ["one hundred", "", "one ☃ hundred", "日本 two", "q☃q"] {
            let n_unknown = tokenizer.encode(text).iter().filter(|&&id| id == UNK).count();
            let parts = tokenizer.unknown(text);
            assert_eq!(parts.len(), n_unknown, "{config:?}, {text:?}: {parts:?}");
            assert!(parts.iter().all(|part| text.contains(part.trim_start_matches('▁'))), "{text:?}: {parts:?}");
        }
        assert!(tokenizer.unknown("one ☃ hundred").concat().contains('☃'), "{config:?}");
    }
}

#[test]
fn scores_of_any_number_of_digits_are_written_and_read_back_as_they_are() {
    let score = |text: &str| {
        let pieces = format!(r#"[["▁a", {text}], ["▁b", -1.5]]"#);
        let config = r#"{ "kind": "unigram", "vocab_size": 16, "shared": true, "lowercase": false }"#;
        let source = format!(r#"{{ "kind": "unigram", "pieces": {pieces} }}"#);
        let json = format!(r#"{{ "format": 1, "config": {config}, "source": {source} }}"#);
        Tokenizers::from_json(json.as_bytes()).unwrap().to_json()
    };
    for text in [
        "-1.9145680000000001",
        "99000000000000000000000000000000000000000000237790060325162.1866",
        "-0.1234567890123456789",
    ] {
        let written = score(text);
        assert_eq!(Tokenizers::from_json(written.as_bytes()).unwrap().to_json(), written);
    }
}
