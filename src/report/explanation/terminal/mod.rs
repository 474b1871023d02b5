//! An explanation as a page for the terminal: coloured and aligned, or plain text.

mod board;
mod ink;
mod steps;
mod words;

use super::{Explanation, Selection, Step};
use ink::{Piece, Sheet, Tone, muted, plain};

/// Boards of all steps are shown up to so many steps; of longer targets the first few.
const MAX_BOARDS: usize = 12;
const FIRST_BOARDS: usize = 2;

/// How many of `n_steps` steps a page of all steps shows in full.
pub(super) fn n_boards(n_steps: usize) -> usize {
    if n_steps <= MAX_BOARDS { n_steps } else { FIRST_BOARDS }
}

/// What the terminal can show.
#[derive(Clone, Debug)]
pub struct Look {
    /// Columns.
    pub width: usize,
    /// Whether colours are understood.
    pub color: bool,
}

impl Default for Look {
    /// Plain text of 100 columns, as for a pipe.
    fn default() -> Self {
        Self { width: 100, color: false }
    }
}

/// The whole page, or, if a step, layer or head is selected, what concerns it.
pub fn render(explanation: &Explanation, selection: &Selection, look: &Look) -> String {
    let mut sheet = Sheet { look, text: String::new() };
    title(&mut sheet, explanation);
    if *selection == Selection::default() {
        words::section(&mut sheet, explanation);
        words::encoder(&mut sheet, explanation);
    }
    if selection.step.is_none() {
        steps::overview(&mut sheet, explanation);
    }
    let chosen: Vec<&Step> = explanation.steps.iter().filter(|step| selection.has_step(step.step)).collect();
    let shown = n_boards(chosen.len());
    for step in &chosen[..shown] {
        board::board(&mut sheet, explanation, step, selection);
    }
    hints(&mut sheet, explanation, selection, chosen.len() - shown);
    sheet.text
}

/// The numbers of one step, without anything around them.
pub fn render_step(explanation: &Explanation, step: &Step, look: &Look) -> String {
    let mut sheet = Sheet { look, text: String::new() };
    board::board(&mut sheet, explanation, step, &Selection { step: Some(step.step), ..Selection::default() });
    sheet.text
}

fn title(sheet: &mut Sheet, explanation: &Explanation) {
    let written = if explanation.forced { "   given:  " } else { "   ->   " };
    sheet.paragraph(
        0,
        &[
            Piece(explanation.source_text.clone(), Tone::Token),
            muted(written),
            Piece(explanation.target_text.clone(), Tone::Choice),
        ],
    );
    if !explanation.model.is_empty() {
        sheet.paragraph(0, &[muted(explanation.model.clone())]);
    }
    for note in &explanation.notes {
        sheet.paragraph(0, &[Piece(format!("note: {note}"), Tone::Notice)]);
    }
}

/// How to see more.
fn hints(sheet: &mut Sheet, explanation: &Explanation, selection: &Selection, n_left: usize) {
    let mut hints = Vec::new();
    if n_left > 0 {
        hints.push(format!("--step N shows the numbers of one of the other {n_left} steps"));
    } else if selection.step.is_none() {
        hints.push("--step N shows all numbers of one step".to_owned());
    }
    let rows = explanation.steps.iter().flat_map(|step| explanation.rows(step));
    let (n_layers, n_heads) = rows.fold((0, 0), |(l, h), row| (row.layer.max(l), row.head.max(h)));
    if n_layers * n_heads > 1 && !selection.is_of_heads() {
        hints.push(format!("--layer N (1 to {n_layers}) and --head N (1 to {n_heads}) those of a head"));
    }
    hints.push("--json has every number, --html FILE a page to step through".to_owned());
    sheet.space();
    sheet.paragraph(0, &[muted(hints.join("; ") + ".")]);
}

/// A numbered heading.
fn heading(sheet: &mut Sheet, text: &str, remark: &str) {
    sheet.space();
    sheet.line(&[Piece(text.to_owned(), Tone::Heading), plain("   "), muted(remark)]);
}
