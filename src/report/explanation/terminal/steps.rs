//! The third part of the page: all steps at a glance, and the board of one step.

use super::super::{AttentionRow, Explanation, Selection, Step, vectors};
use super::heading;
use super::ink::{Piece, Sheet, Tone, bar, muted, numbers, percent, plain, token};

/// Source positions on a board of which nobody has asked for more.
const MAX_POSITIONS: usize = 8;

/// Columns of a weight's bar and of a probability's.
const WEIGHT_BAR: usize = 16;
const PROBABILITY_BAR: usize = 24;

/// One line for each step.
pub(super) fn overview(sheet: &mut Sheet, explanation: &Explanation) {
    let has_attention = explanation.mechanism.has_attention;
    let averaged = explanation.steps.iter().any(|step| step.attention.len() > 1);
    let remark = match (has_attention, averaged) {
        (true, true) => "weights: the mean over all layers and heads",
        (true, false) => "",
        (false, _) => "influence: gradient x input, since there is no attention to look at",
    };
    heading(sheet, "3. Step by step", remark);
    let seen = if has_attention { "looks at" } else { "depends on" };
    let word = if explanation.forced { "given" } else { "chosen" };
    let mut rows = vec![vec![muted("step"), muted("after"), muted(word), muted("p"), muted(seen)]];
    for step in &explanation.steps {
        let mut row = vec![
            plain(step.step.to_string()),
            token(&step.previous),
            Piece(super::ink::cut(&step.chosen.token, 18), Tone::Choice),
            plain(percent(step.chosen.probability)),
        ];
        let weights = if has_attention { step.mean_weights() } else { step.influence.clone() };
        let mut text = strongest(&explanation.source, &weights, 3);
        if step.chosen.id != step.preferred.id {
            text += &format!("   (rather {} {})", step.preferred.token, percent(step.preferred.probability));
        }
        row.push(Piece(text, if step.chosen.id == step.preferred.id { Tone::Plain } else { Tone::Notice }));
        rows.push(row);
    }
    sheet.table("><<><", &rows);
}

/// The `n` positions of most weight, as text.
fn strongest(source: &[String], weights: &[f32], n: usize) -> String {
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by(|a, b| weights[*b].abs().total_cmp(&weights[*a].abs()));
    let named: Vec<String> = order.iter().take(n).map(|i| format!("{} {:.2}", source[*i], weights[*i])).collect();
    named.join("  ")
}

/// Everything about one step.
pub(super) fn board(sheet: &mut Sheet, explanation: &Explanation, step: &Step, selection: &Selection) {
    sentence(sheet, explanation, step);
    let rows: Vec<&AttentionRow> =
        step.attention.iter().filter(|row| selection.has_head(row.layer, row.head)).collect();
    let asked = selection.step.is_some();
    if !step.previous_state.is_empty() {
        vector(sheet, &format!("s_{}", step.step - 1), &step.previous_state, "the state before");
    }
    match rows[..] {
        [] if !step.influence.is_empty() => influences(sheet, explanation, step, asked),
        [] => {}
        [row] => numbers_of(sheet, explanation, step, row, asked),
        _ if selection.is_of_heads() => rows.iter().for_each(|row| numbers_of(sheet, explanation, step, row, asked)),
        _ => summary(sheet, explanation, step, &rows, asked),
    }
    if selection.is_of_heads() {
        for row in step.self_attention.iter().filter(|row| selection.has_head(row.layer, row.head)) {
            numbers_of(sheet, explanation, step, row, asked);
        }
    }
    if !step.state.is_empty() {
        let meaning = match vectors::cosine(&step.state, &step.previous_state) {
            Some(cosine) => format!("the new state; cosine to the state before {cosine:.2}"),
            None => "the output of the last layer".to_owned(),
        };
        let name = if step.previous_state.is_empty() { "x" } else { "s" };
        vector(sheet, &format!("{name}_{}", step.step), &step.state, &meaning);
    }
    distribution(sheet, explanation, step);
}

/// What happens, in one sentence.
fn sentence(sheet: &mut Sheet, explanation: &Explanation, step: &Step) {
    sheet.space();
    let head = format!("Step {} of {}   ", step.step, explanation.target.len().max(step.step));
    if step.chosen.token.is_empty() {
        return sheet.line(&[Piece(head, Tone::Heading)]);
    }
    let mut pieces = vec![
        Piece(head, Tone::Heading),
        plain("the word after "),
        Piece(format!("\"{}\"", step.previous), Tone::Token),
        plain(" is "),
        Piece(format!("\"{}\"", step.chosen.token), Tone::Choice),
        plain(format!(" with {}", percent(step.chosen.probability))),
    ];
    if step.chosen.id != step.preferred.id {
        let preferred = format!("; the model would rather have \"{}\" ", step.preferred.token);
        pieces.push(Piece(preferred + &format!("({})", percent(step.preferred.probability)), Tone::Notice));
    }
    sheet.paragraph(0, &pieces);
}

/// A named vector.
fn vector(sheet: &mut Sheet, name: &str, values: &[f32], meaning: &str) {
    let end = format!("   {meaning}, norm {:.2}", vectors::norm(values));
    let room = sheet.look.width.saturating_sub(12 + end.chars().count()).clamp(16, 36);
    sheet.line(&[plain(format!("  {name:<6} = ")), plain(numbers(values, room)), muted(end)]);
}

/// Scores, weights, weighted states and context of one head.
fn numbers_of(sheet: &mut Sheet, explanation: &Explanation, step: &Step, row: &AttentionRow, asked: bool) {
    if explanation.steps.iter().any(|step| step.attention.len() > 1) || step.attention.len() > 1 {
        let to = if super::super::rows::is_self(&row.name) {
            "attention to the target so far"
        } else {
            "attention to the source"
        };
        sheet.space();
        sheet.line(&[Piece(format!("  Layer {}, head {}: {to}", row.layer, row.head), Tone::Heading)]);
    }
    for makes in ["query", "window", "score", "weights", "context"] {
        let Some(formula) = explanation.mechanism.formula(makes) else { continue };
        sheet.table("<<", &[vec![plain(format!("{:<44}", formula.at(step.step))), muted(formula.meaning.clone())]]);
    }
    if !row.query.is_empty() {
        vector(sheet, "q", &row.query, "the query");
    }
    if let (Some(center), Some([first, last])) = (row.center, row.window) {
        let text = format!("  the window is centred at {center:.2} and reaches from position {first} ");
        let names = format!("(\"{}\") to {last} (\"{}\")", row.source[first - 1], row.source[last - 1]);
        sheet.paragraph(2, &[Piece(text.trim_start().to_owned() + &names, Tone::Notice)]);
    }
    positions(sheet, explanation, step, row, asked);
    vector(sheet, "c", &row.context, "the context");
}

fn positions(sheet: &mut Sheet, explanation: &Explanation, step: &Step, row: &AttentionRow, asked: bool) {
    let values = explanation.memory(row).map(|memory| &memory.values);
    let with_influence = step.influence.len() == row.weights.len() && !super::super::rows::is_self(&row.name);
    let fixed = 20 + 9 + 8 + WEIGHT_BAR + if with_influence { 11 } else { 0 } + 8;
    let room = sheet.look.width.saturating_sub(fixed).clamp(9, 36);
    let mut head = vec![muted("source"), muted("score"), muted("weight"), muted(""), muted("weight x value")];
    if super::super::rows::is_self(&row.name) {
        head[0] = muted("target so far");
    }
    if with_influence {
        head.push(muted("grad x input"));
    }
    let mut rows = vec![head];
    let shown = kept(&row.weights, if asked { usize::MAX } else { MAX_POSITIONS });
    for &i in &shown {
        let weight = row.weights[i];
        let weighted: Vec<f32> = values
            .and_then(|values| values.get(i))
            .map_or(Vec::new(), |value| value.iter().map(|value| weight * value).collect());
        let mut cells = vec![
            token(&row.source[i]),
            plain(row.scores.get(i).map_or(String::new(), |score| format!("{score:.3}"))),
            plain(format!("{weight:.3}")),
            Piece(format!("{:<WEIGHT_BAR$}", bar(weight, WEIGHT_BAR)), Tone::Weight(weight)),
            Piece(numbers(&weighted, room), if weight >= 0.05 { Tone::Plain } else { Tone::Muted }),
        ];
        if with_influence {
            cells.push(muted(format!("{:+.2}", step.influence[i])));
        }
        rows.push(cells);
    }
    let sum: f32 = row.weights.iter().sum();
    rows.push(vec![muted("sum"), plain(""), plain(format!("{sum:.3}")), plain(""), plain(numbers(&row.context, room))]);
    sheet.table("<>><<>", &rows);
    let left = row.weights.len() - shown.len();
    if left > 0 {
        let rest: f32 = sum - shown.iter().map(|i| row.weights[*i]).sum::<f32>();
        let text = format!("  … {left} more positions share {:.3}; --step {} shows them", rest.max(0.0), step.step);
        sheet.line(&[muted(text)]);
    }
}

/// The `n` positions of most weight, in their order.
fn kept(weights: &[f32], n: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by(|a, b| weights[*b].abs().total_cmp(&weights[*a].abs()));
    order.truncate(n);
    order.sort_unstable();
    order
}

/// Every head in a line, and their mean.
fn summary(sheet: &mut Sheet, explanation: &Explanation, step: &Step, rows: &[&AttentionRow], asked: bool) {
    for makes in ["score", "weights", "context"] {
        let Some(formula) = explanation.mechanism.formula(makes) else { continue };
        sheet.table("<<", &[vec![plain(format!("{:<34}", formula.at(step.step))), muted(formula.meaning.clone())]]);
    }
    let heads = if asked { rows } else { &rows[..0] };
    let mut table = vec![vec![muted("layer"), muted("head"), muted("entropy"), muted("looks at")]];
    for row in heads {
        table.push(vec![
            plain(row.layer.to_string()),
            plain(row.head.to_string()),
            plain(format!("{:.2}", row.entropy())),
            plain(strongest(&row.source, &row.weights, 3)),
        ]);
    }
    if asked {
        sheet.table(">>><", &table);
    }
    let mean = step.mean_weights();
    let shown = kept(&mean, if asked { usize::MAX } else { MAX_POSITIONS });
    let mut table = vec![vec![muted("source"), muted("mean weight"), muted(""), muted("grad x input")]];
    for &i in &shown {
        table.push(vec![
            token(&explanation.source[i]),
            plain(format!("{:.3}", mean[i])),
            Piece(format!("{:<PROBABILITY_BAR$}", bar(mean[i], PROBABILITY_BAR)), Tone::Weight(mean[i])),
            muted(step.influence.get(i).map_or(String::new(), |value| format!("{value:+.2}"))),
        ]);
    }
    sheet.table("<><>", &table);
    if mean.len() > shown.len() {
        sheet.line(&[muted(format!(
            "  … {} more; --step {} shows them, and every head",
            mean.len() - shown.len(),
            step.step
        ))]);
    }
}

/// What a step without attention depends on.
fn influences(sheet: &mut Sheet, explanation: &Explanation, step: &Step, asked: bool) {
    for formula in explanation.mechanism.formulas.iter().filter(|formula| formula.makes != "output") {
        sheet.table("<<", &[vec![plain(format!("{:<34}", formula.at(step.step))), muted(formula.meaning.clone())]]);
    }
    let shown = kept(&step.influence, if asked { usize::MAX } else { MAX_POSITIONS });
    let largest = step.influence.iter().fold(f32::MIN_POSITIVE, |max, value| max.max(value.abs()));
    let mut rows = vec![vec![muted("source"), muted("grad x input"), muted("")]];
    for &i in &shown {
        let value = step.influence[i];
        let tone = if value < 0.0 { Tone::Notice } else { Tone::Weight(value / largest / 2.0) };
        rows.push(vec![
            token(&explanation.source[i]),
            plain(format!("{value:+.3}")),
            Piece(bar(value.abs() / largest, PROBABILITY_BAR), tone),
        ]);
    }
    sheet.table("<><", &rows);
    let left = step.influence.len() - shown.len();
    if left > 0 {
        sheet.line(&[muted(format!("  … {left} more of less influence; --step {} shows them", step.step))]);
    }
}

/// The words that may follow.
fn distribution(sheet: &mut Sheet, explanation: &Explanation, step: &Step) {
    if step.top.is_empty() {
        return;
    }
    if let Some(formula) = explanation.mechanism.formula("output") {
        sheet.table("<<", &[vec![plain(format!("{:<44}", formula.at(step.step))), muted(formula.meaning.clone())]]);
    }
    let mut choices: Vec<_> = step.top.iter().collect();
    if !choices.iter().any(|choice| choice.id == step.chosen.id) {
        choices.push(&step.chosen);
    }
    let row = |choice: &&super::super::Choice| {
        let is_chosen = choice.id == step.chosen.id;
        vec![
            Piece(super::ink::cut(&choice.token, 18), if is_chosen { Tone::Choice } else { Tone::Token }),
            plain(percent(choice.probability)),
            Piece(bar(choice.probability, PROBABILITY_BAR), Tone::Weight(choice.probability)),
            muted(if is_chosen { if explanation.forced { "given" } else { "chosen" } } else { "" }),
        ]
    };
    sheet.table("<><<", &choices.iter().map(row).collect::<Vec<_>>());
}
