//! The tables of those who take part: what they are, in what they differ, how their settings were found.

use super::data::Comparison;
use super::table::{Cell, Table};

/// Those that have rows.
pub(super) fn tables(comparison: &Comparison) -> Vec<Table> {
    let mut found = vec![contestants(comparison), fairness(comparison), trials(comparison)];
    found.retain(|table| !table.rows.is_empty());
    found
}

fn contestants(comparison: &Comparison) -> Table {
    let columns = [
        "model",
        "what it is",
        "parameters",
        "updates",
        "target tokens",
        "seconds",
        "answers cut",
        "learning rate",
        "dropout",
        "training FLOP per token",
        "decoding FLOP per token",
    ];
    let about = format!(
        "Updates, tokens, seconds and answers are means over the seeds. Answers cut: of {} answers to test sentences, those that the \
         model had not ended at the length cap. Operations are in closed form at the trained length.",
        comparison.n_sentences()
    );
    let mut table = Table::new("contestants", "The models", &about, &columns);
    for c in &comparison.contestants {
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
        let of_counts = |values: &[u64]| mean(&values.iter().map(|value| *value as f64).collect::<Vec<_>>());
        table.rows.push(vec![
            Cell::text(&c.name),
            Cell::text(&c.model),
            Cell::count(c.parameters),
            Cell::short(of_counts(&c.updates)),
            Cell::short(of_counts(&c.train_tokens)),
            Cell::short(mean(&c.train_seconds)),
            Cell::short(mean(&c.cut_answers.iter().map(|n| *n as f64).collect::<Vec<_>>())),
            Cell::number(c.learning_rate.to_string(), c.learning_rate),
            Cell::number(c.dropout_rate.to_string(), c.dropout_rate),
            Cell::short(c.training_flops_per_token),
            Cell::short(c.decoding_flops_per_token),
        ]);
    }
    table
}

fn fairness(comparison: &Comparison) -> Table {
    let names = comparison.contestants.iter().map(|c| c.name.as_str());
    let columns: Vec<&str> = std::iter::once("what").chain(names).collect();
    let mut table = Table::new("differences", "What is not the same", "What is the same is listed below.", &columns);
    for difference in &comparison.differences {
        let values = difference.values.iter().map(Cell::text);
        table.rows.push(std::iter::once(Cell::text(&difference.what)).chain(values).collect());
    }
    table
}

fn trials(comparison: &Comparison) -> Table {
    let columns = ["model", "trial", "learning rate", "dropout", "updates", "validation loss", "taken"];
    let about = "The first trial has the settings of the model's own config; the others are the same for every model, except \
                 that one without dropout stays without. The least cross-entropy on the validation data (nats per target token) decided.";
    let mut table = Table::new("trials", "The search for a learning rate and dropout", about, &columns);
    for t in &comparison.trials {
        table.rows.push(vec![
            Cell::text(&t.contestant),
            Cell::count(t.trial),
            Cell::number(t.learning_rate.to_string(), t.learning_rate),
            Cell::number(t.dropout_rate.to_string(), t.dropout_rate),
            Cell::number(
                t.run_updates.map_or(t.updates.to_string(), |whole| format!("{} of {whole}", t.updates)),
                t.updates as f64,
            ),
            Cell::number(format!("{:.4}", t.valid_loss), t.valid_loss),
            Cell::text(if t.is_chosen { "yes" } else { "" }),
        ]);
    }
    table
}
