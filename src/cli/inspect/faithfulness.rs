//! `lookback inspect attention --faithfulness`.

use crate::cli::progress;
use crate::models::Model;
use crate::report::attention::collect::Written;
use crate::report::attention::{Part, SentenceMaps};
use crate::report::faithfulness::{Attribution, Erasure, Faithfulness, erase, gradient_times_input};
use maud::{Markup, html};
use schemars::JsonSchema;
use serde::Serialize;

/// How far attention and gradient x input agree with erasing.
#[derive(Serialize, JsonSchema)]
pub(super) struct Verdict {
    /// What stands in for an erased word.
    erased_by: &'static str,
    /// The mean of all cross-attention; none for a model without.
    #[serde(skip_serializing_if = "Option::is_none")]
    attention: Option<Faithfulness>,
    gradient_times_input: Faithfulness,
}

pub(super) fn of(model: &Model, written: &[Written], weights: &[Attribution]) -> Verdict {
    let bar = progress::bar(2 * written.len() as u64, "erasing");
    let step = |_: &&Written| bar.inc(1);
    let erased: Vec<Erasure> = written.iter().inspect(step).map(|pair| erase(model, pair)).collect();
    let gradients: Vec<Attribution> =
        written.iter().inspect(step).map(|pair| gradient_times_input(model, pair)).collect();
    bar.finish_and_clear();
    let has_attention = weights.len() == erased.len();
    Verdict {
        erased_by: "<unk>",
        attention: has_attention.then(|| Faithfulness::of(weights.iter().zip(&erased))),
        gradient_times_input: Faithfulness::of(gradients.iter().zip(&erased)),
    }
}

/// What the mean of all cross-attention says of each source word, where there is some.
pub(super) fn of_attention(sentence: &SentenceMaps) -> Option<Attribution> {
    sentence.average(Part::Cross).map(|map| Attribution::of_weights(&map.weights, map.n_columns))
}

impl Verdict {
    fn rows(&self) -> Vec<(&'static str, &Faithfulness)> {
        let attention = self.attention.as_ref().map(|attention| ("attention", attention));
        attention.into_iter().chain([("gradient x input", &self.gradient_times_input)]).collect()
    }
}

/// What is said where nothing was measured.
const NOTHING: &str = "no target token to measure: where the source has one token, there is none to choose";

const COLUMNS: [&str; 8] = ["most", "least", "any", "most", "least", "any", "same word", "rank corr."];

fn numbers(f: &Faithfulness) -> [String; 8] {
    let share = |value: f64| format!("{:.1} %", 100.0 * value);
    [
        format!("{:.3}", f.effect_of_most),
        format!("{:.3}", f.effect_of_least),
        format!("{:.3}", f.effect_of_any),
        share(f.changed_by_most),
        share(f.changed_by_least),
        share(f.changed_by_any),
        share(f.same_most),
        format!("{:.3}", f.rank_correlation),
    ]
}

pub(super) fn text(verdict: &Verdict) -> String {
    if verdict.gradient_times_input.n_targets == 0 {
        return format!("\n{NOTHING}\n");
    }
    let mut text = format!(
        "\none source token at a time replaced by {}, {} target tokens\n\
         {:<20}log-probability falls by (nats)      prediction changes\n{:<18}",
        verdict.erased_by, verdict.gradient_times_input.n_targets, "", "token chosen by"
    );
    let line = |cells: &[String]| cells.iter().map(|cell| format!("{cell:>11}")).collect::<String>() + "\n";
    text += &line(&COLUMNS.map(String::from));
    for (name, f) in verdict.rows() {
        text += &format!("{name:<18}{}", line(&numbers(f)));
    }
    text
}

pub(super) fn html(verdict: &Verdict) -> Markup {
    if verdict.gradient_times_input.n_targets == 0 {
        return html! { h2 { "Is it to be believed?" } p.muted { (NOTHING) "." } };
    }
    html! {
        h2 { "Is it to be believed?" }
        p.muted {
            "One source token at a time is replaced by <unk>: the one with the most weight for a target token, the one with the least, \
             and any. Faithful weights change the prediction most where they are largest. "
            i { "Same word" } " is how often the token of most weight is the one whose loss hurts most; "
            i { "rank corr." } " is Spearman's correlation of weights and effects. Gradient x input is measured from <unk> too. "
            (verdict.gradient_times_input.n_targets) " target tokens."
        }
        div.panel {
            table {
                thead {
                    tr {
                        th rowspan="2" { "token chosen by" }
                        th colspan="3" { "log-probability falls by (nats)" }
                        th colspan="3" { "prediction changes" }
                        th colspan="2" {}
                    }
                    tr { @for column in COLUMNS { th.number { (column) } } }
                }
                tbody {
                    @for (name, f) in verdict.rows() {
                        tr { td { (name) } @for cell in numbers(f) { td.number { (cell) } } }
                    }
                }
            }
        }
    }
}
