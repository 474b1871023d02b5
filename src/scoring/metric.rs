//! The scores by name: what a config or a command line asks for, with its unit and its direction.

use super::{Metrics, SentenceStatistics, error_rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// A score of finished output, told apart by its name.
///
/// `wer` and `per` are one computation, the edit distance over tokens between spaces. Which name is right depends on what
/// the tokens are, and only the user knows that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// BLEU, 0 to 100, with sacreBLEU's tokenizer 13a.
    Bleu,
    /// chrF, 0 to 100.
    Chrf,
    /// The percentage of sequences that are right to the last character.
    SequenceAccuracy,
    /// The percentage of sequences with an error; for words and their pronunciations this is called word error rate.
    SequenceError,
    /// The percentage of tokens that equal the reference's token at the same position.
    TokenAccuracy,
    /// Word error rate: the edit distance over tokens between spaces, in percent of the reference's tokens.
    Wer,
    /// Phoneme error rate: the same as `wer`, for targets whose tokens are phones.
    Per,
    /// Character error rate: the edit distance over characters, in percent of the reference's characters.
    Cer,
    /// F1 of named spans in tags of the form `B-X`, `I-X`, `O`, as seqeval's micro average, in percent.
    SpanF1,
}

impl Metric {
    /// Every metric, in the order in which tables have them.
    pub const ALL: [Self; 9] = [
        Self::Bleu,
        Self::Chrf,
        Self::SequenceAccuracy,
        Self::SequenceError,
        Self::TokenAccuracy,
        Self::Wer,
        Self::Per,
        Self::Cer,
        Self::SpanF1,
    ];

    /// The name in configs, on the command line and in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bleu => "bleu",
            Self::Chrf => "chrf",
            Self::SequenceAccuracy => "sequence-accuracy",
            Self::SequenceError => "sequence-error",
            Self::TokenAccuracy => "token-accuracy",
            Self::Wer => "wer",
            Self::Per => "per",
            Self::Cer => "cer",
            Self::SpanF1 => "span-f1",
        }
    }

    /// The name as a heading.
    pub fn label(self) -> &'static str {
        match self {
            Self::Bleu => "BLEU",
            Self::Chrf => "chrF",
            Self::SequenceAccuracy => "sequence accuracy",
            Self::SequenceError => "sequence error",
            Self::TokenAccuracy => "token accuracy",
            Self::Wer => "WER",
            Self::Per => "PER",
            Self::Cer => "CER",
            Self::SpanF1 => "F1 of spans",
        }
    }

    /// What a percentage is a percentage of; none for BLEU, chrF and F1, which are no percentages of anything that is counted.
    pub fn unit(self) -> Option<&'static str> {
        match self {
            Self::Bleu | Self::Chrf | Self::SpanF1 => None,
            Self::SequenceAccuracy | Self::SequenceError => Some("sequences"),
            Self::TokenAccuracy | Self::Wer => Some("tokens"),
            Self::Per => Some("phones"),
            Self::Cer => Some("characters"),
        }
    }

    /// What stands behind a value: a percent sign where it is a percentage of something.
    pub fn sign(self) -> &'static str {
        if self.unit().is_some() { " %" } else { "" }
    }

    /// The label with the unit: `PER (phones)`.
    pub fn title(self) -> String {
        match self.unit() {
            Some(unit) => format!("{} ({unit})", self.label()),
            None => self.label().to_string(),
        }
    }

    /// The least and the most that it can be. More words may be wrong than there are.
    pub fn bounds(self) -> [f64; 2] {
        [0.0, if matches!(self, Self::Wer | Self::Per | Self::Cer) { f64::INFINITY } else { 100.0 }]
    }

    /// Whether less is better, as it is for errors.
    pub fn lower_is_better(self) -> bool {
        matches!(self, Self::SequenceError | Self::Wer | Self::Per | Self::Cer)
    }

    /// The value among the scores of a corpus, from 0 to 100 (error rates may exceed that).
    pub fn of(self, metrics: &Metrics) -> f64 {
        match self {
            Self::Bleu => metrics.bleu,
            Self::Chrf => metrics.chrf,
            Self::SequenceAccuracy => 100.0 * metrics.sequence_accuracy,
            Self::SequenceError => 100.0 * metrics.sequence_error,
            Self::TokenAccuracy => 100.0 * metrics.token_accuracy,
            Self::Wer | Self::Per => 100.0 * metrics.wer,
            Self::Cer => 100.0 * metrics.cer,
            Self::SpanF1 => 100.0 * metrics.span_f1.unwrap_or(0.0),
        }
    }

    /// The value for added-up statistics, from 0 to 100; BLEU with its usual smoothing.
    pub fn of_statistics(self, total: &SentenceStatistics) -> f64 {
        match self {
            Self::Bleu => super::Bleu::default().score(&total.bleu).score,
            Self::Chrf => total.chrf.score(),
            // Lines that are all empty, and rightly so, have no wrong token.
            Self::SequenceAccuracy => 100.0 * total.sequences.value_or(1.0),
            Self::SequenceError => 100.0 * (1.0 - total.sequences.value_or(1.0)),
            Self::TokenAccuracy => 100.0 * total.tokens.value_or(1.0),
            Self::Wer | Self::Per => 100.0 * error_rate(total.word_errors),
            Self::Cer => 100.0 * error_rate(total.character_errors),
            Self::SpanF1 => 100.0 * total.spans.value_or(0.0),
        }
    }
}

impl std::fmt::Display for Metric {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Metric {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|metric| metric.name() == name).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|metric| metric.name()).collect();
            format!("unknown metric \"{name}\"; there are {}", names.join(", "))
        })
    }
}
