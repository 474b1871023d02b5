//! What a head looks at, as numbers.

use super::{AttentionMap, Part, Place, SentenceMaps};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Numbers of one map, or means over many sentences.
///
/// Rows are the positions that look, columns those that are looked at; all means are over rows. For its entropy a row
/// is divided by its sum: where one attention spans source and target, each of its two maps has a part of a whole row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Measures {
    /// Mean entropy of a row in nats: `-sum_j w_j ln w_j`; `exp` of it is the number of positions looked at.
    pub entropy: f64,
    /// The same as a part of the largest possible one, `ln` of the positions that the row may see.
    pub relative_entropy: f64,
    /// Mean distance in columns from the diagonal, `sum_j w_j |j - d_i|`; in self-attention `d_i = i`, in cross-attention
    /// the diagonal runs from corner to corner.
    pub distance: f64,
    /// Correlation of row and column under the weights: 1 along the diagonal, -1 along the other one, 0 where they have
    /// nothing to do with each other.
    pub diagonality: f64,
    /// Mean weight of the position before; in cross-attention, of the column before the one on the diagonal.
    pub previous: f64,
    /// Mean weight of the position itself; in cross-attention, of the column on the diagonal.
    pub same: f64,
    /// Mean weight of the position after.
    pub next: f64,
    /// Mean weight of the first column.
    pub first: f64,
    /// Mean weight of the last column: of a source, its end symbol; of a series, its last step.
    pub last: f64,
}

/// Above this share of the weight a head is named after what it looks at.
const MOST: f64 = 0.5;
/// Above this part of the largest entropy a head looks broadly.
const BROAD: f64 = 0.8;
/// Above this correlation a map is called diagonal.
const DIAGONAL: f64 = 0.9;
/// Up to this many tokens are few.
const FEW: f64 = 3.0;

impl Measures {
    /// The numbers of a map.
    pub fn of(map: &AttentionMap) -> Self {
        let n = map.n_rows.max(1) as f64;
        let mut m = Self::default();
        let (mut n_previous, mut n_next) = (0.0, 0.0);
        for i in 0..map.n_rows {
            let row = map.row(i);
            let visible = map.seen(i).len();
            let diagonal = diagonal(map, i);
            let own = diagonal.round() as usize;
            let entropy = entropy(row);
            m.entropy += entropy / n;
            if visible > 1 {
                m.relative_entropy += entropy / (visible as f64).ln() / n;
            }
            m.distance +=
                row.iter().enumerate().map(|(j, w)| f64::from(*w) * (j as f64 - diagonal).abs()).sum::<f64>() / n;
            m.same += f64::from(row[own]) / n;
            if own > 0 {
                n_previous += 1.0;
                m.previous += f64::from(row[own - 1]);
            }
            if own + 1 < map.n_columns {
                n_next += 1.0;
                m.next += f64::from(row[own + 1]);
            }
            m.first += f64::from(row[0]) / n;
            m.last += f64::from(row[map.n_columns - 1]) / n;
        }
        m.previous /= f64::max(n_previous, 1.0);
        m.next /= f64::max(n_next, 1.0);
        m.diagonality = correlation(map);
        m
    }

    /// What the head looks at, in a few words; `has_end` says whether a source ends with its end symbol.
    pub fn looks_at(&self, part: Part, has_end: bool) -> &'static str {
        let is_self = part != Part::Cross;
        match self {
            m if is_self && m.previous >= MOST => "previous token",
            m if is_self && m.same >= MOST => "same token",
            m if part == Part::Encoder && m.next >= MOST => "next token",
            m if m.first >= MOST => "first token",
            m if part != Part::Decoder && m.last >= MOST && has_end => "end symbol",
            m if part != Part::Decoder && m.last >= MOST => "last token",
            m if !is_self && m.diagonality >= DIAGONAL => "diagonal",
            m if !is_self && m.diagonality <= -DIAGONAL => "anti-diagonal",
            m if m.relative_entropy >= BROAD => "broadly",
            m if m.entropy.exp() <= FEW => "a few tokens",
            _ => "several tokens",
        }
    }

    /// The mean of several, each with its number of rows.
    pub fn mean(all: &[(Self, usize)]) -> Self {
        let total = all.iter().map(|(_, rows)| *rows as f64).sum::<f64>().max(1.0);
        let mean = |of: fn(&Self) -> f64| all.iter().map(|(m, rows)| of(m) * *rows as f64).sum::<f64>() / total;
        Self {
            entropy: mean(|m| m.entropy),
            relative_entropy: mean(|m| m.relative_entropy),
            distance: mean(|m| m.distance),
            diagonality: mean(|m| m.diagonality),
            previous: mean(|m| m.previous),
            same: mean(|m| m.same),
            next: mean(|m| m.next),
            first: mean(|m| m.first),
            last: mean(|m| m.last),
        }
    }
}

/// The entropy, in nats, of the weights of a row as parts of their sum; 0 where there are none.
fn entropy(row: &[f32]) -> f64 {
    let sum: f64 = row.iter().map(|w| f64::from(*w)).sum();
    let parts = row.iter().filter(|w| **w > 0.0).map(|w| f64::from(*w) / sum);
    parts.map(|part| -part * part.ln()).sum()
}

/// The column on the diagonal of row `i`.
fn diagonal(map: &AttentionMap, i: usize) -> f64 {
    if map.part != Part::Cross || map.n_rows < 2 {
        return i as f64;
    }
    i as f64 * (map.n_columns - 1) as f64 / (map.n_rows - 1) as f64
}

/// Pearson's correlation of row and column, each cell counted with its weight; 0 where either does not vary.
fn correlation(map: &AttentionMap) -> f64 {
    let (mut n, mut x, mut y, mut xx, mut yy, mut xy) = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0);
    for i in 0..map.n_rows {
        for (j, weight) in map.row(i).iter().enumerate() {
            let (w, i, j) = (f64::from(*weight), i as f64, j as f64);
            n += w;
            x += w * i;
            y += w * j;
            xx += w * i * i;
            yy += w * j * j;
            xy += w * i * j;
        }
    }
    if n == 0.0 {
        return 0.0;
    }
    let (vx, vy) = (xx / n - (x / n).powi(2), yy / n - (y / n).powi(2));
    if vx <= 1e-12 || vy <= 1e-12 { 0.0 } else { (xy / n - x / n * y / n) / (vx * vy).sqrt() }
}

/// How much each column was looked at: the sum of its weights over all rows. A source word far below one was hardly
/// translated, one far above may have been translated twice.
///
/// # Reference
/// Tu et al., Modeling Coverage for Neural Machine Translation, 2016, for the idea.
pub fn coverage(map: &AttentionMap) -> Vec<f32> {
    let mut sums = vec![0.0; map.n_columns];
    for i in 0..map.n_rows {
        sums.iter_mut().zip(map.row(i)).for_each(|(sum, weight)| *sum += weight);
    }
    sums
}

/// One head over all sentences.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HeadSummary {
    /// Who looks at whom.
    pub part: Part,
    /// The layer, counted from 1.
    pub layer: Option<usize>,
    /// The head, counted from 1.
    pub head: Option<usize>,
    /// What it looks at, in a few words.
    pub looks_at: String,
    /// Its numbers.
    #[serde(flatten)]
    pub measures: Measures,
}

/// The numbers of every head of attention, of one sentence after the other: maps need not be kept for them.
#[derive(Clone, Debug, Default)]
pub struct HeadSums {
    all: BTreeMap<Place, Vec<(Measures, usize)>>,
    lacks_end: bool,
}

impl HeadSums {
    /// Adds those of a sentence.
    pub fn add(&mut self, sentence: &SentenceMaps) {
        self.lacks_end |= !sentence.has_end();
        for map in sentence.maps.iter().filter(|map| !map.part.is_memory()) {
            self.all.entry((map.part, map.layer, map.head)).or_default().push((Measures::of(map), map.n_rows));
        }
    }

    /// The means over all sentences and rows.
    pub fn finish(self) -> Vec<HeadSummary> {
        let has_end = !self.lacks_end;
        let summary = |((part, layer, head), found): (_, Vec<(Measures, usize)>)| {
            let measures = Measures::mean(&found);
            HeadSummary { part, layer, head, looks_at: measures.looks_at(part, has_end).to_string(), measures }
        };
        self.all.into_iter().map(summary).collect()
    }
}

/// Every head of attention, its numbers averaged over all sentences and rows.
pub fn summarize(sentences: &[SentenceMaps]) -> Vec<HeadSummary> {
    let mut sums = HeadSums::default();
    sentences.iter().for_each(|sentence| sums.add(sentence));
    sums.finish()
}
