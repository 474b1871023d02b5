//! An explanation as a self-contained page to step through with the keyboard.

use super::{AttentionRow, Choice, Explanation, Selection, State, Step, WordVector, vectors};
use crate::report::page::{Page, json};
use serde_json::{Value, json};

/// Numbers of each vector that the page shows.
const N_VALUES: usize = 8;

/// The page, open at what is selected.
pub fn page(explanation: &Explanation, selection: &Selection) -> String {
    Page {
        title: format!("{} → {}", explanation.source_text, explanation.target_text),
        body: include_str!("html/page.html").to_owned(),
        style: include_str!("html/page.css").to_owned(),
        script: concat!(include_str!("html/draw.js"), include_str!("html/page.js")).to_owned(),
        data: json(&data(explanation, selection)),
    }
    .render()
}

/// What the page shows: [`Explanation`] with vectors cut and numbers rounded.
fn data(explanation: &Explanation, selection: &Selection) -> Value {
    let rows = explanation.steps.first().map_or(&[][..], |step| &step.attention);
    let heads: Vec<Value> = rows
        .iter()
        .map(|row| {
            let values =
                explanation.memory(row).map(|memory| memory.values.iter().map(|v| first(v)).collect::<Vec<_>>());
            json!({ "layer": row.layer, "head": row.head, "values": values })
        })
        .collect();
    let layers: Vec<Value> = explanation
        .encoder
        .layers
        .iter()
        .map(|layer| json!({ "layer": layer.layer, "states": layer.states.iter().map(state).collect::<Vec<_>>() }))
        .collect();
    let shares = explanation.encoder.context.as_ref().map(|_| rounded(&explanation.shares()));
    json!({
        "model": explanation.model,
        "mechanism": explanation.mechanism,
        "notes": explanation.notes,
        "forced": explanation.forced,
        "source": explanation.source,
        "target": explanation.target,
        "words": explanation.source_words.iter().map(word).collect::<Vec<_>>(),
        "layers": layers,
        "context": explanation.encoder.context.as_deref().map(vector),
        "shares": shares,
        "heads": heads,
        "steps": explanation.steps.iter().map(step).collect::<Vec<_>>(),
        "at": { "step": selection.step, "layer": selection.layer, "head": selection.head },
    })
}

/// Four significant digits.
fn round(value: f32) -> f32 {
    format!("{value:.3e}").parse().expect("a number stays one")
}

fn rounded(values: &[f32]) -> Vec<f32> {
    values.iter().copied().map(round).collect()
}

fn first(values: &[f32]) -> Vec<f32> {
    rounded(&values[..values.len().min(N_VALUES)])
}

/// The beginning of a vector, its width and its length.
fn vector(values: &[f32]) -> Value {
    json!({ "first": first(values), "width": values.len(), "norm": round(vectors::norm(values)) })
}

fn word(word: &WordVector) -> Value {
    let near: Vec<Value> = word.neighbours.iter().map(|n| json!([n.token, round(n.cosine)])).collect();
    json!({ "token": word.token, "vector": vector(&word.vector), "near": near })
}

fn state(state: &State) -> Value {
    let changes: Vec<Value> = state
        .changes
        .iter()
        .map(|change| json!({ "from": change.from, "cosine": change.cosine.map(round), "distance": round(change.distance) }))
        .collect();
    json!({ "token": state.token, "vector": vector(&state.vector), "changes": changes })
}

fn choice(choice: &Choice) -> Value {
    json!({ "token": choice.token, "p": round(choice.probability) })
}

fn row(row: &AttentionRow) -> Value {
    json!({
        "query": vector(&row.query),
        "scores": rounded(&row.scores),
        "weights": rounded(&row.weights),
        "context": vector(&row.context),
        "center": row.center,
        "window": row.window,
    })
}

fn step(step: &Step) -> Value {
    json!({
        "previous": step.previous,
        "chosen": choice(&step.chosen),
        "preferred": choice(&step.preferred),
        "agrees": step.chosen.id == step.preferred.id,
        "top": step.top.iter().map(choice).collect::<Vec<_>>(),
        "before": (!step.previous_state.is_empty()).then(|| vector(&step.previous_state)),
        "state": vector(&step.state),
        "cosine": vectors::cosine(&step.state, &step.previous_state).map(round),
        "influence": rounded(&step.influence),
        "rows": step.attention.iter().map(row).collect::<Vec<_>>(),
    })
}
