//! What an encoder-only model says of itself.

use super::EncoderOnlyConfig;
use crate::models::Answers;
use crate::models::family::{Family, of_stack};

impl Family for EncoderOnlyConfig {
    fn name(&self) -> &'static str {
        if self.has_attention_alone() { "encoder-only" } else { "encoder-only with recurrences" }
    }

    fn words(&self) -> String {
        format!(
            "encoder-only{}, {} layers of {}{} ({}), {} heads, {} positions",
            if self.is_causal { ", causal" } else { "" },
            self.n_layers,
            self.d_model,
            if self.share_layers { ", shared" } else { "" },
            self.mixer.names(),
            self.n_heads,
            self.positions.name()
        )
    }

    fn answers(&self) -> Option<Answers> {
        Some(self.output)
    }

    fn answer_len(&self, source_len: usize) -> Option<usize> {
        Some(EncoderOnlyConfig::answer_len(self, source_len))
    }

    of_stack!();
}
