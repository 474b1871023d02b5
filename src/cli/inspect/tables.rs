//! The numbers of `inspect attention`, as text, JSON and HTML.

use super::faithfulness::{self, Verdict};
use crate::cli::output::json_line;
use crate::report::alignment::{AlignmentCounts, Gold, links};
use crate::report::attention::measure::HeadSummary;
use crate::report::attention::memory::{AGES, MemorySummary};
use crate::report::attention::select::average;
use crate::report::attention::{AttentionMap, Part, SentenceMaps};
use maud::{Markup, html};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// The right alignment of a sentence and the words that its tokens belong to.
pub(super) struct Aligned {
    pub(super) gold: Gold,
    pub(super) source_words: Vec<usize>,
    pub(super) target_words: Vec<usize>,
}

/// How far the alignments of one map are from the right ones.
#[derive(Serialize, JsonSchema)]
pub(in crate::cli) struct ErrorRate {
    /// The layer, none for all.
    layer: Option<usize>,
    /// The head, none for the mean of all.
    head: Option<usize>,
    /// The alignment error rate, from 0 to 1.
    aer: f64,
    #[serde(flatten)]
    counts: AlignmentCounts,
}

/// Everything that is printed.
#[derive(Serialize, JsonSchema)]
pub(in crate::cli) struct Report {
    pub(super) sentences: usize,
    /// Sentences whose right alignment is known.
    pub(super) aligned: usize,
    /// Of every cross-attention map and of the means; empty where no right alignment is known.
    pub(super) errors: Vec<ErrorRate>,
    pub(super) heads: Vec<HeadSummary>,
    /// What recurrences keep.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) memories: Vec<MemorySummary>,
    /// The effect of erasing source words, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) faithfulness: Option<Verdict>,
}

/// The error rates of every head, of each layer's mean and of the mean of all.
#[derive(Default)]
pub(super) struct ErrorCounts(BTreeMap<(Option<usize>, Option<usize>), AlignmentCounts>);

impl ErrorCounts {
    pub(super) fn add(&mut self, sentence: &SentenceMaps, aligned: &Aligned) {
        for map in with_means(sentence) {
            let found = links(&map, &aligned.source_words, &aligned.target_words);
            self.0.entry((map.layer, map.head)).or_default().add(&found, &aligned.gold);
        }
    }

    pub(super) fn rates(self) -> Vec<ErrorRate> {
        let rate =
            |((layer, head), counts): (_, AlignmentCounts)| ErrorRate { layer, head, aer: counts.error_rate(), counts };
        self.0.into_iter().map(rate).collect()
    }
}

/// The cross-attention maps and their means, each place once.
fn with_means(sentence: &SentenceMaps) -> Vec<AttentionMap> {
    let all: Vec<&AttentionMap> = sentence.part(Part::Cross).collect();
    let mut maps: Vec<AttentionMap> = all.iter().map(|map| (*map).clone()).collect();
    let mut layers: Vec<Option<usize>> = all.iter().map(|map| map.layer).collect();
    layers.dedup();
    for layer in layers {
        maps.extend(average(&all.iter().copied().filter(|map| map.layer == layer).collect::<Vec<_>>()));
    }
    maps.extend(average(&all).map(|map| AttentionMap { layer: None, head: None, ..map }));
    let mut seen = std::collections::BTreeSet::new();
    maps.retain(|map| seen.insert((map.layer, map.head)));
    maps
}

pub(super) fn json(report: &Report) -> String {
    json_line(report) + "\n"
}

fn place(layer: Option<usize>, head: Option<usize>) -> [String; 2] {
    [layer, head].map(|number| number.map_or("-".into(), |number| number.to_string()))
}

pub(super) fn text(report: &Report) -> String {
    let mut text = String::new();
    if !report.heads.is_empty() {
        text +=
            "part     layer  head  looks at        entropy  tokens  distance  diagonality  previous   same   next\n";
    }
    for head in &report.heads {
        let ([layer, number], m) = (place(head.layer, head.head), &head.measures);
        text += &format!(
            "{:<7}  {layer:>5}  {number:>4}  {:<14}  {:>7.3}  {:>6.1}  {:>8.2}  {:>11.3}  {:>8.3}  {:>5.3}  {:>5.3}\n",
            head.part.name(),
            head.looks_at,
            m.entropy,
            m.entropy.exp(),
            m.distance,
            m.diagonality,
            m.previous,
            m.same,
            m.next
        );
    }
    if !report.heads.is_empty() && !report.memories.is_empty() {
        text.push('\n');
    }
    text += &memory_text(&report.memories);
    if !report.errors.is_empty() {
        text += &format!("\nalignment error rate, {} sentences\nlayer  head     AER\n", report.aligned);
        for error in &report.errors {
            let [layer, head] = match (error.layer, error.head) {
                (None, None) => ["all", "all"].map(String::from),
                (layer, None) => [place(layer, None)[0].clone(), "all".into()],
                (layer, head) => place(layer, head),
            };
            text += &format!("{layer:>5}  {head:>4}  {:>5.2} %\n", 100.0 * error.aer);
        }
    }
    text += &report.faithfulness.as_ref().map(faithfulness::text).unwrap_or_default();
    text
}

/// Mean shares, `-` where no text is so long.
fn left(memory: &MemorySummary) -> [String; 4] {
    memory.left.map(|share| share.map_or_else(|| "-".into(), |share| format!("{share:.3}")))
}

fn memory_text(memories: &[MemorySummary]) -> String {
    if memories.is_empty() {
        return String::new();
    }
    let ages: String = AGES.iter().map(|age| format!("{age:>7}")).collect();
    let mut text = format!("what is kept             layer  head  tokens  left after{ages}  tokens\n");
    for memory in memories {
        let [layer, head] = place(memory.layer, memory.head);
        let left: String = left(memory).iter().map(|share| format!("{share:>7}")).collect();
        text += &format!("{:<23}  {layer:>5}  {head:>4}  {:>6.1}{:12}{left}\n", memory.part.name(), memory.tokens, "");
    }
    text
}

fn memory_table(memories: &[MemorySummary]) -> Markup {
    let row = |memory: &MemorySummary| {
        let [layer, head] = place(memory.layer, memory.head);
        html! {
            tr {
                td { (memory.part.name()) } td { (layer) } td { (head) }
                td.number { (format!("{:.1}", memory.tokens)) }
                @for share in left(memory) { td.number { (share) } }
            }
        }
    };
    html! {
        h2 { "What is kept" }
        p.muted {
            "A recurrence multiplies its state by a factor at every token. The product of the factors since a token is the share of \
             what that token wrote that is still there: exact, as a mean over the elements of the state. It is no weight of attention: \
             a row does not sum to one, and a large share of a small input is still small. "
            i { "Tokens" } " is the mean sum of a row; then the mean share that is left after so many further tokens."
        }
        div.panel {
            table {
                thead { tr {
                    th { "part" } th { "layer" } th { "head" } th.number { "tokens" }
                    @for age in AGES { th.number { (age) } }
                } }
                tbody { @for memory in memories { (row(memory)) } }
            }
        }
    }
}

/// What stands below the heads on the page.
pub(super) fn html(report: &Report) -> Markup {
    html! {
        @if !report.memories.is_empty() { (memory_table(&report.memories)) }
        @if !report.errors.is_empty() { (error_table(report)) }
        @if let Some(verdict) = &report.faithfulness { (faithfulness::html(verdict)) }
    }
}

fn error_table(report: &Report) -> Markup {
    html! {
        h2 { "Alignment error rate" }
        p.muted {
            "Over " (report.aligned) " sentences whose right alignment is known. Each target word is linked to the source word with the \
             most weight; a source word's weight is the sum over its tokens, a target word's the mean over its tokens; end symbols take \
             no part."
        }
        div.panel {
            table {
                thead { tr { th { "layer" } th { "head" } th.number { "AER" } } }
                tbody {
                    @for error in &report.errors {
                        @let [layer, head] = place(error.layer, error.head).map(|text| text.replace('-', "all"));
                        tr { td { (layer) } td { (head) } td.number { (format!("{:.2} %", 100.0 * error.aer)) } }
                    }
                }
            }
        }
    }
}
