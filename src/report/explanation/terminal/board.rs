//! The board of one step: every line of the computation with its numbers, in the order in which it is computed.

mod tables;

use super::super::rows::is_self;
use super::super::{AttentionRow, Explanation, Formula, Selection, Step, vectors};
use super::ink::{Piece, Sheet, Tone, muted, numbers, percent, plain, width};

/// Everything about one step.
pub(super) fn board(sheet: &mut Sheet, explanation: &Explanation, step: &Step, selection: &Selection) {
    let asked = selection.step.is_some();
    let board = Board { explanation, step, asked, explains: asked || step.step == 1 };
    board.sentence(sheet);
    if !step.previous_state.is_empty() {
        board.vector(sheet, &format!("s_{}", step.step - 1), &step.previous_state, "the state before");
    }
    if step.attention.len() > 1 && selection.is_of_heads() {
        for row in step.self_attention.iter().chain(&step.attention) {
            if selection.has_head(row.layer, row.head) {
                board.named_head(sheet, row);
            }
        }
    } else {
        for formula in &explanation.mechanism.formulas {
            board.line(sheet, formula);
        }
    }
    board.distribution(sheet);
}

/// One step that is being written down.
struct Board<'a> {
    explanation: &'a Explanation,
    step: &'a Step,
    /// Whether somebody has asked for this step: then nothing is cut.
    asked: bool,
    /// Whether the meanings of the formulas are said.
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

    /// A formula, and the numbers that it makes.
    fn line(&self, sheet: &mut Sheet, formula: &Formula) {
        self.formula(sheet, formula);
        match (formula.makes, &self.step.attention[..]) {
            ("query", [row]) => self.vector(sheet, &self.name("query"), &row.query, "the query"),
            ("context", []) => self.influences(sheet),
            ("context", [row]) => self.head(sheet, row),
            ("context", rows) => self.summary(sheet, rows),
            ("state", _) => self.state(sheet),
            _ => {}
        }
    }

    fn formula(&self, sheet: &mut Sheet, formula: &Formula) {
        let lines = self.explanation.mechanism.formulas.iter().map(|formula| width(&formula.at(self.step.step)));
        let text = formula.at(self.step.step);
        let fill = " ".repeat(lines.max().unwrap_or(0).min(50).saturating_sub(width(&text)));
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
    fn name(&self, makes: &str) -> String {
        let formula = self.explanation.mechanism.formula(makes).map(|formula| formula.at(self.step.step));
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

    fn state(&self, sheet: &mut Sheet) {
        let step = self.step;
        let meaning = match vectors::cosine(&step.state, &step.previous_state) {
            Some(cosine) => format!("cosine to s_{} {cosine:.2}", step.step - 1),
            None => "the output of the last layer".to_owned(),
        };
        let name = if step.previous_state.is_empty() { "x" } else { "s" };
        self.vector(sheet, &format!("{name}_{}", step.step), &step.state, &meaning);
    }

    /// A head with its name and its formulas.
    fn named_head(&self, sheet: &mut Sheet, row: &AttentionRow) {
        let to = if is_self(&row.name) { "the target so far" } else { "the source" };
        sheet.space();
        let text = format!("  Layer {}, head {}: attention to {to}", row.layer, row.head);
        sheet.line(&[Piece(text, Tone::Heading)]);
        for formula in &self.explanation.mechanism.formulas {
            if !["state", "output"].contains(&formula.makes) {
                self.formula(sheet, formula);
            }
        }
        self.vector(sheet, &self.name("query"), &row.query, "the query");
        self.head(sheet, row);
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
        self.vector(sheet, &self.name("context"), &row.context, "the context");
    }
}
