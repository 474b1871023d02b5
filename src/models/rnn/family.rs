//! What a recurrent encoder-decoder says of itself.

use super::RnnConfig;
use crate::layers::mixer::MixerKind;
use crate::models::family::{Family, kind};

impl Family for RnnConfig {
    fn name(&self) -> &'static str {
        match self.attention.alignment() {
            None => "recurrent",
            Some(_) => "recurrent with attention",
        }
    }

    fn words(&self) -> String {
        let attention = match self.attention.alignment() {
            None => {
                let source = if self.reverse_source { ", source reversed" } else { "" };
                let context = serde_json::to_value(self.context).unwrap_or_default();
                format!("one fixed context ({}{source})", context.as_str().unwrap_or_default())
            }
            Some((score, _)) => format!("{} attention, {} score", kind(&self.attention), kind(score)),
        };
        let cell = MixerKind::from(self.cell).name();
        let over = self.encoder.mixer.as_ref().map(|mixers| format!(" over {}", mixers.names()));
        format!("{} x {} {cell}{}, {attention}", self.n_layers, self.d_hidden, over.unwrap_or_default())
    }

    fn width(&self) -> usize {
        self.d_hidden
    }

    fn set_width(&mut self, steps: usize) {
        self.d_hidden = steps;
    }

    fn dropout_rate(&self) -> f64 {
        self.dropout_rate
    }

    fn dropout_rate_mut(&mut self) -> &mut f64 {
        &mut self.dropout_rate
    }

    fn map_dropout(&mut self, change: fn(f64) -> f64) {
        self.dropout_rate = change(self.dropout_rate);
    }

    fn reads_own_words(&self) -> bool {
        true
    }
}
