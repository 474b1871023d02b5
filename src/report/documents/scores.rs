//! What documents say of models that were evaluated one by one: a row for each score, with every seed, the mean and its interval, beside
//! what is published.

use super::{About, cell};
use crate::scoring::{Metric, Part, interval};
use serde_json::{Map, Value};

/// What `evaluate --json` printed of the model of each seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluations(Vec<Map<String, Value>>);

impl Evaluations {
    /// Reads lines of `evaluate --json`.
    ///
    /// # Errors
    /// If a line is not one, or there is none; says which.
    pub fn parse(text: &str) -> Result<Self, String> {
        let line = |(i, line): (usize, &str)| {
            serde_json::from_str(line).map_err(|error| format!("line {} is not of evaluate --json: {error}", i + 1))
        };
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let evaluations: Vec<Map<String, Value>> = lines.map(line).collect::<Result<_, _>>()?;
        if evaluations.is_empty() {
            return Err("there is no line of evaluate --json".into());
        }
        Ok(Self(evaluations))
    }

    /// The lines again.
    pub fn lines(&self) -> String {
        self.0.iter().map(|one| Value::Object(one.clone()).to_string() + "\n").collect()
    }

    /// A score of every seed, from 0 to 100.
    fn of(&self, metric: Metric) -> Result<Vec<f64>, String> {
        let key = match metric {
            // One computation with two names.
            Metric::Per => Metric::Wer.name().into(),
            _ => metric.name().replace('-', "_"),
        };
        let scale = if matches!(metric, Metric::Bleu | Metric::Chrf) { 1.0 } else { 100.0 };
        let value = |one: &Map<String, Value>| Some(scale * one.get(&key)?.as_f64()?);
        self.0.iter().map(|one| value(one).ok_or_else(|| format!("there is no {key:?} in it"))).collect()
    }
}

/// The beginning of the table.
pub(super) const HEAD: &str =
    "| test | score | each seed | mean and interval | published |\n| --- | --- | --- | --- | --- |\n";

/// Two decimals, without a zero at the end: what was kept rounded looks rounded.
fn shown(value: f64) -> String {
    let text = format!("{value:.2}");
    text.strip_suffix('0').unwrap_or(&text).to_string()
}

/// The rows of one test.
pub(super) fn rows(about: &About, evaluations: &Evaluations) -> Result<String, String> {
    let mut text = String::new();
    for (i, metric) in about.scores.iter().enumerate() {
        let values = evaluations.of(*metric)?;
        let sign = if metric.unit().is_some() { " %" } else { "" };
        let each: Vec<String> = values.iter().map(|value| shown(*value)).collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let of_mean = Part::of_seeds(&values).map(|seeds| {
            let [low, high] = interval(mean, &[seeds]);
            // More words may be wrong than there are.
            let most = if matches!(metric, Metric::Wer | Metric::Per | Metric::Cer) { f64::INFINITY } else { 100.0 };
            format!("{}{sign} ({} to {})", shown(mean), shown(low.max(0.0)), shown(high.min(most)))
        });
        let [test, published] = if i == 0 { [&*about.test, &*about.published] } else { [""; 2] };
        text += &format!(
            "| {} | {} | {}{sign} | {} | {} |\n",
            cell(test),
            metric.title(),
            each.join(", "),
            of_mean.unwrap_or_default(),
            cell(published)
        );
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_seed_the_mean_and_its_interval_stand_in_a_row() {
        let about = About {
            test: "words | phones".into(),
            published: "30 %".into(),
            scores: vec![Metric::SequenceError, Metric::Per, Metric::Bleu, Metric::SpanF1],
            ..About::default()
        };
        let lines = "{\"sequence_error\":0.1,\"wer\":0.02,\"bleu\":90.0,\"span_f1\":0.5}\n\n\
                     {\"sequence_error\":0.2,\"wer\":0.04,\"bleu\":80.5,\"span_f1\":0.75}\n";
        let found = rows(&about, &Evaluations::parse(lines).unwrap()).unwrap();
        // Student's factor for one degree of freedom is 12.7062; the standard errors are 5, 1 and 4.75.
        let expected = "\
            | words \\| phones | sequence error (sequences) | 10.0, 20.0 % | 15.0 % (0.0 to 78.53) | 30 % |\n\
            |  | PER (phones) | 2.0, 4.0 % | 3.0 % (0.0 to 15.71) |  |\n\
            |  | BLEU | 90.0, 80.5 | 85.25 (24.9 to 100.0) |  |\n\
            |  | F1 of spans | 50.0, 75.0 | 62.5 (0.0 to 100.0) |  |\n";
        assert_eq!(found, expected);
        let alone = rows(&about, &Evaluations::parse(lines.lines().next().unwrap()).unwrap()).unwrap();
        assert!(alone.contains("| 10.0 % |  | 30 % |"), "one model has no interval: {alone}");
    }

    #[test]
    fn what_is_not_of_an_evaluation_is_refused() {
        assert!(Evaluations::parse("\n").unwrap_err().contains("no line"));
        assert!(Evaluations::parse("{}\n[1]\n").unwrap_err().contains("line 2"));
        let about = About { scores: vec![Metric::Chrf], ..About::default() };
        assert!(rows(&about, &Evaluations::parse("{\"bleu\":1}").unwrap()).unwrap_err().contains("\"chrf\""));
    }
}
