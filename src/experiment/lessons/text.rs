//! Plain text.

use super::{Prepared, SequenceLessons};
use crate::data::batch::Batch;
use crate::data::text::{Windows, text_of};
use crate::data::{EOS, Split, TextConfig, TokenStream, Tokenizers};
use crate::decoding::{Continuation, score_text};
use crate::error::{Error, Result};
use crate::experiment::Config;
use crate::experiment::dataset::{self, check_context, hash_of_lines};
use crate::models::{LengthLimits, Model};
use crate::ranks::Ranks;
use crate::training::{Lessons, Measured, Scalar, Stats};
use burn::tensor::Device;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Tokens of a sample of text.
const N_SAMPLED: usize = 200;

/// What a language model writes from the beginning of a line. Drawn, since a search would repeat itself; by the same numbers each
/// time, so that samples can be compared.
pub fn sample_of_text(model: &Model, tokenizers: &Tokenizers, config: &Config) -> String {
    let sampling = config.decoding.sampling.clone().unwrap_or_default();
    let words = Continuation::new(model, &[EOS], config.context_of_writing(), Some(&sampling), config.seed);
    let ids: Vec<u32> = words.take(N_SAMPLED).map(|next| next.id).collect();
    text_of(&ids, tokenizers.target())
}

/// The text of a config as tokens.
pub(super) struct Streams {
    pub(super) tokenizers: Arc<Tokenizers>,
    pub(super) train: TokenStream,
    pub(super) valid: TokenStream,
    /// The validation lines.
    pub(super) sample: Vec<String>,
    /// The SHA-256 of the lines.
    pub(super) sha256: BTreeMap<String, String>,
    /// What there is, in words.
    pub(super) said: String,
}

impl Streams {
    /// Reads the text of `config`; `tokenizers` makes the vocabulary from its lines, or reads it.
    pub(super) fn read(
        config: &Config,
        text: &TextConfig,
        tokenizers: impl FnOnce(&[String]) -> Result<Tokenizers>,
    ) -> Result<Self> {
        let lines = |split| dataset::lines_of(&config.data, split);
        let (train, valid) = (lines(Split::Train)?, lines(Split::Valid)?);
        let tokenizers = Arc::new(tokenizers(&train)?);
        let sha256 = [("train", hash_of_lines(&train)), ("valid", hash_of_lines(&valid))];
        let sha256 = sha256.into_iter().map(|(split, hash)| (split.to_string(), hash)).collect();
        let streams = [&train, &valid].map(|lines| TokenStream::new(lines, tokenizers.target()));
        let n = streams[0].n_tokens();
        if n < text.context {
            let message =
                format!("is {}, but the training text has {n} tokens; give more text, or lower it", text.context);
            return Err(Error::config("data.text.context", message));
        }
        let said = format!(
            "{} lines with {n} tokens ({} characters) to learn from, {} lines with {} tokens for validation",
            train.len(),
            streams[0].n_characters,
            valid.len(),
            streams[1].n_tokens()
        );
        let [train, own] = streams;
        Ok(Self { tokenizers, train, valid: own, sample: valid, sha256, said })
    }
}

/// How much of a text the vocabulary does not hold, in words; nothing where it holds all.
pub(super) fn unknown_share(text: &TokenStream) -> Option<String> {
    let share = 100.0 * text.n_unknown() as f64 / text.n_tokens().max(1) as f64;
    (share > 0.0).then(|| format!("{share:.2} % of the tokens of the validation text"))
}

/// Learning to go on with plain text: the loss of every token after those before it.
pub(in crate::experiment) struct TextLessons {
    config: Config,
    text: TextConfig,
    tokenizers: Arc<Tokenizers>,
    train: TokenStream,
    valid: TokenStream,
}

impl TextLessons {
    /// Reads the text of `config`; `tokenizers` makes the vocabulary from its lines, or reads it.
    pub(in crate::experiment) fn prepare(
        config: &Config,
        text: &TextConfig,
        tokenizers: impl FnOnce(&[String]) -> Result<Tokenizers>,
    ) -> Result<Prepared> {
        let Streams { tokenizers, train, valid, sha256, said, .. } = Streams::read(config, text, tokenizers)?;
        let lessons = Self { config: config.clone(), text: text.clone(), train, valid, tokenizers: tokenizers.clone() };
        Ok(Prepared { lessons: Arc::new(lessons), tokenizers, sha256, said })
    }

    fn windows(&self, epoch: u64) -> Windows {
        Windows::of_epoch(self.train.ids.len(), self.text.context, self.config.seed, epoch)
    }
}

impl Lessons<Model> for TextLessons {
    fn plan(&self, epoch: u64) -> Vec<Vec<usize>> {
        self.windows(epoch).plan(self.config.training.batch_tokens, self.config.seed, epoch)
    }

    fn batch(&self, epoch: u64, numbers: &[usize], device: &Device) -> Batch {
        let windows = self.windows(epoch);
        let pieces: Vec<&[u32]> = numbers.iter().map(|i| &self.train.ids[windows.range(*i)]).collect();
        Batch::of_text(&pieces, device)
    }

    fn text(&self, epoch: u64, numbers: &[usize]) -> String {
        let windows = self.windows(epoch);
        let piece = |i: &usize| text_of(&self.train.ids[windows.range(*i)], self.tokenizers.target());
        numbers.iter().map(piece).collect::<Vec<_>>().join("\n\n") + "\n"
    }

    fn n_targets(&self, batch: &Batch) -> usize {
        batch.n_target_tokens()
    }

    fn measure(&self, model: &Model, ranks: &dyn Ranks) -> Measured {
        let batch_tokens = self.config.training.batch_tokens;
        let scores = score_text(model, &self.valid, self.text.context, batch_tokens, ranks, |_| ());
        let stats = Stats {
            loss: scores.loss,
            smoothed_loss: Some(scores.loss),
            perplexity: Some(scores.perplexity),
            token_accuracy: Some(scores.token_accuracy),
            tokens: scores.tokens,
            bits_per_character: Some(scores.bits_per_character),
            ..Stats::default()
        };
        Measured { stats, sample: sample_of_text(model, &self.tokenizers, &self.config) + "\n" }
    }

    fn metric(&self) -> Option<Scalar> {
        Some(Scalar::bits_per_character())
    }
}

impl SequenceLessons for TextLessons {
    fn check_lengths(&self, limits: LengthLimits) -> Result<()> {
        check_context(self.text.context, 0, limits.target)
    }

    fn unknown(&self) -> Option<String> {
        unknown_share(&self.valid)
    }
}
