//! What a family of models says of itself.

use super::Answers;
use super::costs::Costs;

/// The config of a family of models, as those see it who know no family.
///
/// Whoever trains, measures and compares asks this trait. A new family is a folder beside the others with its config, which has
/// `validate` and `init`, and for which this and [`Costs`] are implemented, and its model, which is a
/// [`Seq2Seq`](super::Seq2Seq); a line in `families!` of `models/mod.rs`; and its formulas under `report/explanation/formulas/`.
pub trait Family: Costs {
    /// What a comparison counts it among: `recurrent with attention`.
    fn name(&self) -> &'static str;

    /// The model in a few words: its sizes, and what makes it different.
    fn words(&self) -> String;

    /// Width of the vectors between layers.
    fn width(&self) -> usize;

    /// Makes the model as wide as `steps` of its smallest steps, and in proportion what is wider than it is.
    fn set_width(&mut self, steps: usize);

    /// Heads of each attention, where it has heads.
    fn n_heads(&self) -> Option<usize> {
        None
    }

    /// The inner width of its feed-forward networks, if it has any.
    fn d_feed_forward_mut(&mut self) -> Option<&mut usize> {
        None
    }

    /// The probability of dropping that stands for all others.
    fn dropout_rate(&self) -> f64;

    /// The same, to be changed.
    fn dropout_rate_mut(&mut self) -> &mut f64;

    /// Puts `change` of each probability of dropping in its place.
    fn map_dropout(&mut self, change: fn(f64) -> f64);

    /// Whether there is a source to go on from; if not, this is a language model of plain text.
    fn reads_source(&self) -> bool {
        true
    }

    /// Whether its decoder could be given words of its own in training: see
    /// [`ScheduledSampling`](crate::training::ScheduledSampling).
    fn reads_own_words(&self) -> bool {
        false
    }

    /// What it answers for tokens of the source, or for all of it, if it writes no text.
    fn answers(&self) -> Option<Answers> {
        None
    }

    /// How many words the answer to a source of so many tokens has, its end left out; nothing where that depends on the words.
    fn answer_len(&self, _source_len: usize) -> Option<usize> {
        None
    }

    /// The range that positions are drawn from in training, if they are drawn.
    fn randomized_positions(&self) -> Option<usize> {
        None
    }
}

/// What [`Family`] asks of every stack of layers with heads: the keys of such configs have the same names.
macro_rules! of_stack {
    () => {
        fn width(&self) -> usize {
            self.d_model
        }

        fn set_width(&mut self, steps: usize) {
            // Heads divide the width, and rotary positions want each even.
            let width = steps * 2 * self.n_heads;
            self.d_feed_forward = (self.d_feed_forward * width).div_ceil(self.d_model);
            self.d_model = width;
        }

        fn n_heads(&self) -> Option<usize> {
            Some(self.n_heads)
        }

        fn d_feed_forward_mut(&mut self) -> Option<&mut usize> {
            Some(&mut self.d_feed_forward)
        }

        fn dropout_rate(&self) -> f64 {
            self.dropout_rate
        }

        fn dropout_rate_mut(&mut self) -> &mut f64 {
            &mut self.dropout_rate
        }

        fn map_dropout(&mut self, change: fn(f64) -> f64) {
            self.embedding_dropout_rate = Some(change(self.embedding_dropout_rate()));
            for rate in [&mut self.dropout_rate, &mut self.attention_dropout_rate, &mut self.activation_dropout_rate] {
                *rate = change(*rate);
            }
        }

        fn randomized_positions(&self) -> Option<usize> {
            self.randomized_positions
        }
    };
}
pub(super) use of_stack;

/// The `kind` of a choice that a config writes as a table.
pub(super) fn kind(choice: &impl serde::Serialize) -> String {
    let value = serde_json::to_value(choice).unwrap_or_default();
    value["kind"].as_str().unwrap_or_default().to_owned()
}
