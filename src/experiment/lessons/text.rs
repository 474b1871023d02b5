//! Plain text.

use super::{Prepared, SequenceLessons};
use crate::data::batch::{Batch, MAX_EXAMPLES, Plan};
use crate::data::shards::Tokens;
use crate::data::text::{Windows, text_of};
use crate::data::tokenizer::sampled;
use crate::data::{EOS, Split, TextConfig, TokenStream, Tokenizers};
use crate::decoding::{Continuation, score_text};
use crate::error::{Error, Result};
use crate::experiment::Config;
use crate::experiment::dataset::{self, check_context, hash_of_lines};
use crate::experiment::prepared::{self, OpenedText};
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
    pub(super) train: Tokens,
    pub(super) valid: TokenStream,
    /// The validation lines.
    pub(super) sample: Vec<String>,
    /// The SHA-256 of the lines.
    pub(super) sha256: BTreeMap<String, String>,
    /// What there is, in words.
    pub(super) said: String,
}

impl Streams {
    /// Reads the text of `config`, or takes what was prepared of it. The vocabulary is what is `known`, or a new one.
    pub(super) fn read(config: &Config, text: &TextConfig, known: Option<Tokenizers>) -> Result<Self> {
        let OpenedText { tokenizers, train, mut sha256, lines, characters } = match &config.data.prepared {
            Some(folder) => prepared::text(config, folder, known.as_ref())?,
            None => read(config, known)?,
        };
        let sample = dataset::lines_of(&config.data, Split::Valid)?;
        sha256.insert("valid".into(), hash_of_lines(&sample));
        let valid = TokenStream::new(&sample, tokenizers.target());
        let n = train.len() - 1;
        if n < text.context {
            let message =
                format!("is {}, but the training text has {n} tokens; give more text, or lower it", text.context);
            return Err(Error::config("data.text.context", message));
        }
        if n / text.context > MAX_EXAMPLES {
            let message =
                format!("is {}, so that there are more than {MAX_EXAMPLES} pieces of text; raise it", text.context);
            return Err(Error::config("data.text.context", message));
        }
        let said = format!(
            "{lines} lines with {n} tokens ({characters} characters) to learn from, {} lines with {} tokens for validation",
            sample.len(),
            valid.n_tokens()
        );
        Ok(Self { tokenizers: Arc::new(tokenizers), train, valid, sample, sha256, said })
    }
}

/// Reads the training text of `config`.
fn read(config: &Config, known: Option<Tokenizers>) -> Result<OpenedText> {
    let lines = dataset::lines_of(&config.data, Split::Train)?;
    let new = || {
        let sample = sampled(&lines, config.seed);
        Tokenizers::train_text(&sample, &config.tokenizer, config.model.has_masks())
    };
    let tokenizers = known.map_or_else(new, Ok)?;
    let sha256 = BTreeMap::from([("train".to_string(), hash_of_lines(&lines))]);
    let n_lines = lines.len() as u64;
    let stream = TokenStream::new(&lines, tokenizers.target());
    drop(lines);
    let train = Tokens::hold(tokenizers.target().vocab_size(), &stream.ids);
    Ok(OpenedText { tokenizers, train, sha256, lines: n_lines, characters: stream.n_characters as u64 })
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
    train: Tokens,
    valid: TokenStream,
}

impl TextLessons {
    /// Reads the text of `config`, or takes what was prepared of it. The vocabulary is what is `known`, or a new one.
    pub(in crate::experiment) fn prepare(
        config: &Config,
        text: &TextConfig,
        known: Option<Tokenizers>,
    ) -> Result<Prepared> {
        let Streams { tokenizers, train, valid, sha256, said, .. } = Streams::read(config, text, known)?;
        let lessons = Self { config: config.clone(), text: text.clone(), train, valid, tokenizers: tokenizers.clone() };
        Ok(Prepared { lessons: Arc::new(lessons), tokenizers, sha256, said })
    }

    fn windows(&self, epoch: u64) -> Windows {
        Windows::of_epoch(self.train.len(), self.text.context, self.config.seed, epoch)
    }
}

impl Lessons<Model> for TextLessons {
    fn plan(&self, epoch: u64) -> Plan {
        self.windows(epoch).plan(self.config.training.batch_tokens, self.config.seed, epoch)
    }

    fn batch(&self, epoch: u64, numbers: &[u32], device: &Device) -> Result<Batch> {
        let windows = self.windows(epoch);
        let read = |i: &u32| self.train.read(windows.range(*i as usize));
        let pieces: Vec<Vec<u32>> = numbers.iter().map(read).collect::<Result<_>>()?;
        Ok(Batch::of_text(&pieces.iter().map(Vec::as_slice).collect::<Vec<_>>(), device))
    }

    fn text(&self, epoch: u64, numbers: &[u32]) -> String {
        let windows = self.windows(epoch);
        let read = |i: &u32| self.train.read(windows.range(*i as usize)).unwrap_or_default();
        let piece = |i: &u32| text_of(&read(i), self.tokenizers.target());
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
