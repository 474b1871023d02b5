//! The board of one step: every line of the computation with its numbers, in the order in which it is computed.

use super::super::rows::is_self;
use super::super::{AttentionRow, Choice, Explanation, Formula, Selection, Step, vectors};
use super::ink::{Piece, Sheet, Tone, bar, cut, muted, numbers, percent, plain, signed, token, width};
use super::steps::{kept, strongest};

/// Source positions on a board of which nobody has asked for more.
const MAX_POSITIONS: usize = 8;

/// Columns of a weight's bar and of a probability's.
const WEIGHT_BAR: usize = 16;
const PROBABILITY_BAR: usize = 24;

/// Everything about one step.
pub(super) fn board(sheet: &mut Sheet, explanation: &Explanation, step: &Step, selection: &Selection) {
    let asked = selection.step.is_some();
    let board = Board { explanation, step, asked, explains: asked || step.step == 1 };
    let chosen = |rows: &'_ [AttentionRow]| -> Vec<AttentionRow> {
        rows.iter().filter(|row| selection.has_head(row.layer, row.head)).cloned().collect()
    };
    board.sentence(sheet);
    if !step.previous_state.is_empty() {
        board.vector(sheet, &format!("s_{}", step.step - 1), &step.previous_state, "the state before");
    }
    if step.attention.len() > 1 && selection.is_of_heads() {
        for row in chosen(&step.self_attention).iter().chain(&chosen(&step.attention)) {
            board.named_head(sheet, row);
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
            ("query", [row]) => self.vector(sheet, "q", &row.query, "the query"),
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
        self.vector(sheet, "q", &row.query, "the query");
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
        self.vector(sheet, "c", &row.context, "the context");
    }

    fn positions(&self, sheet: &mut Sheet, row: &AttentionRow) {
        let values = self.explanation.memory(row).map(|memory| &memory.values);
        let is_self = is_self(&row.name);
        let influence = Some(&self.step.influence).filter(|values| values.len() == row.weights.len() && !is_self);
        let fixed = 22 + 10 + 8 + WEIGHT_BAR + 2 + influence.map_or(0, |_| 14);
        let room = sheet.look.width.saturating_sub(fixed).clamp(9, 36);
        let first = if is_self { "target so far" } else { "source" };
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
    }

    /// Every head in a line, and their mean.
    fn summary(&self, sheet: &mut Sheet, rows: &[AttentionRow]) {
        if self.asked {
            let mut table = vec![["  ", "layer", "head", "entropy", "looks at"].map(muted).to_vec()];
            for row in rows {
                let numbers = [row.layer.to_string(), row.head.to_string(), format!("{:.2}", row.entropy())];
                let looks_at = strongest(&row.source, &row.weights, 3);
                table.push([plain("  ")].into_iter().chain(numbers.map(plain)).chain([plain(looks_at)]).collect());
            }
            sheet.table("<>>><", &table);
        }
        let mean = self.step.mean_weights();
        let shown = kept(&mean, if self.asked { usize::MAX } else { MAX_POSITIONS });
        let mut table = vec![["  ", "source", "mean weight", "", "grad x input"].map(muted).to_vec()];
        for &i in &shown {
            table.push(vec![
                plain("  "),
                token(&self.explanation.source[i]),
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
    }

    /// What a step without attention depends on.
    fn influences(&self, sheet: &mut Sheet) {
        let influence = &self.step.influence;
        if influence.is_empty() {
            return;
        }
        let shown = kept(influence, if self.asked { usize::MAX } else { MAX_POSITIONS });
        let largest = influence.iter().fold(f32::MIN_POSITIVE, |max, value| max.max(value.abs()));
        let mut rows = vec![["  ", "source", "grad x input", ""].map(muted).to_vec()];
        for &i in &shown {
            let value = influence[i];
            let tone = if value < 0.0 { Tone::Notice } else { Tone::Weight(value / largest / 2.0) };
            let length = Piece(bar(value.abs() / largest, PROBABILITY_BAR), tone);
            rows.push(vec![plain("  "), token(&self.explanation.source[i]), plain(signed(value, 3)), length]);
        }
        sheet.table("<<><", &rows);
        let left = influence.len() - shown.len();
        if left > 0 {
            sheet.line(&[muted(format!("    … {left} more of less influence; --step {} shows them", self.step.step))]);
        }
    }

    /// The words that may follow.
    fn distribution(&self, sheet: &mut Sheet) {
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
