//! The loss of language models by how much of the text they have in sight.

use super::comparison::Division;
use super::comparison::chart::{Axis, Chart, Point, Series};
use crate::scoring::{PositionScores, TextScores};

/// A line for each model, from one token in sight to the whole context. Tokens are those of the models' own tokenizer, so that
/// only models with the same one can be compared here.
pub fn chart(models: &[(String, TextScores)]) -> Chart {
    let point = |range: &PositionScores| {
        // Ranges double, so that their middle is that of their logarithms.
        let x = (range.from as f64 * range.to as f64).sqrt();
        let seen =
            if range.from == range.to { range.to.to_string() } else { format!("{} to {}", range.from, range.to) };
        let tip = format!("{seen} tokens in sight: {:.3} nats over {} tokens", range.loss, range.tokens);
        Point { x, y: range.loss, interval: None, tip }
    };
    let series = models.iter().enumerate().map(|(place, (name, scores))| Series {
        name: name.clone(),
        place,
        points: scores.by_position.iter().map(point).collect(),
        is_marked: true,
    });
    Chart {
        id: "loss-by-position".into(),
        title: "Loss by what is in sight".into(),
        caption: "How much a token's loss falls with the number of tokens before it that the model can look back at."
            .into(),
        x: Axis::logarithmic("tokens in sight", Division::PowersOfTwo),
        y: Axis::linear("loss (nats per token)"),
        series: series.collect(),
        shaded: None,
    }
}
