//! Parameters of Marian, one after the other, in our order.

use crate::error::Result;
use crate::interop::hugging_face::{in_our_order, take, transposed};
use crate::models::weights::{Weight, Weights};
use std::path::Path;

/// What is taken out of their parameters, with the axis of `d_model` in our order.
pub(super) struct Taker<'a> {
    theirs: Weights,
    /// The column of theirs for each of ours.
    columns: Vec<usize>,
    file: &'a Path,
}

impl<'a> Taker<'a> {
    pub(super) fn new(theirs: Weights, columns: Vec<usize>, file: &'a Path) -> Self {
        Self { theirs, columns, file }
    }

    /// Leaves a parameter out.
    pub(super) fn forget(&mut self, name: &str) {
        self.theirs.remove(name);
    }

    /// A parameter that is still there.
    pub(super) fn rest(&self) -> Option<&String> {
        self.theirs.keys().next()
    }

    pub(super) fn take(&mut self, name: &str, shape: &[usize]) -> Result<Weight> {
        take(&mut self.theirs, name, shape, self.file)
    }

    /// One number for each column.
    fn vector(&mut self, name: &str) -> Result<Weight> {
        let d = self.columns.len();
        let theirs = self.take(name, &[d])?;
        Ok(Weight { shape: vec![d], values: self.columns.iter().map(|column| theirs.values[*column]).collect() })
    }

    /// A matrix `[n, d_model]`.
    fn rows(&mut self, name: &str, n: usize) -> Result<Weight> {
        let d = self.columns.len();
        let theirs = self.take(name, &[n, d])?;
        let values = theirs.values.chunks(d).flat_map(|row| self.columns.iter().map(|column| row[*column])).collect();
        Ok(Weight { shape: vec![n, d], values })
    }

    /// A table of words in our order.
    pub(super) fn table(&mut self, name: &str, n: usize, order: &[usize]) -> Result<Weight> {
        Ok(in_our_order(&self.rows(name, n)?, order))
    }

    /// Linear maps of `d_model` numbers to `n`, side by side.
    pub(super) fn take_from_model(&mut self, names: &[String], n: usize, to: &str, ours: &mut Weights) -> Result<()> {
        let mut weight = Weight { shape: vec![n * names.len(), self.columns.len()], values: Vec::new() };
        let mut bias = Weight { shape: vec![n * names.len()], values: Vec::new() };
        for name in names {
            weight.values.extend(self.rows(&format!("{name}.weight"), n)?.values);
            bias.values.extend(self.take(&format!("{name}.bias"), &[n])?.values);
        }
        ours.insert(format!("{to}.weight"), transposed(&weight));
        ours.insert(format!("{to}.bias"), bias);
        Ok(())
    }

    /// A linear map of `n` numbers to `d_model`.
    pub(super) fn take_to_model(&mut self, name: &str, n: usize, to: &str, ours: &mut Weights) -> Result<()> {
        let d = self.columns.len();
        let theirs = self.take(&format!("{name}.weight"), &[d, n])?;
        let rows = self.columns.iter().flat_map(|row| &theirs.values[row * n..(row + 1) * n]).copied().collect();
        ours.insert(format!("{to}.weight"), transposed(&Weight { shape: vec![d, n], values: rows }));
        ours.insert(format!("{to}.bias"), self.vector(&format!("{name}.bias"))?);
        Ok(())
    }

    pub(super) fn norm(&mut self, name: &str, to: &str, ours: &mut Weights) -> Result<()> {
        ours.insert(format!("{to}.gamma"), self.vector(&format!("{name}.weight"))?);
        ours.insert(format!("{to}.beta"), self.vector(&format!("{name}.bias"))?);
        Ok(())
    }
}
