//! The tables of a board: source positions, heads, influences, words.

use super::super::super::rows::is_self;
use super::super::super::{AttentionRow, Choice, vectors};
use super::super::ink::{Piece, Sheet, Tone, bar, bar_beside, cut, muted, numbers, percent, plain, signed, token};
use super::super::steps::{kept, strongest};
use super::Board;

/// Positions on a board of a step that is not selected.
const MAX_POSITIONS: usize = 8;

/// Columns of a weight's bar and of a probability's.
const WEIGHT_BAR: usize = 16;
const PROBABILITY_BAR: usize = 24;

impl Board<'_> {
    /// Scores, weights and weighted values of a head.
    pub(super) fn positions(&self, sheet: &mut Sheet, row: &AttentionRow) {
        let values = self.explanation.memory(row).map(|memory| &memory.values);
        let is_text = self.explanation.mechanism.is_text;
        let is_self = is_self(&row.name) && !is_text;
        let influence = Some(&self.step.influence).filter(|values| values.len() == row.weights.len() && !is_self);
        let fixed = 22 + 10 + 8 + WEIGHT_BAR + 2 + influence.map_or(0, |_| 14);
        let room = sheet.look.width.saturating_sub(fixed).clamp(9, 36);
        let first = if is_self { "target so far" } else { self.explanation.sight() };
        let mut rows = vec![["  ", first, "score", "weight", "", "weight x value"].map(muted).to_vec()];
        if influence.is_some() {
            rows[0].push(muted("grad x input"));
        }
        let shown = kept(&row.weights, if self.asked { usize::MAX } else { MAX_POSITIONS });
        for &i in &shown {
            let weight = row.weights[i];
            let value = values.and_then(|values| values.get(i));
            let weighted: Vec<f32> = value.into_iter().flatten().map(|value| weight * value).collect();
            let is_outside = row.window.is_some_and(|[first, last]| !(first..=last).contains(&(i + 1)));
            let score = row.scores.get(i).map_or(String::new(), |score| format!("{score:.3}"));
            let mut cells = vec![
                plain("  "),
                token(&row.source[i]),
                plain(if is_outside { "outside".to_owned() } else { score }),
                plain(format!("{weight:.3}")),
                Piece(format!("{:<WEIGHT_BAR$}", bar(weight, WEIGHT_BAR)), Tone::Weight(weight)),
                Piece(numbers(&weighted, room), if weight >= 0.05 { Tone::Plain } else { Tone::Muted }),
            ];
            cells.extend(influence.map(|values| muted(signed(values[i], 2))));
            rows.push(cells);
        }
        let sum: f32 = row.weights.iter().sum();
        let total = vec![plain("  "), muted("sum"), plain(""), plain(format!("{sum:.3}")), plain("")];
        rows.push(total.into_iter().chain([plain(numbers(&row.context, room))]).collect());
        sheet.table("<<>><<>", &rows);
        let left = row.weights.len() - shown.len();
        if left > 0 {
            let rest = sum - shown.iter().map(|i| row.weights[*i]).sum::<f32>();
            let text =
                format!("    … {left} more positions share {:.3}; --step {} shows them", rest.max(0.0), self.step.step);
            sheet.line(&[muted(text)]);
        }
        if influence.is_some() {
            self.influence_meaning(sheet);
        }
    }

    /// What the column of influences is.
    fn influence_meaning(&self, sheet: &mut Sheet) {
        if !self.explains || self.step.influence.is_empty() {
            return;
        }
        let (written, other) = (&self.step.chosen.token, &self.step.contrast.token);
        let token = if self.explanation.mechanism.is_text { "token" } else { "source token" };
        let text = format!(
            "grad x input: by how much the log-odds of \"{written}\" against \"{other}\" would fall, in nats, if the model \
             did not know the {token} (to first order: a large change may differ, even in its sign)"
        );
        sheet.paragraph(4, &[muted(text)]);
    }

    /// Every head in a line.
    pub(super) fn heads(&self, sheet: &mut Sheet, rows: &[AttentionRow]) {
        let mut table = vec![["  ", "layer", "head", "entropy", "looks at"].map(muted).to_vec()];
        for row in rows {
            let numbers = [row.layer.to_string(), row.head.to_string(), format!("{:.2}", row.entropy())];
            let looks_at = strongest(&row.source, &row.weights, 3);
            table.push([plain("  ")].into_iter().chain(numbers.map(plain)).chain([plain(looks_at)]).collect());
        }
        sheet.table("<>>><", &table);
    }

    /// Attention to the source, or to the text so far: every head in a line if the step is selected, and their mean.
    pub(super) fn summary(&self, sheet: &mut Sheet, rows: &[AttentionRow]) {
        if self.asked {
            self.heads(sheet, rows);
        }
        let (mean, names) = (self.explanation.mean_weights(self.step), self.explanation.in_sight(self.step));
        let shown = kept(&mean, if self.asked { usize::MAX } else { MAX_POSITIONS });
        let first = self.explanation.sight();
        let mut table = vec![["  ", first, "mean weight", "", "grad x input"].map(muted).to_vec()];
        for &i in &shown {
            table.push(vec![
                plain("  "),
                token(&names[i]),
                plain(format!("{:.3}", mean[i])),
                Piece(format!("{:<PROBABILITY_BAR$}", bar(mean[i], PROBABILITY_BAR)), Tone::Weight(mean[i])),
                muted(self.step.influence.get(i).map_or(String::new(), |value| signed(*value, 2))),
            ]);
        }
        sheet.table("<<><>", &table);
        let left = mean.len() - shown.len();
        if left > 0 {
            sheet.line(&[muted(format!("    … {left} more; --step {} shows them, and every head", self.step.step))]);
        }
        self.influence_meaning(sheet);
    }

    /// What a step without attention depends on.
    pub(super) fn influences(&self, sheet: &mut Sheet) {
        let influence = &self.step.influence;
        if influence.is_empty() {
            return;
        }
        let shown = kept(influence, if self.asked { usize::MAX } else { MAX_POSITIONS });
        let largest = influence.iter().fold(f32::MIN_POSITIVE, |max, value| max.max(value.abs()));
        let names = self.explanation.in_sight(self.step);
        let mut rows = vec![["  ", self.explanation.sight(), "grad x input", ""].map(muted).to_vec()];
        for &i in &shown {
            let value = influence[i];
            let tone = if value < 0.0 { Tone::Notice } else { Tone::Weight(value / largest / 2.0) };
            let length = Piece(bar_beside(value, 3, largest, PROBABILITY_BAR), tone);
            rows.push(vec![plain("  "), token(&names[i]), plain(signed(value, 3)), length]);
        }
        sheet.table("<<><", &rows);
        let left = influence.len() - shown.len();
        if left > 0 {
            sheet.line(&[muted(format!("    … {left} more of less influence; --step {} shows them", self.step.step))]);
        }
        self.influence_meaning(sheet);
    }

    /// What the recurrence of each layer keeps of its state, and what it shows of it.
    pub(super) fn recurrences(&self, sheet: &mut Sheet) {
        let layers = &self.step.recurrences;
        if layers.is_empty() {
            return;
        }
        let has_replaced = layers.iter().any(|layer| !layer.replaced.is_empty());
        let mut rows = vec![["  ", "layer", "kept", "least", "most"].map(muted).to_vec()];
        rows[0].extend(has_replaced.then(|| muted("replaced")));
        rows[0].extend(["norm", "state"].map(muted));
        let cell = |value: Option<f32>| plain(value.map_or_else(|| "-".into(), |value| format!("{value:.3}")));
        for layer in layers {
            let kept = layer.kept_range();
            let mut row = vec![plain("  "), plain(layer.layer.to_string())];
            row.extend((0..3).map(|i| cell(kept.map(|kept| kept[i]))));
            row.extend(has_replaced.then(|| cell(layer.replaced_range().map(|replaced| replaced[0]))));
            row.push(plain(format!("{:.2}", vectors::norm(&layer.state))));
            row.push(plain(numbers(&layer.state, 36)));
            rows.push(row);
        }
        let columns = if has_replaced { "<>>>>>><" } else { "<>>>>><" };
        sheet.table(columns, &rows);
        if self.explains {
            let text = "kept: the factor of the old state, as a mean over its elements, the least and the most; state: what \
                        the layer shows of it";
            sheet.paragraph(4, &[muted(text)]);
        }
    }

    /// The words that may follow.
    pub(super) fn distribution(&self, sheet: &mut Sheet) {
        let mut choices: Vec<&Choice> = self.step.top.iter().collect();
        if !choices.is_empty() && !choices.iter().any(|choice| choice.id == self.step.chosen.id) {
            choices.push(&self.step.chosen);
        }
        let verb = if self.explanation.forced { "given" } else { "chosen" };
        let row = |choice: &&Choice| {
            let is_chosen = choice.id == self.step.chosen.id;
            vec![
                plain("  "),
                Piece(cut(&choice.token, 18), if is_chosen { Tone::Choice } else { Tone::Token }),
                plain(percent(choice.probability)),
                Piece(bar(choice.probability, PROBABILITY_BAR), Tone::Weight(choice.probability)),
                muted(if is_chosen { verb } else { "" }),
            ]
        };
        sheet.table("<<><<", &choices.iter().map(row).collect::<Vec<_>>());
    }
}
