//! An explanation as a self-contained page to step through with the keyboard.

use super::{AttentionRow, Choice, Explanation, RecurrenceStep, Selection, State, Step, WordVector, vectors};
use crate::report::page::{Page, VIEW_SCRIPT, VIEW_STYLE, json};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use maud::PreEscaped;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

/// Numbers of each vector that the page shows: every one of a head's, the first of a wide one's.
const N_VALUES: usize = 64;

/// The page, open at what is selected.
pub fn page(explanation: &Explanation, selection: &Selection) -> String {
    Page {
        title: format!("{} → {}", explanation.source_text, explanation.target_text),
        heading: explanation.model.clone(),
        body: PreEscaped(include_str!("html/page.html").to_owned()),
        style: [VIEW_STYLE, include_str!("html/page.css"), include_str!("html/bands.css")].concat(),
        script: [
            VIEW_SCRIPT,
            include_str!("html/data.js"),
            include_str!("html/formula.js"),
            include_str!("html/scene.js"),
            include_str!("html/stages.js"),
            include_str!("html/ribbon.js"),
            include_str!("html/bands.js"),
            include_str!("html/page.js"),
        ]
        .concat(),
        data: json(&data(explanation, selection)),
        ..Page::default()
    }
    .render()
}

/// What the page shows: [`Explanation`] with vectors cut and numbers rounded.
fn data<'a>(explanation: &'a Explanation, selection: &Selection) -> Data<'a> {
    let heads = |rows: &[AttentionRow]| -> Vec<Value> {
        let head = |row: &AttentionRow| {
            let memory = explanation.memory(row);
            let values = memory.map(|memory| memory.values.iter().map(|v| packed(v)).collect::<Vec<_>>());
            json!({ "layer": row.layer, "head": row.head, "values": values })
        };
        rows.iter().map(head).collect()
    };
    let first_step = explanation.steps.first();
    let layers: Vec<Value> = explanation
        .encoder
        .layers
        .iter()
        .map(|layer| json!({ "layer": layer.layer, "states": layer.states.iter().map(state).collect::<Vec<_>>() }))
        .collect();
    let shares = explanation.encoder.context.as_ref().map(|_| rounded(&explanation.shares()));
    let rest = json!({
        "model": explanation.model,
        "mechanism": explanation.mechanism,
        "change": explanation.mechanism.change_meaning(),
        "notes": explanation.notes,
        "forced": explanation.forced,
        "source": explanation.source,
        "target": explanation.target,
        "words": explanation.source_words.iter().map(word).collect::<Vec<_>>(),
        "layers": layers,
        "context": explanation.encoder.context.as_deref().map(vector),
        "shares": shares,
        "heads": heads(first_step.map_or(&[], |step| explanation.rows(step))),
        "own": heads(first_step.map_or(&[], |step| explanation.own_rows(step))),
        "at": { "step": selection.step, "layer": selection.layer, "head": selection.head },
    });
    Data {
        rest,
        reading: reading(&explanation.encoder.attention),
        steps: explanation.steps.iter().map(|own| step(explanation, own)).collect(),
    }
}

/// What the page shows. Weights and scores, of which there are most, are written from where they are.
#[derive(Serialize)]
struct Data<'a> {
    #[serde(flatten)]
    rest: Value,
    reading: Vec<ReadingData<'a>>,
    steps: Vec<StepData<'a>>,
}

#[derive(Serialize)]
struct ReadingData<'a> {
    #[serde(skip)]
    name: &'a str,
    layer: usize,
    head: usize,
    rows: Vec<Rounded<'a>>,
}

#[derive(Serialize)]
struct StepData<'a> {
    #[serde(flatten)]
    rest: Value,
    influence: Rounded<'a>,
    rows: Vec<RowData<'a>>,
    own: Vec<RowData<'a>>,
}

#[derive(Serialize)]
struct RowData<'a> {
    query: Value,
    scores: Rounded<'a>,
    weights: Rounded<'a>,
    context: Value,
    center: Option<f32>,
    window: Option<[usize; 2]>,
}

/// Numbers that are written with [`round`].
struct Rounded<'a>(&'a [f32]);

impl Serialize for Rounded<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().copied().map(round))
    }
}

/// Six decimals: the page shows two or three, and a number that is rounded twice must not differ from one rounded once.
fn round(value: f32) -> f64 {
    (f64::from(value) * 1e6).round() / 1e6
}

fn rounded(values: &[f32]) -> Vec<f64> {
    values.iter().copied().map(round).collect()
}

/// The beginning of a vector, as 32-bit floats in base64: exact, and shorter than digits.
fn packed(values: &[f32]) -> String {
    let bytes: Vec<u8> = values.iter().take(N_VALUES).flat_map(|value| value.to_le_bytes()).collect();
    STANDARD.encode(bytes)
}

/// The beginning of a vector, its width and its length.
fn vector(values: &[f32]) -> Value {
    json!({ "packed": packed(values), "width": values.len(), "norm": f64::from(vectors::norm(values)) })
}

/// Over all numbers of a vector, also those that the page does not have.
fn mean(values: &[f32]) -> f64 {
    values.iter().map(|value| f64::from(*value)).sum::<f64>() / values.len().max(1) as f64
}

/// The same, where there is one.
fn some_vector(values: &[f32]) -> Option<Value> {
    (!values.is_empty()).then(|| vector(values))
}

/// What the source's tokens look at in each other: for each layer and head a row of weights for each token.
fn reading(rows: &[AttentionRow]) -> Vec<ReadingData<'_>> {
    let mut found: Vec<ReadingData> = Vec::new();
    for row in rows {
        match found.last_mut().filter(|last| (last.name, last.head) == (&row.name, row.head)) {
            Some(last) => last.rows.push(Rounded(&row.weights)),
            None => found.push(ReadingData {
                name: &row.name,
                layer: row.layer,
                head: row.head,
                rows: vec![Rounded(&row.weights)],
            }),
        }
    }
    found
}

fn word(word: &WordVector) -> Value {
    let near: Vec<Value> = word.neighbours.iter().map(|n| json!([n.token, round(n.cosine)])).collect();
    json!({ "token": word.token, "vector": vector(&word.vector), "embedded": some_vector(&word.embedded), "near": near })
}

fn state(state: &State) -> Value {
    let changes: Vec<Value> = state
        .changes
        .iter()
        .map(|change| json!({ "from": change.from, "cosine": change.cosine.map(f64::from), "distance": f64::from(change.distance) }))
        .collect();
    json!({ "token": state.token, "vector": vector(&state.vector), "kept": rounded(&state.kept), "changes": changes })
}

fn choice(choice: &Choice) -> Value {
    json!({ "token": choice.token, "p": round(choice.probability) })
}

fn row(row: &AttentionRow) -> RowData<'_> {
    RowData {
        query: vector(&row.query),
        scores: Rounded(&row.scores),
        weights: Rounded(&row.weights),
        context: vector(&row.context),
        center: row.center,
        window: row.window,
    }
}

fn recurrence(layer: &RecurrenceStep) -> Value {
    let range = |range: Option<[f32; 3]>| range.map(|range| rounded(&range));
    json!({
        "layer": layer.layer,
        "kept": range(layer.kept_range()),
        "replaced": range(layer.replaced_range()),
        "state": vector(&layer.state),
    })
}

fn step<'a>(explanation: &Explanation, step: &'a Step) -> StepData<'a> {
    let rest = json!({
        "previous": step.previous,
        "chosen": choice(&step.chosen),
        "preferred": choice(&step.preferred),
        "agrees": step.chosen.id == step.preferred.id,
        "contrast": step.contrast.token,
        "top": step.top.iter().map(choice).collect::<Vec<_>>(),
        "input": some_vector(&step.input),
        "before": some_vector(&step.previous_state),
        "state": some_vector(&step.state),
        "layers": step.layers.iter().map(|output| vector(output)).collect::<Vec<_>>(),
        "gates": step.gates.iter().map(|gate| json!({ "vector": vector(gate), "mean": mean(gate) })).collect::<Vec<_>>(),
        "readout": some_vector(&step.readout),
        "recurrences": step.recurrences.iter().map(recurrence).collect::<Vec<_>>(),
        "cosine": vectors::cosine(&step.state, &step.previous_state).map(f64::from),
    });
    StepData {
        rest,
        influence: Rounded(&step.influence),
        rows: explanation.rows(step).iter().map(row).collect(),
        own: explanation.own_rows(step).iter().map(row).collect(),
    }
}
