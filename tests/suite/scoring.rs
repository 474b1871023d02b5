//! Scores: BLEU and chrF against sacreBLEU's values for 1,200 corpora, everything else against values derived by hand.
//!
//! `tests/golden/scoring.py` writes the corpora and sacreBLEU's values.

use std::fs::File;
use std::path::Path;
use std::sync::LazyLock;

use flate2::read::GzDecoder;
use lookback::scoring::{
    Bleu, BleuScore, BleuTokenizer, Bootstrap, Chrf, ChrfStatistics, ChrfVariant, LengthBuckets, LengthUnit, Metric,
    Ratio, Scorer, SentenceStatistics, Smoothing, Summable, character_errors, edit_distance, error_rate,
    phoneme_errors, sentence_errors, sequence_matches, span_matches, token_matches, word_errors,
};
use serde::Deserialize;

/// The allowed difference from sacreBLEU, on scores from 0 to 100. Both compute in double precision from equal counts,
/// so only the order of a dozen roundings can differ.
const TOLERANCE: f64 = 1e-9;

#[derive(Deserialize)]
struct Golden {
    sacrebleu: String,
    corpora: Vec<Corpus>,
}

#[derive(Deserialize)]
struct Corpus {
    hypotheses: Vec<String>,
    references: Vec<Vec<String>>,
    bleu: Vec<GoldenBleu>,
    chrf: Vec<GoldenChrf>,
}

#[derive(Deserialize)]
struct GoldenBleu {
    tokenize: BleuTokenizer,
    lowercase: bool,
    smooth_method: String,
    smooth_value: Option<f64>,
    effective_order: bool,
    #[serde(flatten)]
    score: BleuScore,
    signature: String,
    tokenized: String,
    sentence: Option<f64>,
}

#[derive(Deserialize)]
struct GoldenChrf {
    word_order: usize,
    lowercase: bool,
    score: f64,
    signature: String,
    sentence: f64,
}

impl Corpus {
    fn references(&self) -> Vec<&[String]> {
        self.references.iter().map(Vec::as_slice).collect()
    }

    /// The references of the first hypothesis.
    fn first_references(&self) -> Vec<&str> {
        self.references.iter().map(|lines| lines[0].as_str()).collect()
    }
}

impl GoldenBleu {
    fn metric(&self) -> Bleu {
        let smoothing = match self.smooth_value {
            Some(value) => format!("{}[{value}]", self.smooth_method),
            None => self.smooth_method.clone(),
        };
        Bleu {
            tokenizer: self.tokenize,
            smoothing: smoothing.parse().unwrap(),
            lowercase: self.lowercase,
            effective_order: self.effective_order,
        }
    }
}

impl GoldenChrf {
    fn metric(&self) -> Chrf {
        let variant = if self.word_order == 0 { ChrfVariant::Chrf } else { ChrfVariant::ChrfPlusPlus };
        Chrf { variant, lowercase: self.lowercase }
    }
}

static GOLDEN: LazyLock<Golden> = LazyLock::new(|| {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/scoring.json.gz");
    let golden: Golden = serde_json::from_reader(GzDecoder::new(File::open(path).unwrap())).unwrap();
    assert!(golden.corpora.len() >= 1000);
    golden
});

fn assert_close(actual: f64, expected: f64, what: &str) {
    assert!((actual - expected).abs() <= TOLERANCE, "{what}: {actual} instead of {expected}");
}

/// sacreBLEU's signature with this crate in the place of sacreBLEU.
fn own_signature(signature: &str) -> String {
    let own = concat!("version:lookback-", env!("CARGO_PKG_VERSION"));
    signature.replace(&format!("version:{}", GOLDEN.sacrebleu), own)
}

/// What Python's `str.split` makes of a line.
fn python_words(line: &str) -> Vec<&str> {
    line.split(|character: char| character.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&character))
        .filter(|word| !word.is_empty())
        .collect()
}

#[test]
fn lines_are_tokenized_as_by_sacrebleu() {
    for (index, corpus) in GOLDEN.corpora.iter().enumerate() {
        for golden in &corpus.bleu {
            let tokenized = golden.tokenize.tokenize(corpus.hypotheses.last().unwrap());
            let tokens: Vec<&str> = tokenized.split(' ').filter(|token| !token.is_empty()).collect();
            assert_eq!(tokens, python_words(&golden.tokenized), "corpus {index}, {}", golden.tokenize);
        }
    }
}

#[test]
fn corpus_bleu_and_its_signature_are_those_of_sacrebleu() {
    for (index, corpus) in GOLDEN.corpora.iter().enumerate() {
        for golden in &corpus.bleu {
            let metric = golden.metric();
            let what = format!("corpus {index}, {metric:?}");
            let (score, expected) = (metric.corpus(&corpus.hypotheses, &corpus.references()).unwrap(), &golden.score);
            assert_eq!((score.counts, score.totals), (expected.counts, expected.totals), "{what}");
            assert_eq!((score.sys_len, score.ref_len), (expected.sys_len, expected.ref_len), "{what}");
            assert_close(score.score, expected.score, &what);
            assert_close(score.bp, expected.bp, &what);
            for (actual, expected) in score.precisions.iter().zip(expected.precisions) {
                assert_close(*actual, expected, &what);
            }
            assert_eq!(metric.signature(corpus.references.len()), own_signature(&golden.signature));
        }
    }
}

#[test]
fn sentence_bleu_is_that_of_sacrebleu() {
    for (index, corpus) in GOLDEN.corpora.iter().enumerate() {
        for golden in &corpus.bleu {
            if let Some(expected) = golden.sentence {
                let score = golden.metric().sentence(&corpus.hypotheses[0], &corpus.first_references()).score;
                assert_close(score, expected, &format!("corpus {index}, {:?}", golden.metric()));
            }
        }
    }
}

#[test]
fn chrf_and_its_signature_are_those_of_sacrebleu() {
    for (index, corpus) in GOLDEN.corpora.iter().enumerate() {
        for golden in &corpus.chrf {
            let metric = golden.metric();
            let what = format!("corpus {index}, {metric:?}");
            assert_close(metric.corpus(&corpus.hypotheses, &corpus.references()).unwrap(), golden.score, &what);
            let sentence = metric.sentence(&corpus.hypotheses[0], &corpus.first_references());
            assert_close(sentence, golden.sentence, &what);
            assert_eq!(metric.signature(corpus.references.len()), own_signature(&golden.signature));
        }
    }
}

#[test]
fn bleu_of_one_missing_word_is_as_computed_by_hand() {
    let score = Bleu::default().corpus(&["the cat sat on mat"], &[&["the cat sat on the mat"]]).unwrap();
    assert_eq!(score.counts, [5, 3, 2, 1]);
    assert_eq!(score.totals, [5, 4, 3, 2]);
    let expected = 100.0 * (1.0_f64 * 3.0 / 4.0 * 2.0 / 3.0 * 1.0 / 2.0).powf(0.25) * (-0.2_f64).exp();
    assert_close(score.score, expected, "BLEU");
    assert_close(Bleu::default().corpus(&["a b c d"], &[&["a b c d"]]).unwrap().score, 100.0, "BLEU of a copy");
}

#[test]
fn of_several_references_the_closest_length_and_the_largest_count_hold() {
    let bleu = Bleu { tokenizer: BleuTokenizer::None, ..Bleu::default() };
    let statistics = bleu.sentence_statistics("a a a b", &["a a x y z", "b a a"]);
    // Three is as close to four as five is, and shorter; the third `a` is in no reference.
    assert_eq!((statistics.sys_len, statistics.ref_len), (4, 3));
    assert_eq!(statistics.counts, [3, 1, 0, 0]);
}

#[test]
fn chrf_of_a_truncated_word_is_as_computed_by_hand() {
    // Precision 1 and 1, recall 2/3 and 1/2; the hypothesis has no n-grams of higher orders.
    assert_close(Chrf::default().sentence("ab", &["abc"]), 100.0 * 35.0 / 55.0, "chrF");
}

#[test]
fn tokenizers_and_smoothing_are_read_by_name() {
    for tokenizer in BleuTokenizer::ALL {
        assert_eq!(tokenizer.to_string().parse::<BleuTokenizer>().unwrap(), tokenizer);
        assert_eq!(serde_json::to_string(&tokenizer).unwrap(), format!("\"{tokenizer}\""));
    }
    assert!("14".parse::<BleuTokenizer>().unwrap_err().to_string().contains("`14`"));
    let read = |text: &str| text.parse::<Smoothing>();
    for smoothing in [Smoothing::Exp, Smoothing::Floor(0.125), Smoothing::AddK(3.0), Smoothing::None] {
        assert_eq!(read(&smoothing.to_string()).unwrap(), smoothing);
    }
    assert_eq!(read("floor").unwrap(), Smoothing::Floor(0.1));
    assert_eq!(read("add-k").unwrap(), Smoothing::AddK(1.0));
    for wrong in ["", "linear", "exp[1]", "floor[", "floor[]", "floor[-1]", "add-k[nan]", "add-k[x]"] {
        assert!(read(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn accuracy_counts_equal_lines_and_equal_positions() {
    assert_eq!(token_matches("a b c", "a x c d"), Ratio::of(2, 4));
    assert_eq!(token_matches("x a b c", "a b c"), Ratio::of(0, 4));
    assert_eq!(token_matches("", ""), Ratio::of(0, 0));
    assert_eq!(sequence_matches("a b", "a b"), Ratio::of(1, 1));
    assert_eq!(sequence_matches("a b", "a  b"), Ratio::of(0, 1));
}

#[test]
fn edit_distance_is_the_least_number_of_edits() {
    let distance = |left: &str, right: &str| edit_distance(left.as_bytes(), right.as_bytes());
    for (left, right, expected) in [
        ("kitten", "sitting", 3),
        ("intention", "execution", 5),
        ("", "abc", 3),
        ("abc", "abc", 0),
        ("aaaa", "aa", 2),
        ("abcd", "bcda", 2),
        ("ab", "ba", 2),
    ] {
        assert_eq!(distance(left, right), expected, "{left} {right}");
        assert_eq!(distance(right, left), expected, "{right} {left}");
    }
}

#[test]
fn error_rates_are_errors_of_the_corpus_over_its_length() {
    assert_eq!(word_errors("the hat sat down", "the cat sat"), Ratio::of(2, 3));
    assert_eq!(character_errors(" né e ", "nee"), Ratio::of(2, 3));
    assert_eq!(phoneme_errors("HH AH L OW1", "HH AH0 L OW1"), Ratio::of(1, 4));
    assert_eq!(sentence_errors("a  b", "a b"), Ratio::of(0, 1));
    assert_eq!(sentence_errors("a", "a b"), Ratio::of(1, 1));
    // One error in one word and none in three: a quarter, not the mean of the two rates.
    let errors = [word_errors("x", "a"), word_errors("a b c", "a b c")];
    assert_eq!(error_rate(Ratio::total(&errors)), 0.25);
    assert_eq!(error_rate(word_errors("", "")), 0.0);
    assert_eq!(error_rate(word_errors("a b", "")), 2.0);
}

/// A line of so many tokens.
fn line_of(n_tokens: usize) -> String {
    vec!["w"; n_tokens].join(" ")
}

#[test]
fn sentences_are_grouped_by_source_length() {
    let sources = [10, 61, 0, 11, 1, 60, 1000].map(line_of);
    let groups = |buckets: LengthBuckets| -> Vec<(usize, Option<usize>, Vec<usize>)> {
        buckets.group(&sources).into_iter().map(|bucket| (bucket.from, bucket.to, bucket.indices)).collect()
    };
    let expected =
        [(1, Some(10), vec![0, 2, 4]), (11, Some(20), vec![3]), (51, Some(60), vec![5]), (61, None, vec![1, 6])];
    assert_eq!(groups(LengthBuckets::default()), expected);
    let expected = [(1, Some(1), vec![2, 4]), (2, Some(60), vec![0, 3, 5]), (61, None, vec![1, 6])];
    assert_eq!(groups(LengthBuckets::new(vec![1, 60]).unwrap()), expected);
    assert_eq!(groups(LengthBuckets::new(vec![]).unwrap()), [(1, None, (0..7).collect())]);
    for wrong in [vec![0, 5], vec![5, 5], vec![10, 5]] {
        assert!(LengthBuckets::new(wrong).is_err());
    }
}

#[test]
fn scores_of_a_bucket_are_those_of_its_sentences_alone() {
    let sources = [3, 12, 5].map(line_of);
    let hypotheses = ["a b c d e".to_owned(), "x y".to_owned(), "f g i h".to_owned()];
    let references = ["a b c d f".to_owned(), "x z".to_owned(), "f g h i".to_owned()];
    let pick = |lines: &[String; 3]| [lines[0].clone(), lines[2].clone()];
    let scorer = Scorer::default();
    let all = scorer.score(&hypotheses, &references, Some(&sources)).unwrap();
    let alone = scorer.score(&pick(&hypotheses), &pick(&references), None).unwrap();
    assert_eq!(all.by_length.iter().map(|bucket| bucket.sentences).collect::<Vec<_>>(), [2, 1]);
    assert_eq!(all.by_length[0].metrics, alone.metrics);
    assert_eq!(alone.metrics.token_accuracy, 6.0 / 9.0);
    assert_eq!(alone.metrics.sequence_accuracy, 0.0);
    assert_eq!(alone.metrics.wer, 3.0 / 9.0);
    assert!(alone.metrics.bleu > 0.0 && alone.metrics.chrf > 0.0);
    assert!(alone.by_length.is_empty());
}

#[test]
fn scores_in_json_are_one_flat_object() {
    let scores = Scorer::default().score(&["a b c d"], &["a b c d"], Some(&["s"])).unwrap();
    let json = serde_json::to_value(&scores).unwrap();
    let keys = |value: &serde_json::Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ");
    let metrics = "bleu chrf token_accuracy sequence_accuracy sequence_error wer cer";
    assert_eq!(keys(&json), format!("{metrics} perplexity sentences signature length_unit by_length"));
    assert_eq!(keys(&json["by_length"][0]), format!("from to sentences {metrics}"));
    assert!(json["perplexity"].is_null());
    assert_eq!(json["token_accuracy"], 1.0);
    assert_eq!(json["signature"], Bleu::default().signature(1));
    assert_eq!(serde_json::from_value::<lookback::scoring::Scores>(json).unwrap(), scores);
}

#[test]
fn empty_lines_are_scored_without_dividing_by_zero() {
    let scores = Scorer::default().score(&["", "\u{a0}"], &["", ""], Some(&["", ""])).unwrap();
    let metrics = scores.metrics;
    assert_eq!((metrics.bleu, metrics.chrf, metrics.wer, metrics.cer), (0.0, 0.0, 0.0, 0.0));
    assert_eq!((metrics.token_accuracy, metrics.sequence_accuracy), (1.0, 0.5));
}

#[test]
fn lines_that_do_not_pair_up_are_an_error_with_both_counts() {
    let scorer = Scorer::default();
    let message = |error: lookback::error::Error| error.to_string();
    let error = message(scorer.score(&["a"; 3], &["a"; 5], None).unwrap_err());
    assert!(error.contains("3 hypothesis lines") && error.contains("5 reference lines"), "{error}");
    let error = message(scorer.score(&["a"; 3], &["a"; 3], Some(&["a"; 2])).unwrap_err());
    assert!(error.contains("3 hypothesis lines") && error.contains("2 source lines"), "{error}");
    let error = message(Bleu::default().corpus(&["a"; 2], &[&["a"; 2] as &[_], &["a"; 7]]).unwrap_err());
    assert!(error.contains("2 hypothesis lines") && error.contains("7 reference lines"), "{error}");
    let nothing: [&str; 0] = [];
    assert!(message(scorer.score(&nothing, &nothing, None).unwrap_err()).contains("no sentences"));
    assert!(message(Chrf::default().corpus::<_, &str>(&["a"], &[]).unwrap_err()).contains("no references"));
}

/// The share of successes.
fn mean(statistics: &Ratio) -> f64 {
    statistics.value_or(f64::NAN)
}

/// `n` trials of which every other one succeeds.
fn coin_flips(n: usize) -> Vec<Ratio> {
    (0..n).map(|index| Ratio::of(index % 2, 1)).collect()
}

#[test]
fn the_bootstrap_interval_of_a_mean_is_that_of_the_normal_distribution() {
    let estimate = Bootstrap { n_samples: 4000, seed: 1 }.estimate(&coin_flips(400), mean).unwrap();
    // 1.96 standard errors of 0.025 on either side. The bound is five standard errors of the percentile's own estimate.
    assert_eq!(estimate.score, 0.5);
    assert!((estimate.low - 0.451).abs() < 0.006, "{estimate:?}");
    assert!((estimate.high - 0.549).abs() < 0.006, "{estimate:?}");
    let constant = Bootstrap::default().estimate(&[Ratio::of(1, 4); 20], mean).unwrap();
    assert_eq!((constant.low, constant.score, constant.high), (0.25, 0.25, 0.25));
}

#[test]
fn bleu_and_chrf_are_resampled_as_corpora() {
    let references: Vec<String> = (0..40).map(|n| format!("{n} little ducks went out one day {n}")).collect();
    // Every sentence is wrong in its own way, so that hardly two resamples have one score.
    let written: Vec<String> =
        references.iter().enumerate().map(|(n, text)| text[..text.len() - n % 17].trim_end().to_string()).collect();
    let (bleu, chrf, bootstrap) = (Bleu::default(), Chrf::default(), Bootstrap { n_samples: 99, seed: 5 });
    let statistics = bleu.statistics(&written, &[&references]).unwrap();
    let estimate = bootstrap.estimate(&statistics, |total| bleu.score(total).score).unwrap();
    assert_eq!(estimate.score, bleu.corpus(&written, &[&references]).unwrap().score);
    assert!(estimate.low < estimate.score && estimate.score < estimate.high, "{estimate:?}");
    assert_eq!(bootstrap.estimate(&statistics, |total| bleu.score(total).score).unwrap(), estimate);
    let other = Bootstrap { seed: 6, ..bootstrap }.estimate(&statistics, |total| bleu.score(total).score).unwrap();
    assert_ne!((other.low, other.high), (estimate.low, estimate.high), "another seed draws other sentences");
    let statistics = chrf.statistics(&written, &[&references]).unwrap();
    let estimate = bootstrap.estimate(&statistics, ChrfStatistics::score).unwrap();
    assert!(estimate.low < estimate.score && estimate.score < estimate.high, "{estimate:?}");
}

#[test]
fn resampling_rejects_what_it_cannot_draw_from() {
    let flips = coin_flips(4);
    assert!(Bootstrap::default().estimate(&flips[..0], mean).is_err());
    assert!(Bootstrap { n_samples: 0, seed: 0 }.estimate(&flips, mean).is_err());
}

#[test]
fn any_of_several_references_is_right_and_the_closest_counts() {
    // The second sentence is right by its second reference; the third is one phone off its second, two off its first.
    let hypotheses = ["a b", "c d", "e f g"];
    let references = [vec!["a b"], vec!["x y", "c d"], vec!["h f i", "e f k"]];
    let scores = Scorer::default().score_any(&hypotheses, &references, None).unwrap();
    let metrics = scores.metrics;
    assert_close(metrics.sequence_accuracy, 2.0 / 3.0, "sequences");
    assert_close(metrics.sequence_error, 1.0 / 3.0, "sequence errors");
    assert_close(metrics.wer, 1.0 / 7.0, "one error in seven tokens");
    assert_close(metrics.token_accuracy, 6.0 / 7.0, "tokens");
    // sacreBLEU calls it so where the number of references varies.
    assert!(scores.signature.starts_with("nrefs:var|"), "{}", scores.signature);
    let both = [["a b", "a b"], ["x y", "c d"], ["h f i", "e f k"]];
    let scores = Scorer::default().score_any(&hypotheses, &both, None).unwrap();
    assert!(scores.signature.starts_with("nrefs:2|"), "{}", scores.signature);
    let first: Vec<&str> = both.iter().map(|list| list[0]).collect();
    let second: Vec<&str> = both.iter().map(|list| list[1]).collect();
    let corpus = Bleu::default().corpus(&hypotheses, &[&first, &second]).unwrap();
    assert_close(scores.metrics.bleu, corpus.score, "BLEU of two references");
    let none: [Vec<&str>; 3] = [vec!["a"], vec![], vec!["b"]];
    let message = Scorer::default().score_any(&hypotheses, &none, None).unwrap_err().to_string();
    assert_eq!(message, "sentence 2 has no reference");
}

#[test]
fn a_metric_has_one_value_however_it_is_computed() {
    let (hypotheses, references) = (["a b c", "d e", "f"], ["a b", "d x", "f"]);
    let scorer = Scorer::default();
    let scores = scorer.score(&hypotheses, &references, None).unwrap();
    let total = SentenceStatistics::total(&scorer.statistics(&hypotheses, &references).unwrap());
    for metric in Metric::ALL {
        assert_close(metric.of(&scores.metrics), metric.of_statistics(&total), metric.name());
        assert_eq!(metric.name().parse(), Ok(metric));
        assert_eq!(serde_json::to_value(metric).unwrap(), metric.name());
    }
    assert_close(Metric::Per.of_statistics(&total), 100.0 * 2.0 / 5.0, "one phone too many, one wrong, of five");
    assert_close(Metric::SequenceError.of_statistics(&total), 100.0 * 2.0 / 3.0, "two of three");
    let lower: Vec<Metric> = Metric::ALL.into_iter().filter(|metric| metric.lower_is_better()).collect();
    assert_eq!(lower, [Metric::SequenceError, Metric::Wer, Metric::Per, Metric::Cer]);
    assert_eq!(Metric::Per.title(), "PER (phones)");
    assert!("blue".parse::<Metric>().unwrap_err().contains("bleu, chrf"), "the names are listed");
}

#[test]
fn sources_without_spaces_are_grouped_by_letters() {
    let buckets = LengthBuckets::default().counted_in(LengthUnit::Letters);
    let found: Vec<(usize, Vec<usize>)> =
        buckets.group(&["ab", "abcdefghijklm", "a b c d e f"]).into_iter().map(|b| (b.from, b.indices)).collect();
    assert_eq!(found, [(1, vec![0]), (11, vec![1, 2])]);
}

/// Tags and their F1 by seqeval; `tests/golden/spans.py` wrote them.
#[derive(Deserialize)]
struct Tags {
    hypotheses: Vec<String>,
    references: Vec<String>,
    f1: f64,
}

#[test]
fn the_f1_of_spans_is_that_of_seqeval() {
    let file = File::open(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/spans.json")).unwrap();
    let cases: Vec<Tags> = serde_json::from_reader(file).unwrap();
    assert!(cases.len() > 10);
    for Tags { hypotheses, references, f1 } in cases {
        let pairs = hypotheses.iter().zip(&references);
        let ratios: Vec<Ratio> = pairs.map(|(hypothesis, reference)| span_matches(hypothesis, reference)).collect();
        let total = Ratio::total(&ratios).value_or(0.0);
        assert!((total - f1).abs() < TOLERANCE, "{hypotheses:?} and {references:?}: {total} is not {f1}");
        let scores = Scorer::default().score(&hypotheses, &references, None).unwrap();
        assert_eq!(Metric::SpanF1.of(&scores.metrics), 100.0 * total);
    }
    assert_eq!(span_matches("B-A O", "the cat").denominator, 0.0, "words are no tags");
    assert_eq!(span_matches("O O", "O O").denominator, 0.0);
}
