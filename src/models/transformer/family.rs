//! What a Transformer says of itself.

use super::TransformerConfig;
use crate::models::family::{Family, of_stack};

impl Family for TransformerConfig {
    fn name(&self) -> &'static str {
        if self.has_attention_alone() { "transformer" } else { "transformer with recurrences" }
    }

    fn words(&self) -> String {
        format!(
            "{} + {} layers of {}{}, {} heads, {} positions",
            self.n_encoder_layers,
            self.n_decoder_layers,
            self.d_model,
            mixers(self),
            self.n_heads,
            self.positions.name()
        )
    }

    of_stack!();
}

/// What mixes, where it is not attention alone.
fn mixers(config: &TransformerConfig) -> String {
    let shared = if config.share_layers { ", shared" } else { "" };
    if config.has_attention_alone() {
        return shared.into();
    }
    let (encoder, decoder) = (config.encoder_mixers().names(), config.decoder_mixers().names());
    match encoder == decoder {
        true => format!("{shared} ({encoder})"),
        false => format!("{shared} ({encoder}; {decoder})"),
    }
}
