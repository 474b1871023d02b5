//! Numbers of positions that are computed once.

use super::Places;
use std::sync::{Arc, RwLock};

/// Rows of numbers, one for each position from 0 on. Each is computed when it is first asked for, and kept as long as the model: its
/// powers and sines would take a tenth of a step of a small decoder.
#[derive(Clone, Debug, Default)]
pub(super) struct PositionTable(Arc<RwLock<Vec<f32>>>);

/// Numbers that a table keeps at most: 64 MiB.
const KEPT: usize = 1 << 24;

impl PositionTable {
    /// The rows of `places`, one after the other. `number` computes one from its position and column.
    pub fn rows(&self, places: &Places, width: usize, number: impl Fn(usize, usize) -> f32) -> Vec<f32> {
        let compute =
            |position: usize, out: &mut Vec<f32>| out.extend((0..width).map(|column| number(position, column)));
        let n_rows = places.iter().max().map_or(0, |last| last + 1);
        if n_rows.saturating_mul(width) > KEPT {
            let mut rows = Vec::new();
            places.iter().for_each(|position| compute(position, &mut rows));
            return rows;
        }
        // A panic of another thread while it computed numbers leaves whole numbers behind.
        let table = self.0.read().unwrap_or_else(|poisoned| poisoned.into_inner());
        if table.len() >= n_rows * width {
            return copied(&table, places, width);
        }
        drop(table);
        let mut table = self.0.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        let n_there = table.len() / width;
        table.truncate(n_there * width);
        (n_there..n_rows).for_each(|position| compute(position, &mut table));
        copied(&table, places, width)
    }
}

fn copied(table: &[f32], places: &Places, width: usize) -> Vec<f32> {
    let mut rows = Vec::with_capacity(places.len() * width);
    places.iter().for_each(|position| rows.extend_from_slice(&table[position * width..][..width]));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn a_row_is_computed_once_and_is_the_same_wherever_it_is_asked_for() {
        let (table, n_computed) = (PositionTable::default(), Cell::new(0));
        let number = |position: usize, column: usize| {
            n_computed.set(n_computed.get() + 1);
            (10 * position + column) as f32
        };
        let rows = |places: &Places| table.rows(places, 3, number);
        assert_eq!(rows(&Places::Following { offset: 1, len: 2 }), [10.0, 11.0, 12.0, 20.0, 21.0, 22.0]);
        assert_eq!(n_computed.get(), 9);
        assert_eq!(rows(&Places::Drawn(vec![0, 2])), [0.0, 1.0, 2.0, 20.0, 21.0, 22.0]);
        assert!(rows(&Places::Following { offset: 0, len: 0 }).is_empty());
        assert_eq!(n_computed.get(), 9, "no row is computed again");
        assert_eq!(table.clone().rows(&Places::Drawn(vec![3]), 3, number), [30.0, 31.0, 32.0]);
        assert_eq!(n_computed.get(), 12, "copies of a model share the table");
        // What is too far away to be kept.
        let far: Vec<f32> = (0..3).map(|column| (10 * KEPT + column) as f32).collect();
        assert_eq!(rows(&Places::Drawn(vec![KEPT])), far);
        assert_eq!(n_computed.get(), 15);
        assert_eq!(table.0.read().unwrap().len(), 12, "what is too far away is not kept");
    }
}
