//! Plain text some of whose words are hidden.

use super::text::Streams;
use super::{Prepared, SequenceLessons};
use crate::data::batch::{Batch, Plan};
use crate::data::masking::{Masked, Masking, without_end};
use crate::data::shards::Tokens;
use crate::data::text::{Windows, text_of};
use crate::data::{PAD, Split, TextConfig, TokenStream, Tokenizers};
use crate::decoding::{answers, score_masked};
use crate::error::{Error, Result};
use crate::experiment::Config;
use crate::models::{LengthLimits, Model};
use crate::random::{Purpose, Stream};
use crate::ranks::Ranks;
use crate::training::{Lessons, Measured, Scalar, Stats};
use burn::tensor::Device;
use std::sync::Arc;

/// Lines of a sample.
const N_SAMPLED: usize = 5;
/// Where the choices for a sample lie beside those of epochs.
const SAMPLE: u64 = u64::MAX;

/// Some lines with hidden words, and what a model takes those for; the same words at every call, so that samples can be compared.
pub fn sample_of_masked(model: &Model, tokenizers: &Tokenizers, config: &Config, lines: &[String]) -> String {
    let tokenizer = tokenizers.source();
    let Some(masking) = masking_of(config, tokenizers) else { return String::new() };
    let limit = config.decoding.source_limit(crate::models::Autoregressive::limits(model).source);
    let fits = |ids: &Vec<u32>| !ids.is_empty() && limit.is_none_or(|limit| ids.len() < limit.len);
    let texts: Vec<Vec<u32>> = lines.iter().map(|line| tokenizer.encode(line)).filter(fits).take(N_SAMPLED).collect();
    let masked: Vec<Masked> = (0..)
        .zip(&texts)
        .map(|(i, text)| masking.measured(text, &Stream::new(config.seed, Purpose::Masking, &[SAMPLE, i])))
        .collect();
    let sources: Vec<Vec<u32>> = masked.iter().map(|text| text.read.clone()).collect();
    let found = answers(model, &sources, |n| n, 1, config.decoding.batch_tokens);
    let shown = texts.iter().zip(&masked).zip(&found).map(|((text, masked), found)| {
        let filled: Vec<u32> = (0..text.len())
            .map(|i| if masked.asked[i] == PAD { text[i] } else { found[i].first().map_or(PAD, |choice| choice.id) })
            .collect();
        let [text, read, filled] = [text, &masked.read, &filled].map(|ids| tokenizer.decode(ids));
        format!("text    {text}\nasked   {read}\nmodel   {filled}\n\n")
    });
    shown.collect()
}

/// Refuses a text on which nothing could be measured.
pub fn check_can_hide(masking: &Masking, text: &TokenStream, split: Split) -> Result<()> {
    if masking.has_something(&text.ids) {
        return Ok(());
    }
    let message = "has no token that could be hidden: none is in the vocabulary; check the files, or take other lines";
    Err(Error::config(format!("data.text.{split}"), message))
}

fn masking_of(config: &Config, tokenizers: &Tokenizers) -> Option<Masking> {
    Masking::new(tokenizers.source(), config.data.text.as_ref()?.masked_rate)
}

/// Learning to predict hidden words from those around them.
pub(in crate::experiment) struct MaskedLessons {
    config: Config,
    context: usize,
    masking: Masking,
    tokenizers: Arc<Tokenizers>,
    train: Tokens,
    valid: TokenStream,
    /// Lines for the samples.
    sample: Vec<String>,
}

impl MaskedLessons {
    /// Reads the text of `config`, or takes what was prepared of it. The vocabulary is what is `known`, or a new one.
    pub(in crate::experiment) fn prepare(
        config: &Config,
        text: &TextConfig,
        known: Option<Tokenizers>,
    ) -> Result<Prepared> {
        let Streams { tokenizers, train, valid, sample, sha256, said } = Streams::read(config, text, known)?;
        let masking = masking_of(config, &tokenizers).ok_or_else(|| {
            let message = "has no token for hidden words: it is that of a model of another kind; leave --init-from out";
            Error::config("tokenizer", message)
        })?;
        check_can_hide(&masking, &valid, Split::Valid)?;
        let lessons = Self {
            config: config.clone(),
            context: text.context,
            masking,
            tokenizers: tokenizers.clone(),
            train,
            valid,
            sample,
        };
        Ok(Prepared { lessons: Arc::new(lessons), tokenizers, sha256, said })
    }

    fn windows(&self, epoch: u64) -> Windows {
        Windows::of_epoch(self.train.len(), self.context, self.config.seed, epoch)
    }

    /// The tokens of a window, of which the last is the first of the next.
    fn piece(&self, epoch: u64, number: u32) -> Result<Vec<u32>> {
        let range = self.windows(epoch).range(number as usize);
        self.train.read(range.start..range.end - 1).map(|piece| without_end(&piece).to_vec())
    }
}

impl Lessons<Model> for MaskedLessons {
    fn plan(&self, epoch: u64) -> Plan {
        self.windows(epoch).plan(self.config.training.batch_tokens, self.config.seed, epoch)
    }

    fn batch(&self, epoch: u64, numbers: &[u32], device: &Device) -> Result<Batch> {
        let stream = |number: u32| Stream::new(self.config.seed, Purpose::Masking, &[epoch, u64::from(number)]);
        let learnt = |number: &u32| Ok(self.masking.learnt(&self.piece(epoch, *number)?, &stream(*number)));
        let masked: Vec<Masked> = numbers.iter().map(learnt).collect::<Result<_>>()?;
        Ok(Batch::of_masked(&masked, device))
    }

    fn text(&self, epoch: u64, numbers: &[u32]) -> String {
        let read = |number: &u32| self.piece(epoch, *number).unwrap_or_default();
        let piece = |number: &u32| text_of(&read(number), self.tokenizers.source());
        numbers.iter().map(piece).collect::<Vec<_>>().join("\n\n") + "\n"
    }

    fn n_targets(&self, batch: &Batch) -> usize {
        batch.n_target_tokens()
    }

    fn measure(&self, model: &Model, ranks: &dyn Ranks) -> Measured {
        let sizes = (self.context, self.config.training.batch_tokens);
        let scores = score_masked(model, &self.valid, &self.masking, sizes, self.config.seed, ranks, |_| ());
        let stats = Stats {
            loss: scores.loss,
            smoothed_loss: Some(scores.loss),
            perplexity: Some(scores.perplexity),
            token_accuracy: Some(scores.masked_accuracy),
            tokens: scores.masked,
            ..Stats::default()
        };
        Measured { stats, sample: sample_of_masked(model, &self.tokenizers, &self.config, &self.sample) }
    }

    fn metric(&self) -> Option<Scalar> {
        None
    }
}

impl SequenceLessons for MaskedLessons {
    fn check_lengths(&self, limits: LengthLimits) -> Result<()> {
        // One more for the end symbol.
        crate::experiment::dataset::check_context(self.context, 1, limits.source)
    }

    fn unknown(&self) -> Option<String> {
        super::text::unknown_share(&self.valid)
    }
}
