//! The first two parts of the page: words become vectors, and the encoder reads them.

use super::super::vectors::Change;
use super::super::{Explanation, StateLayer, WordVector};
use super::heading;
use super::ink::{Piece, Sheet, Tone, bar_beside, muted, numbers, plain, token};

/// Longer tables are cut, with a word about what is left out.
const MAX_ROWS: usize = 16;

/// Columns of the first values of a vector.
const VALUES: usize = 29;

/// The tokens and their vectors.
pub(super) fn section(sheet: &mut Sheet, explanation: &Explanation) {
    let words = &explanation.source_words;
    let Some(first) = words.first() else { return };
    heading(sheet, "1. Words become vectors", &format!("{} numbers each; neighbours by cosine", first.vector.len()));
    let mut rows = vec![vec![muted("token"), muted("first values"), muted("norm"), muted("nearest in the vocabulary")]];
    rows.extend(words.iter().take(MAX_ROWS).map(word));
    sheet.table("<<><", &rows);
    cut_hint(sheet, words.len());
}

fn word(word: &WordVector) -> Vec<Piece> {
    let near: Vec<String> = word.neighbours.iter().map(|n| format!("{} {:.2}", n.token, n.cosine)).collect();
    let near = near.join(", ");
    vec![token(&word.token), plain(numbers(&word.vector, VALUES)), plain(format!("{:.2}", word.norm)), muted(near)]
}

/// What is left out of a table of `n` rows.
fn cut_hint(sheet: &mut Sheet, n: usize) {
    if n > MAX_ROWS {
        sheet.line(&[muted(format!("  … {} more", n - MAX_ROWS))]);
    }
}

/// The encoder's states: those of the last layer, and of the others how much they change.
pub(super) fn encoder(sheet: &mut Sheet, explanation: &Explanation) {
    let Some(last) = explanation.encoder.layers.last() else { return };
    let text = explanation.mechanism.is_text;
    heading(sheet, if text { "2. The beginning is read" } else { "2. The encoder reads" }, "");
    let formulas = &explanation.mechanism.encoder;
    for formula in formulas {
        sheet.paragraph(2, &[Piece(formula.text.clone(), Tone::Formula), muted(format!("   {}", formula.meaning))]);
    }
    let layers = explanation.encoder.layers.len();
    let which = if layers == 1 { String::new() } else { format!("Layer {layers} of {layers}. ") };
    sheet.paragraph(2, &[muted(format!("{which}{}", explanation.mechanism.change_meaning()))]);
    states(sheet, last);
    if let Some(context) = &explanation.encoder.context {
        fixed_context(sheet, explanation, context);
    }
}

fn states(sheet: &mut Sheet, layer: &StateLayer) {
    let names: &[&str] = match layer.states.first().map_or(0, |state| state.changes.len()) {
        2 => &["change, forwards", "change, backwards"],
        _ => &["change"],
    };
    let mut head = vec![muted("token"), muted("first values"), muted("norm")];
    let n_kept = layer.states.first().map_or(0, |state| state.kept.len());
    let kept_names: &[&str] = if n_kept == 2 { &["kept", "backwards"] } else { &["kept"] };
    head.extend(kept_names[..n_kept].iter().map(|name| muted(*name)));
    head.extend(names.iter().map(|name| muted(*name)));
    let mut rows = vec![head];
    let moves = layer.states.iter().flat_map(|state| &state.changes).map(|change| change.distance);
    let largest = moves.fold(f32::MIN_POSITIVE, f32::max);
    for state in layer.states.iter().take(MAX_ROWS) {
        let mut row =
            vec![token(&state.token), plain(numbers(&state.vector, VALUES)), plain(format!("{:.2}", state.norm))];
        row.extend(state.kept.iter().map(|kept| plain(format!("{kept:.2}"))));
        row.extend(state.changes.iter().map(|change| moved(change, largest)));
        rows.push(row);
    }
    sheet.table(&format!("<<>{}<<", ">".repeat(n_kept)), &rows);
    cut_hint(sheet, layer.states.len());
    if n_kept > 0 {
        let text = "kept: the factor by which the layer's recurrence multiplies what it has when it reads the token, as a mean";
        sheet.paragraph(2, &[muted(text)]);
    }
}

/// A bar for the distance, and the cosine.
fn moved(change: &Change, largest: f32) -> Piece {
    let share = change.distance / largest;
    let cosine = change.cosine.map_or("  start".to_owned(), |cosine| format!("cos {cosine:>5.2}"));
    let length = bar_beside(change.distance, 2, largest, 8);
    Piece(format!("{length:<8} {:>5.2}  {cosine}", change.distance), Tone::Weight(share.min(0.4)))
}

/// The one vector, and what of the source it still carries.
fn fixed_context(sheet: &mut Sheet, explanation: &Explanation, context: &[f32]) {
    let n = explanation.source.len();
    heading(sheet, "   One vector for all of it", &format!("{} numbers for {n} tokens", context.len()));
    sheet.line(&[plain("  c = "), plain(numbers(context, sheet.look.width.saturating_sub(8)))]);
    sheet.paragraph(2, &[muted(explanation.mechanism.context_use.clone())]);
    let what = "What depends on it: the share of each token in gradient x input of the written words' log-odds, over all steps.";
    sheet.paragraph(2, &[muted(what)]);
    let shares = explanation.shares();
    let largest = shares.iter().copied().fold(f32::MIN_POSITIVE, f32::max);
    let mut rows = Vec::new();
    for (name, share) in explanation.source.iter().zip(&shares).take(MAX_ROWS) {
        let length = bar_beside(100.0 * share, 1, 100.0 * largest, 30);
        rows.push(vec![
            token(name),
            plain(format!("{:.1} %", 100.0 * share)),
            Piece(length, Tone::Weight(*share * 2.0)),
        ]);
    }
    sheet.table("<><", &rows);
    cut_hint(sheet, n);
    let even = 1.0 / n as f32;
    let lost: Vec<&str> =
        (0..n - 1).filter(|i| shares[*i] < even / 3.0).map(|i| explanation.source[i].as_str()).collect();
    if !lost.is_empty() {
        let text = format!("Little depends on {} (less than a third of an even share).", lost.join(", "));
        sheet.paragraph(2, &[Piece(text, Tone::Notice)]);
    }
}
