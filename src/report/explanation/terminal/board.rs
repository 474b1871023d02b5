//! The board of one step: every line of the computation with its numbers, in the order in which it is computed.

mod tables;

use super::super::rows::is_self;
use super::super::{AttentionRow, Explanation, Formula, Part, Selection, Step, mean_weights, vectors};
use super::ink::{Piece, Sheet, Tone, muted, numbers, percent, plain, width};
use super::steps::strongest;

/// Formulas up to this width stand in a column, with their meanings beside them.
const FORMULA: usize = 50;

/// Everything about one step.
pub(super) fn board(sheet: &mut Sheet, explanation: &Explanation, step: &Step, selection: &Selection) {
    let asked = selection.step.is_some();
    let board = Board { explanation, step, asked, explains: asked || step.step == 1 };
    board.sentence(sheet);
    if !step.previous_state.is_empty() {
        board.vector(sheet, &format!("s_{}", step.step - 1), &step.previous_state, "the state before");
    }
    if explanation.rows(step).len() > 1 && selection.is_of_heads() {
        let mut rows: Vec<_> = step.self_attention.iter().chain(&step.attention).collect();
        rows.retain(|row| selection.has_head(row.layer, row.head));
        rows.sort_by_key(|row| row.layer);
        rows.into_iter().for_each(|row| board.named_head(sheet, row));
    } else {
        for formula in &explanation.mechanism.formulas {
            board.line(sheet, formula);
        }
        // A model without attention that has no line for what it depends on.
        if explanation.rows(step).is_empty()
            && explanation.mechanism.formulas.iter().all(|line| line.makes != "context")
        {
            board.influences(sheet);
        }
    }
    board.distribution(sheet);
}

/// One step that is being written down.
struct Board<'a> {
    explanation: &'a Explanation,
    step: &'a Step,
    /// Whether this step is selected: then nothing is cut.
    asked: bool,
    /// Whether the meanings of the formulas are written beside them.
    explains: bool,
}

impl Board<'_> {
    /// What happens, in one sentence.
    fn sentence(&self, sheet: &mut Sheet) {
        let step = self.step;
        sheet.space();
        let head = format!("Step {} of {}   ", step.step, self.explanation.target.len().max(step.step));
        if step.chosen.token.is_empty() {
            return sheet.line(&[Piece(head, Tone::Heading)]);
        }
        let mut pieces = vec![
            Piece(head, Tone::Heading),
            plain(if self.explanation.mechanism.answers.is_some() { "the answer for " } else { "the word after " }),
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

    /// A formula, and the numbers that it makes.
    fn line(&self, sheet: &mut Sheet, formula: &Formula) {
        if formula.makes == "start" && self.step.step > 1 {
            return;
        }
        self.formula(sheet, formula, None);
        let step = self.step;
        let rows = match formula.part {
            Part::SelfAttention => &step.self_attention[..],
            Part::CrossAttention | Part::Model => &step.attention[..],
        };
        let name = match step.layers.len() {
            0 => format!("s_{}", step.step),
            n_layers => format!("x_{}^{n_layers}", step.step),
        };
        match (formula.makes, rows) {
            ("query", [row]) => self.vector(sheet, &self.name("query", formula.part), &row.query, "the query"),
            ("context", []) => self.influences(sheet),
            ("context", [row]) => self.head(sheet, row),
            ("context", rows) if formula.part == Part::SelfAttention && !self.explanation.mechanism.is_text => {
                self.own_summary(sheet, rows);
            }
            ("context", rows) => self.summary(sheet, rows),
            ("state", _) => {
                self.recurrences(sheet);
                self.state(sheet, &name);
            }
            ("attentional", _) => {
                let name = format!("s~_{}", step.step);
                self.vector(sheet, &name, &step.attentional, "the attentional vector");
            }
            _ => {}
        }
    }

    /// A formula and, if it is the first time, its meaning. `layer` stands in place of `n` where a layer is meant.
    fn formula(&self, sheet: &mut Sheet, formula: &Formula, layer: Option<usize>) {
        let of_layer = |text: String| match layer {
            Some(layer) => text.replace("^(n-1)", &format!("^{}", layer - 1)).replace("^n", &format!("^{layer}")),
            None => text,
        };
        let texts = self.explanation.mechanism.formulas.iter().map(|formula| width(&formula.at(self.step.step)));
        let text = of_layer(formula.at(self.step.step));
        let widest = texts.filter(|width| *width <= FORMULA).max().unwrap_or(0);
        let fill = " ".repeat(widest.saturating_sub(width(&text)));
        let meaning = if self.explains { formula.meaning.clone() } else { String::new() };
        if 4 + width(&text) + fill.len() + width(&meaning) > sheet.look.width {
            sheet.paragraph(2, &[Piece(text, Tone::Formula)]);
            if !meaning.is_empty() {
                sheet.paragraph(4, &[muted(meaning)]);
            }
            return;
        }
        sheet.line(&[plain("  "), Piece(text + &fill, Tone::Formula), muted("  ".to_owned() + &meaning)]);
    }

    /// What the formulas call something at this step: `c_3`.
    fn name(&self, makes: &str, part: Part) -> String {
        let formula = self.explanation.mechanism.formula(makes, part).map(|formula| formula.at(self.step.step));
        formula.as_deref().and_then(|text| text.split(" = ").next()).unwrap_or(makes).to_owned()
    }

    /// A named vector.
    fn vector(&self, sheet: &mut Sheet, name: &str, values: &[f32], meaning: &str) {
        if values.is_empty() {
            return;
        }
        let end = format!("   {meaning}, norm {:.2}", vectors::norm(values));
        let room = sheet.look.width.saturating_sub(14 + width(&end)).clamp(16, 36);
        sheet.line(&[plain(format!("    {name:<6} = ")), plain(numbers(values, room)), muted(end)]);
    }

    fn state(&self, sheet: &mut Sheet, name: &str) {
        let step = self.step;
        let meaning = match vectors::cosine(&step.state, &step.previous_state) {
            Some(cosine) => format!("cosine to s_{} {cosine:.2}", step.step - 1),
            None => "the output of the last layer".to_owned(),
        };
        self.vector(sheet, name, &step.state, &meaning);
    }

    /// A head with its name and its formulas.
    fn named_head(&self, sheet: &mut Sheet, row: &AttentionRow) {
        let (part, to) = match is_self(&row.name) {
            true if self.explanation.mechanism.is_text => (Part::SelfAttention, "the text so far"),
            true => (Part::SelfAttention, "the target so far"),
            false => (Part::CrossAttention, "the source"),
        };
        sheet.space();
        let text = format!("  Layer {}, head {}: attention to {to}", row.layer, row.head);
        sheet.line(&[Piece(text, Tone::Heading)]);
        let formulas = self.explanation.mechanism.formulas.iter().filter(|formula| formula.part == part);
        for formula in formulas.filter(|formula| formula.makes != "residual") {
            self.formula(sheet, formula, Some(row.layer));
        }
        self.vector(sheet, &self.name("query", part), &row.query, "the query");
        self.head(sheet, row);
    }

    /// What the heads attend to in the target so far: every head if the step is selected, and their mean.
    fn own_summary(&self, sheet: &mut Sheet, rows: &[AttentionRow]) {
        if self.asked {
            self.heads(sheet, rows);
        }
        let Some(first) = rows.first() else { return };
        let mean = mean_weights(rows);
        sheet.paragraph(4, &[plain("mean over the heads: "), plain(strongest(&first.source, &mean, 5))]);
    }

    /// Scores, weights, weighted values and context of one head.
    fn head(&self, sheet: &mut Sheet, row: &AttentionRow) {
        if let (Some(center), Some([first, last])) = (row.center, row.window) {
            let names = format!(
                "from position {first} (\"{}\") to {last} (\"{}\")",
                row.source[first - 1],
                row.source[last - 1]
            );
            let text = format!("the window is centred at p_{} = {center:.2} and reaches {names}", self.step.step);
            sheet.paragraph(4, &[Piece(text, Tone::Notice)]);
        }
        self.positions(sheet, row);
        let part = if is_self(&row.name) { Part::SelfAttention } else { Part::CrossAttention };
        self.vector(sheet, &self.name("context", part), &row.context, "the context");
    }
}
