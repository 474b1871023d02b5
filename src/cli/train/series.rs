//! What is shown of a trained model that answers with numbers.

use super::{N_SHOWN, show_use};
use crate::cli::evaluate::series::{digits, predictions, statistics};
use crate::cli::print;
use crate::data::{SeriesPair, Split};
use crate::error::Result;
use crate::experiment::series::{scalings, series_of};
use crate::experiment::{Config, LoadedModel, dataset};
use std::path::Path;

/// Steps of a series that are shown.
const N_STEPS: usize = 8;

/// Shows what the model answers, how far off that is, and how it is used.
pub(super) fn show(run: &Path, loaded: &LoadedModel, config: &Config) -> Result<()> {
    // A task has test data of its own; those of files are for the end.
    let split = if config.data.task.is_some() { Split::Test } else { Split::Valid };
    let pairs = dataset::pairs_of(&config.data, split, config.seed)?;
    let pairs = series_of(&config.data, split, &pairs, Some(&loaded.tokenizers))?;
    let found = predictions(loaded, &pairs);
    let scores = statistics(loaded, &pairs, &found).scores();
    let held_out = if split == Split::Test { "held-out test" } else { "validation" };
    let last = scores
        .baselines
        .last_value
        .map_or(String::new(), |errors| format!(", where repeating the value last seen has {}", digits(errors.mse)));
    let (mse, mae) = (digits(scores.errors.mse), digits(scores.errors.mae));
    print(&format!("{held_out}: MSE {mse}, MAE {mae} of {} steps{last}\n", scores.steps))?;
    let (_, target) = scalings(&loaded.tokenizers);
    for (SeriesPair { source, target: truth }, predicted) in pairs.iter().zip(&found).take(N_SHOWN) {
        let lines = [("source", source.clone()), ("target", truth.clone()), ("model", target.rounded(predicted))];
        for (name, series) in lines {
            let steps: Vec<String> = series.to_string().split(' ').map(str::to_owned).collect();
            let more = if steps.len() > N_STEPS { " ..." } else { "" };
            print(&format!("  {name:<7} {}{more}\n", steps[..steps.len().min(N_STEPS)].join(" ")))?;
        }
        print("\n")?;
    }
    show_use(run, &loaded.config)
}
