//! What goes with a model that answers with numbers.

use super::Config;
use crate::data::TokenizerConfig;
use crate::error::{Error, Result};
use crate::models::ModelConfig;
use crate::training::{Criterion, TrainingConfig};

impl Config {
    /// Models of numbers read series, and nothing else does; what is for words has no effect on them, and is refused.
    pub(super) fn validate_values(&self) -> Result<()> {
        let is_numbers = |side: &TokenizerConfig| matches!(side, TokenizerConfig::Numbers(_));
        let sides = [self.tokenizer.source(), self.tokenizer.target()].map(is_numbers);
        match (self.model.answers_with_numbers(), sides) {
            (false, [false, false]) => return Ok(()),
            (false, _) => {
                let message = "is \"numbers\", which is for models that answer with numbers: set model.kind = \"encoder-only\" and \
                               model.output = \"values\"";
                return Err(Error::config("tokenizer.kind", message));
            }
            (true, [true, true]) => {}
            (true, _) => {
                let message = "is \"values\", so that source and target are numbers: set tokenizer.kind = \"numbers\"";
                return Err(Error::config("model.output", message));
            }
        }
        if self.data.prepared.is_some() {
            let message = "is for text, and this model reads series of numbers; leave it out";
            return Err(Error::config("data.prepared", message));
        }
        let training = &self.training;
        let own = TrainingConfig::default();
        let more_targets = |files: &Option<crate::data::SplitFiles>| {
            files.as_ref().is_some_and(|files| !files.more_targets.is_empty())
        };
        let without_effect = [
            (
                "training.criterion",
                training.criterion == Criterion::Score,
                "is \"score\", and scores are of words: leave it at \"loss\", the squared error",
            ),
            (
                "training.label_smoothing",
                training.label_smoothing != own.label_smoothing && training.label_smoothing != 0.0,
                "has no effect on numbers: leave it out",
            ),
            (
                "training.score",
                training.score != own.score,
                "is a score of words, and answers are numbers: leave it out",
            ),
            (
                "model.scales_embeddings",
                matches!(&self.model, ModelConfig::EncoderOnly(model) if !model.scales_embeddings),
                "is for tables of words, and numbers are read by a linear map: leave it out",
            ),
            ("data.several_references", self.data.several_references, "is for words; a series has one target"),
            ("data.valid.more_targets", more_targets(&self.data.valid), "is for words; a series has one target"),
            ("data.test.more_targets", more_targets(&self.data.test), "is for words; a series has one target"),
        ];
        match without_effect.into_iter().find(|(_, is_set, _)| *is_set) {
            Some((key, _, message)) => Err(Error::config(key, message)),
            None => Ok(()),
        }
    }
}
