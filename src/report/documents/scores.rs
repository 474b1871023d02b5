//! What documents say of models that were evaluated one by one: a row for each score, with every seed, the mean and its interval, beside
//! what is published; or models by tests, and by lengths.

use super::{About, cell};
use crate::scoring::{Metric, Part, interval, interval_of_fraction};
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

    /// How many sentences every line was scored on; nothing if they differ, or for records of an earlier program, which do not say.
    fn sentences(&self) -> Option<usize> {
        let mut counts = self.0.iter().map(|one| one.get("sentences").and_then(Value::as_u64));
        let first = counts.next()??;
        counts.all(|count| count == Some(first)).then_some(first)?.try_into().ok()
    }

    /// A score of every seed, from 0 to 100.
    fn of(&self, metric: Metric) -> Result<Vec<f64>, String> {
        self.0.iter().map(|one| score(one, metric)).collect()
    }

    /// The evaluations on one test with one search each, in the order in which they come: names of both, and a line for each seed.
    fn groups(&self) -> Result<Vec<Group<'_>>, String> {
        let mut groups: Vec<Group> = Vec::new();
        for line in &self.0 {
            let name = |key: &str| {
                let name = line.get(key).and_then(Value::as_str);
                name.ok_or_else(|| format!("a line says no {key:?}; evaluate its model again"))
            };
            let names = [name("test")?, name("decoding")?];
            match groups.iter_mut().find(|group| group.names == names) {
                Some(group) => group.lines.push(line),
                None => groups.push(Group { names, lines: vec![line] }),
            }
        }
        Ok(groups)
    }
}

/// The evaluations on one test with one search.
struct Group<'a> {
    names: [&'a str; 2],
    lines: Vec<&'a Map<String, Value>>,
}

/// A score from 0 to 100, of a line or of a part of it.
fn score(of: &Map<String, Value>, metric: Metric) -> Result<f64, String> {
    let key = match metric {
        // One computation with two names.
        Metric::Per => Metric::Wer.name().into(),
        _ => metric.name().replace('-', "_"),
    };
    let scale = if matches!(metric, Metric::Bleu | Metric::Chrf) { 1.0 } else { 100.0 };
    let value = of.get(&key).and_then(Value::as_f64);
    value.map(|value| scale * value).ok_or_else(|| format!("there is no {key:?} in it"))
}

/// The mean over seeds with its interval, within what the score can be.
fn mean_of(metric: Metric, values: &[f64]) -> (f64, Option<[f64; 2]>) {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let [least, most] = metric.bounds();
    let of_mean = Part::of_seeds(values).map(|seeds| interval(mean, &[seeds]));
    (mean, of_mean.map(|[low, high]| [low.max(least), high.min(most)]))
}

/// The interval of a score that counts right sentences, from 0 to 100, over `n` sentences and the seeds, where there are several. Which
/// sentences each seed had right is not known: seeds are taken to agree, which makes the interval the widest that it can be.
fn of_sentences(metric: Metric, values: &[f64], n: usize) -> Option<[f64; 2]> {
    let is_one_by_one = matches!(metric, Metric::SequenceAccuracy | Metric::SequenceError);
    let fractions: Vec<f64> = values.iter().map(|value| value / 100.0).collect();
    let mean = fractions.iter().sum::<f64>() / fractions.len() as f64;
    let ends = || {
        let parts: Vec<Part> = std::iter::once(Part::of_sentences(0.0, n)).chain(Part::of_seeds(&fractions)).collect();
        interval_of_fraction(mean, n, &parts).map(|end| 100.0 * end)
    };
    (is_one_by_one && n > 0).then(ends)
}

/// Models by tests: a row for each model, a column for each test and search whose title contains `wanted`, in cells the mean over the
/// seeds and its interval.
pub(super) fn grid(metric: Metric, wanted: &str, models: &[(&About, &Evaluations)]) -> Result<String, String> {
    let mut columns: Vec<String> = Vec::new();
    let mut rows = Vec::new();
    for (about, evaluations) in models {
        let mut row = vec![String::new(); columns.len()];
        let mut n_seeds = Vec::new();
        for Group { names, lines } in named(about, evaluations.groups())? {
            let title = names.map(|name| about.names.get(name).map_or(name, String::as_str)).join(", ");
            if !title.contains(wanted) {
                continue;
            }
            let values: Vec<f64> = lines.iter().map(|line| score(line, metric)).collect::<Result<_, _>>()?;
            n_seeds.push(values.len());
            let place = columns.iter().position(|own| *own == title).unwrap_or_else(|| {
                columns.push(title);
                columns.len() - 1
            });
            row.resize(columns.len(), String::new());
            let (mean, ends) = mean_of(metric, &values);
            row[place] = format!("{mean:.1}");
            if let Some([low, high]) = ends {
                row[place] += &format!(" ({low:.1} to {high:.1})");
            }
        }
        if n_seeds.is_empty() {
            return Err(format!("{} has no evaluation on a test and with a search called {wanted:?}", about.test));
        }
        let [fewest, most] = [n_seeds.iter().min(), n_seeds.iter().max()].map(|n| n.copied().unwrap_or_default());
        let seeds = if fewest == most { most.to_string() } else { format!("{fewest} to {most}") };
        rows.push((&about.test, seeds, row));
    }
    let mut text = "| model | seeds |".to_string();
    columns.iter().for_each(|title| text += &format!(" {} |", cell(title)));
    text += &format!("\n| --- | ---: |{}\n", " ---: |".repeat(columns.len()));
    for (name, seeds, mut row) in rows {
        row.resize(columns.len(), String::new());
        text += &format!("| {} | {seeds} | {} |\n", cell(name), row.join(" | "));
    }
    Ok(text)
}

/// Models by length: a row for each model, a column for each range of source lengths, in cells the mean over the seeds on the first of
/// the tests.
pub(super) fn by_length(metric: Metric, models: &[(&About, &Evaluations)]) -> Result<String, String> {
    /// The lengths of a column and how many sentences have them, as text, and what the seeds have there.
    type Column = (String, Vec<f64>);
    let mut text = String::new();
    let mut titles: Option<Vec<String>> = None;
    for (about, evaluations) in models {
        let groups = named(about, evaluations.groups())?;
        let mut columns: Vec<Column> = Vec::new();
        for line in groups.first().map_or(&[][..], |group| &group.lines) {
            let parts = line.get("by_length").and_then(Value::as_array).ok_or("a line has no \"by_length\"")?;
            for part in parts.iter().filter_map(Value::as_object) {
                let number = |key: &str| part.get(key).and_then(Value::as_u64).ok_or(format!("no {key:?} of a length"));
                let (from, n) = (number("from")?, number("sentences")?);
                let to = part
                    .get("to")
                    .and_then(Value::as_u64)
                    .map_or(format!("{from} or more"), |to| format!("{from}-{to}"));
                let title = format!("{to} ({n} sentences)");
                let value = score(part, metric)?;
                match columns.iter_mut().find(|(own, _)| *own == title) {
                    Some((_, values)) => values.push(value),
                    None => columns.push((title, vec![value])),
                }
            }
        }
        let own: Vec<String> = columns.iter().map(|(title, _)| title.clone()).collect();
        if titles.get_or_insert_with(|| own.clone()) != &own {
            let (first, own) = (titles.unwrap_or_default().join(", "), own.join(", "));
            return Err(format!("{}: its lengths are {own}, and those of the first model {first}", about.test));
        }
        if text.is_empty() {
            text += "| model |";
            columns.iter().for_each(|(title, _)| text += &format!(" {title} |"));
            text += &format!("\n| --- |{}\n", " ---: |".repeat(columns.len()));
        }
        text += &format!("| {} |", cell(&about.test));
        columns.iter().for_each(|(_, values)| text += &format!(" {:.1} |", mean_of(metric, values).0));
        text.push('\n');
    }
    Ok(text)
}

/// How the marks of tables of evaluations begin.
pub(super) const KINDS: [&str; 3] = ["scores", "grid", "by-length"];

/// A table of evaluations, as its mark asks for it: `scores`, `grid METRIC [TEXT]`, `by-length METRIC`.
pub(super) fn block(kind: &str, models: &[(&About, &Evaluations)]) -> Result<String, String> {
    let (kind, rest) = kind.split_once(' ').unwrap_or((kind, ""));
    if kind == "scores" {
        let rows: Result<String, String> = models.iter().map(|(about, own)| named(about, rows(about, own))).collect();
        return Ok(HEAD.to_string() + &rows?);
    }
    let (metric, wanted) = rest.split_once(' ').unwrap_or((rest, ""));
    let metric = Metric::ALL.into_iter().find(|own| own.name() == metric);
    let metric = metric.ok_or_else(|| format!("{kind:?} needs the name of a score, as {kind} bleu"))?;
    if kind == "grid" { grid(metric, wanted, models) } else { by_length(metric, models) }
}

/// A fault with the model that has it.
fn named<T>(about: &About, found: Result<T, String>) -> Result<T, String> {
    found.map_err(|message| format!("{}: {message}", about.test))
}

/// The beginning of the table of every seed.
const HEAD: &str = "| test | score | each seed | mean and interval | published |\n| --- | --- | --- | --- | --- |\n";

/// Two decimals, without a zero at the end: what was kept rounded looks rounded.
fn shown(value: f64) -> String {
    let text = format!("{value:.2}");
    text.strip_suffix('0').unwrap_or(&text).to_string()
}

/// The rows of one test.
pub(super) fn rows(about: &About, evaluations: &Evaluations) -> Result<String, String> {
    let mut text = String::new();
    // Lines of another test or another search are no seeds.
    let n_groups = evaluations.groups().map_or(1, |groups| groups.len());
    if n_groups > 1 {
        return Err(format!("has {n_groups} tests or searches, for which `grid` has a column each"));
    }
    for (i, metric) in about.scores.iter().enumerate() {
        let values = evaluations.of(*metric)?;
        let sign = metric.sign();
        let each: Vec<String> = values.iter().map(|value| shown(*value)).collect();
        let (mean, of_seeds) = mean_of(*metric, &values);
        let n = about.sentences.or(evaluations.sentences());
        let ends = n.and_then(|n| of_sentences(*metric, &values, n)).or(of_seeds);
        let of_mean = ends.map(|[low, high]| format!("{}{sign} ({} to {})", shown(mean), shown(low), shown(high)));
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
        let first = lines.lines().next().unwrap();
        let of = |line: &str| rows(&about, &Evaluations::parse(line).unwrap()).unwrap();
        let alone = of(first);
        assert!(alone.contains("| 10.0 % |  | 30 % |"), "of how many sentences is not said: {alone}");
        // Wilson's interval with Student's factor for 99 degrees of freedom, 1.98422; none where a sentence is more than right or wrong.
        let alone = of(&first.replacen('{', "{\"sentences\":100,", 1));
        assert!(alone.contains("| 10.0 % | 10.0 % (5.48 to 17.55) | 30 % |"), "{alone}");
        assert!(alone.contains("| PER (phones) | 2.0 % |  |  |"), "{alone}");
        // Several seeds, by Newcombe: what Wilson's interval of 15 of 100 (9.25 to 23.4) and Student's of the seeds (63.53) come to.
        let both = About { sentences: Some(100), ..about.clone() };
        let both = rows(&both, &Evaluations::parse(lines).unwrap()).unwrap();
        assert!(both.contains("| 10.0, 20.0 % | 15.0 % (0.0 to 79.08) |"), "{both}");
        assert!(both.contains("| 2.0, 4.0 % | 3.0 % (0.0 to 15.71) |"), "of the seeds alone: {both}");
        let same = "{\"sequence_error\":0.2,\"wer\":0,\"bleu\":0,\"span_f1\":0,\"sentences\":100}\n".repeat(3);
        assert!(
            of(&same).contains("| 20.0 % (13.27 to 29.0) |"),
            "seeds that agree say nothing of other sentences: {}",
            of(&same)
        );
    }

    /// Two models, two seeds each, on two tests; the second has one seed of the second test.
    fn two() -> [(About, Evaluations); 2] {
        let names = [("a.de, a.en", "2016"), ("beam 5, length penalty 1", "beam 5")];
        let names = names.map(|(key, name)| (key.to_string(), name.to_string()));
        let line = |test: &str, bleu: f64| {
            let lengths = serde_json::json!([{ "from": 1, "to": 9, "sentences": 3, "bleu": bleu + 1.0 }, { "from": 10, "to": null, "sentences": 1, "bleu": bleu - 1.0 }]);
            serde_json::json!({ "test": test, "decoding": "beam 5, length penalty 1", "bleu": bleu, "by_length": lengths }).to_string()
        };
        let of = |name: &str, lines: &[String]| {
            let about = About { test: name.into(), names: names.clone().into(), ..About::default() };
            (about, Evaluations::parse(&lines.join("\n")).unwrap())
        };
        let [a, b] = ["a.de, a.en", "b.de, b.en"];
        [
            of("RNN", &[line(a, 20.0), line(b, 10.0), line(a, 22.0), line(b, 12.0)]),
            of("Transformer", &[line(a, 30.0), line(b, 25.0), line(a, 30.0)]),
        ]
    }

    #[test]
    fn tests_and_searches_are_columns_and_models_are_rows() {
        let two = two();
        let models = two.each_ref().map(|(about, own)| (about, own));
        // Student's factor for one degree of freedom is 12.7062; the standard error is 1.
        let expected = "\
            | model | seeds | 2016, beam 5 | b.de, b.en, beam 5 |\n\
            | --- | ---: | ---: | ---: |\n\
            | RNN | 2 | 21.0 (8.3 to 33.7) | 11.0 (0.0 to 23.7) |\n\
            | Transformer | 1 to 2 | 30.0 (30.0 to 30.0) | 25.0 |\n";
        assert_eq!(grid(Metric::Bleu, "", &models).unwrap(), expected);
        let one = grid(Metric::Bleu, "2016", &models).unwrap();
        assert!(one.starts_with("| model | seeds | 2016, beam 5 |\n"), "{one}");
        let expected = "\
            | model | 1-9 (3 sentences) | 10 or more (1 sentences) |\n\
            | --- | ---: | ---: |\n\
            | RNN | 22.0 | 20.0 |\n\
            | Transformer | 31.0 | 29.0 |\n";
        assert_eq!(by_length(Metric::Bleu, &models).unwrap(), expected);
        let about = About::default();
        let nameless = Evaluations::parse("{\"bleu\":1}").unwrap();
        assert!(grid(Metric::Bleu, "", &[(&about, &nameless)]).unwrap_err().contains("\"test\""));
    }

    #[test]
    fn what_is_not_of_an_evaluation_is_refused() {
        assert!(Evaluations::parse("\n").unwrap_err().contains("no line"));
        assert!(Evaluations::parse("{}\n[1]\n").unwrap_err().contains("line 2"));
        let about = About { scores: vec![Metric::Chrf], ..About::default() };
        assert!(rows(&about, &Evaluations::parse("{\"bleu\":1}").unwrap()).unwrap_err().contains("\"chrf\""));
    }
}
