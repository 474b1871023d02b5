//! What a decoder-only model says of itself.

use super::DecoderOnlyConfig;
use crate::models::family::{Family, of_stack};

impl Family for DecoderOnlyConfig {
    fn name(&self) -> &'static str {
        if self.has_attention_alone() { "decoder-only" } else { "decoder-only with recurrences" }
    }

    fn words(&self) -> String {
        format!(
            "decoder-only, {} layers of {}{} ({}), {} heads, {} positions",
            self.n_layers,
            self.d_model,
            if self.share_layers { ", shared" } else { "" },
            self.mixer.names(),
            self.n_heads,
            self.positions.name()
        )
    }

    fn reads_source(&self) -> bool {
        self.reads_source
    }

    of_stack!();
}
