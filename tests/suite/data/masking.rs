//! Hidden words: which are chosen, what becomes of them, and how tokenizers read them.

use lookback::data::masking::{Masked, Masking};
use lookback::data::tokenizer::{CharConfig, SubwordConfig, WordConfig};
use lookback::data::{BOS, EOS, MASK, PAD, Tokenizer, TokenizerConfig, Tokenizers, UNK};
use lookback::random::{Purpose, Stream};

const MASKING: Masking = Masking { mask: 4, vocab_size: 50, rate: 0.15 };

fn stream(text: u64) -> Stream {
    Stream::new(1, Purpose::Masking, &[0, text])
}

/// Places that are asked for.
fn chosen(masked: &Masked) -> Vec<usize> {
    (0..masked.asked.len()).filter(|i| masked.asked[*i] != PAD).collect()
}

#[test]
fn of_the_tokens_a_part_is_chosen_and_ends_and_unknown_words_never_are() {
    let text: Vec<u32> = [BOS, UNK, EOS].into_iter().chain(5..45).collect();
    let mut counts = vec![0; text.len()];
    for number in 0..2000 {
        let masked = MASKING.measured(&text, &stream(number));
        assert_eq!(masked, MASKING.measured(&text, &stream(number)), "the same every time");
        let chosen = chosen(&masked);
        assert_eq!(chosen.len(), 6, "15 % of 40");
        for (place, &token) in text.iter().enumerate() {
            let is_chosen = chosen.contains(&place);
            assert_eq!(masked.read[place], if is_chosen { MASKING.mask } else { token });
            assert_eq!(masked.asked[place], if is_chosen { token } else { PAD });
            counts[place] += usize::from(is_chosen);
        }
    }
    assert_eq!(counts[..3], [0, 0, 0]);
    // 300 on average, with a deviation of 16.
    assert!(counts[3..].iter().all(|n| (220..380).contains(n)), "{counts:?}");
    assert_eq!(chosen(&MASKING.measured(&[7], &stream(0))), [0], "at least one, if there is one");
    assert!(chosen(&MASKING.measured(&[EOS], &stream(0))).is_empty());
    assert!(chosen(&MASKING.measured(&[], &stream(0))).is_empty());
}

#[test]
fn of_what_is_learnt_from_most_is_hidden_some_is_another_word_and_some_stays() {
    let text: Vec<u32> = (5..45).collect();
    let (mut hidden, mut same, mut other) = (0, 0, 0);
    for number in 0..2000 {
        let masked = MASKING.learnt(&text, &stream(number));
        for (place, &token) in text.iter().enumerate() {
            match (masked.asked[place] != PAD, masked.read[place]) {
                (false, read) => assert_eq!(read, token),
                (true, read) if read == MASKING.mask => hidden += 1,
                (true, read) if read == token => same += 1,
                (true, read) => {
                    assert!((UNK + 1..50).contains(&read), "{read} is a word");
                    other += 1;
                }
            }
        }
    }
    let total = f64::from(hidden + same + other);
    assert_eq!(total, 12_000.0);
    let close = |n: i32, share: f64| (f64::from(n) / total - share).abs() < 0.012;
    // Of the replacements one in 46 is the word itself or the mask.
    assert!(close(hidden, 0.8) && close(same, 0.1) && close(other, 0.1), "{hidden} {same} {other}");
}

fn trained(config: TokenizerConfig) -> Tokenizers {
    let lines = ["the old dog looks back.", "a dog (old) looks at the sea", "the sea looks old"];
    let tokenizers = Tokenizers::train_text(&lines, &(&config).into(), true).unwrap();
    let dir = tempfile::TempDir::new().unwrap();
    tokenizers.save(dir.path().join("t.json")).unwrap();
    let read = Tokenizers::load(dir.path().join("t.json")).unwrap();
    assert_eq!(read.fingerprint(), tokenizers.fingerprint());
    read
}

/// The tokens before and after the first hidden word, which the vocabulary all holds.
fn hidden(tokenizer: &Tokenizer, text: &str) -> (Vec<u32>, Vec<u32>) {
    assert!(!tokenizer.encode(text).contains(&UNK), "{text}: {:?}", tokenizer.unknown(text));
    hidden_among_unknown(tokenizer, text)
}

fn hidden_among_unknown(tokenizer: &Tokenizer, text: &str) -> (Vec<u32>, Vec<u32>) {
    let mask = tokenizer.mask().expect("it has one");
    let ids = tokenizer.encode(text);
    assert_eq!(ids.iter().filter(|id| **id == mask).count(), text.matches(MASK).count(), "{text}");
    let split = ids.iter().position(|id| *id == mask).unwrap_or(ids.len());
    (ids[..split].to_vec(), ids[(split + 1).min(ids.len())..].to_vec())
}

#[test]
fn every_tokenizer_reads_a_hidden_word_as_one_token_among_the_others() {
    let subword = |vocab_size| SubwordConfig { vocab_size, ..SubwordConfig::default() };
    let kinds = [
        TokenizerConfig::Word(WordConfig::default()),
        TokenizerConfig::Bpe(subword(60)),
        TokenizerConfig::Unigram(subword(60)),
        TokenizerConfig::ByteBpe(subword(300)),
        TokenizerConfig::WordPiece(subword(80)),
    ];
    for config in kinds {
        let tokenizers = trained(config.clone());
        let tokenizer = tokenizers.source();
        let whole = tokenizer.encode("the old dog looks back.");
        let (before, after) = hidden(tokenizer, "the old <mask> looks back.");
        assert!(whole.starts_with(&before) && !before.is_empty(), "{config:?}");
        assert!(whole.ends_with(&after) && !after.is_empty(), "{config:?}");
        let word = whole.len() - before.len() - after.len();
        assert!(word >= 1, "{config:?}: the hidden word is what is between");
        let shown = tokenizer.decode(&tokenizer.encode("the old <mask> looks"));
        assert_eq!(shown, "the old <mask> looks", "{config:?}");
        // Punctuation that touches it is that of a word.
        let (_, after) = hidden(tokenizer, "the old dog looks <mask>.");
        assert!(whole.ends_with(&after) && after.len() == 1, "{config:?}");
        assert_eq!(tokenizer.encode("[MASK]"), tokenizer.encode(MASK), "as BERT spells it");
        assert!(tokenizer.label(tokenizer.mask().unwrap()).contains(MASK));
    }
    let tokenizers = trained(TokenizerConfig::Char(CharConfig::default()));
    let (before, after) = hidden(tokenizers.source(), "the <mask>ld dog");
    assert_eq!((before.len(), after.len()), (4, 6), "of letters a letter");
}

#[test]
fn a_hidden_word_that_touches_others_is_one_token_also_where_nothing_is_split() {
    let config = TokenizerConfig::Word(WordConfig { split_punctuation: false, ..WordConfig::default() });
    let tokenizers = trained(config);
    let (before, after) = hidden_among_unknown(tokenizers.source(), "the <mask>.");
    assert_eq!((before, after), (tokenizers.source().encode("the"), vec![UNK]));
    assert_eq!(tokenizers.source().unknown("x<mask> the"), ["x"]);
}

#[test]
fn the_character_that_stands_for_hidden_words_is_lost_from_texts() {
    let lines = ["a\u{fffc} b", "b\u{fffc}", "\u{fffc}"];
    for config in [TokenizerConfig::Word(WordConfig::default()), TokenizerConfig::Char(CharConfig::default())] {
        let tokenizers = Tokenizers::train_text(&lines, &(&config).into(), true).unwrap();
        assert_eq!(tokenizers.source().encode("a\u{fffc} b"), tokenizers.source().encode("a b"));
        // Without hidden words it is a character as any.
        let plain = Tokenizers::train_text(&lines, &(&config).into(), false).unwrap();
        assert_eq!(plain.source().mask(), None);
        assert!(plain.source().decode(&plain.source().encode("b\u{fffc}")).contains('\u{fffc}'));
    }
}

#[test]
fn a_vocabulary_without_hidden_words_reads_the_mark_as_text() {
    let config = TokenizerConfig::Char(CharConfig::default());
    let tokenizers = Tokenizers::train_text(&["<mask>"], &(&config).into(), false).unwrap();
    assert_eq!(tokenizers.source().mask(), None);
    assert_eq!(tokenizers.source().encode(MASK).len(), MASK.len());
}

#[test]
fn word_pieces_begin_a_text_take_the_longest_piece_and_leave_no_accents() {
    let settings = SubwordConfig { vocab_size: 70, lowercase: true, ..SubwordConfig::default() };
    let lines = ["Looking looked looks look", "the doing of the doer looks"];
    let make =
        || Tokenizers::train_text(&lines, &(&TokenizerConfig::WordPiece(settings.clone())).into(), false).unwrap();
    let tokenizers = make();
    assert_eq!(tokenizers.fingerprint(), make().fingerprint(), "the same every time");
    let tokenizer = tokenizers.source();
    let tokens =
        |text: &str| tokenizer.encode(text).iter().map(|id| tokenizer.token(*id).to_owned()).collect::<Vec<_>>();
    assert_eq!(tokens("look")[..2], ["<s>", "look"]);
    assert_eq!(tokens("LÓOK"), tokens("look"));
    let looking = tokens("looking");
    assert_eq!(looking[1], "looking".strip_suffix(&looking[2..].concat().replace("##", "")).unwrap());
    assert_eq!(tokenizer.decode(&tokenizer.encode("Looked   the doer")), "looked the doer");
    assert_eq!(tokens("xyz look"), ["<s>", "<unk>", "look"]);
    let least = SubwordConfig { vocab_size: 10, ..settings };
    let error = Tokenizers::train_text(&lines, &(&TokenizerConfig::WordPiece(least)).into(), false).unwrap_err();
    assert!(error.to_string().contains("tokenizer.vocab_size: must be at least"), "{error}");
}
