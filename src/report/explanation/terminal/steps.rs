//! The third part of the page: all steps at a glance.

use super::super::Explanation;
use super::heading;
use super::ink::{Piece, Sheet, Tone, cut, muted, percent, plain, token};

/// One line for each step.
pub(super) fn overview(sheet: &mut Sheet, explanation: &Explanation) {
    let has_attention = explanation.mechanism.has_attention;
    let averaged = explanation.steps.iter().any(|step| explanation.rows(step).len() > 1);
    let is_read_off = explanation.mechanism.answers.is_some();
    let remark = match (has_attention, averaged) {
        (true, true) => "weights: the mean over all layers and heads",
        (true, false) => "",
        (false, _) if is_read_off => "gradient x input of the answer's log-odds, since an answer attends to no source",
        (false, _) => "gradient x input of the word's log-odds, since there is no attention",
    };
    heading(sheet, "3. Step by step", remark);
    let seen = if has_attention { "looks at" } else { "depends on" };
    let word = if explanation.forced { "given" } else { "chosen" };
    let after = if explanation.mechanism.answers.is_some() { "for" } else { "after" };
    let mut rows = vec![vec![muted("step"), muted(after), muted(word), muted("p"), muted(seen)]];
    for step in &explanation.steps {
        let mut row = vec![
            plain(step.step.to_string()),
            token(&step.previous),
            Piece(cut(&step.chosen.token, 18), Tone::Choice),
            plain(percent(step.chosen.probability)),
        ];
        let weights = if has_attention { explanation.mean_weights(step) } else { step.influence.clone() };
        let mut text = strongest(&explanation.in_sight(step), &weights, 3);
        if step.chosen.id != step.preferred.id {
            text += &format!("   (rather {} {})", step.preferred.token, percent(step.preferred.probability));
        }
        row.push(Piece(text, if step.chosen.id == step.preferred.id { Tone::Plain } else { Tone::Notice }));
        rows.push(row);
    }
    sheet.table("><<><", &rows);
}

/// The `n` positions of most weight, the heaviest first, as text.
pub(super) fn strongest(source: &[String], weights: &[f32], n: usize) -> String {
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by(|a, b| weights[*b].abs().total_cmp(&weights[*a].abs()));
    let named: Vec<String> = order.iter().take(n).map(|i| format!("{} {:.2}", source[*i], weights[*i])).collect();
    named.join("  ")
}

/// The `n` positions of most weight, in their order.
pub(super) fn kept(weights: &[f32], n: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by(|a, b| weights[*b].abs().total_cmp(&weights[*a].abs()));
    order.truncate(n);
    order.sort_unstable();
    order
}
