//! One attention on numbers that fit on paper, without a model.

use super::formulas::of_attention;
use super::{AttentionMemory, Explanation, explain_trace};
use crate::error::{Error, Result};
use crate::layers::attention::{Alignment, ScoreConfig, WindowConfig};
use crate::layers::{Init, Pass, Trace};
use crate::models::weights::{Weight, Weights, apply};
use burn::tensor::{Device, Tensor, TensorData};
use std::path::Path;

/// Rows of numbers, all as long.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    /// The length of a row.
    pub width: usize,
    /// The numbers, row after row.
    pub values: Vec<f32>,
}

impl Matrix {
    /// The rows.
    pub fn n_rows(&self) -> usize {
        self.values.len() / self.width.max(1)
    }

    /// The matrix with ones on its diagonal.
    pub fn identity(width: usize) -> Self {
        let values = (0..width * width).map(|i| if i % (width + 1) == 0 { 1.0 } else { 0.0 }).collect();
        Self { width, values }
    }

    fn tensor(&self, device: &Device) -> Tensor<3> {
        Tensor::from_data(TensorData::new(self.values.clone(), [1, self.n_rows(), self.width]), device)
    }

    /// Columns for rows, as a parameter of a layer.
    fn transposed(&self) -> Weight {
        let (rows, width) = (self.n_rows(), self.width);
        let values = (0..rows * width).map(|i| self.values[i % rows * width + i / rows]).collect();
        Weight { shape: vec![width, rows], values }
    }

    /// Every row times this matrix: `W x` for each row `x` of `rows`.
    fn of_rows(&self, rows: &Self) -> Self {
        let product = |x: &[f32]| -> Vec<f32> {
            self.values.chunks(self.width).map(|w| w.iter().zip(x).map(|(w, x)| w * x).sum()).collect()
        };
        let values = rows.values.chunks(rows.width).flat_map(product).collect();
        Self { width: self.n_rows(), values }
    }
}

/// What an attention is to be computed of.
#[derive(Clone, Debug)]
pub struct ByHand {
    /// The queries.
    pub queries: Matrix,
    /// What is compared with the queries.
    pub keys: Matrix,
    /// What is averaged; the keys, if nothing else is given.
    pub values: Option<Matrix>,
    /// Whether queries, keys and values are of one sequence.
    pub is_self: bool,
    /// Whether a position sees itself and those before it alone.
    pub is_causal: bool,
    /// What makes queries, keys and values: rows are outputs. Without one, the vectors as they are.
    pub projections: [Option<Matrix>; 3],
    /// How they are compared.
    pub score: ScoreConfig,
    /// `W` of the general score and of the additive one; ones on its diagonal, if it is not given.
    pub score_matrix: Option<Matrix>,
    /// `U` of the additive score, the same.
    pub key_matrix: Option<Matrix>,
    /// `v` of the additive score; ones, if it is not given.
    pub vector: Option<Vec<f32>>,
}

impl ByHand {
    /// The attention of every query, as steps of an explanation.
    ///
    /// # Errors
    /// If widths or numbers of rows do not go together; says which.
    pub fn explain(&self, device: &Device) -> Result<Explanation> {
        let project = |matrix: &Option<Matrix>, rows: &Matrix, name: &str| match matrix {
            Some(matrix) if matrix.width != rows.width => Err(Error::message(format!(
                "{name} takes vectors of {} numbers, and there are vectors of {}",
                matrix.width, rows.width
            ))),
            Some(matrix) => Ok(matrix.of_rows(rows)),
            None => Ok(rows.clone()),
        };
        let [query_matrix, key_matrix, value_matrix] = &self.projections;
        let values = self.values.as_ref().unwrap_or(&self.keys);
        if values.n_rows() != self.keys.n_rows() {
            let (n_values, n_keys) = (values.n_rows(), self.keys.n_rows());
            return Err(Error::message(format!(
                "--values has {n_values} rows, and --keys {n_keys}: each key has a value"
            )));
        }
        let queries = project(query_matrix, &self.queries, "--query-matrix")?;
        let keys = project(key_matrix, &self.keys, "--key-matrix")?;
        let values = project(value_matrix, values, "--value-matrix")?;
        let alignment = self.alignment(queries.width, keys.width, device)?;
        let has_values = self.values.is_some() || self.projections.iter().any(Option::is_some);
        let mechanism = of_attention(
            &self.score,
            queries.width,
            self.is_self,
            has_values,
            &self.projections.each_ref().map(Option::is_some),
        );
        let letter = if self.is_self { "x" } else { "h" };
        let names: Vec<String> = (1..=keys.n_rows()).map(|i| format!("{letter}_{i}")).collect();
        let mut all: Option<Explanation> = None;
        for t in 0..queries.n_rows() {
            let n_seen = if self.is_causal { t + 1 } else { keys.n_rows() };
            let seen = |rows: &Matrix| rows.tensor(device).narrow(1, 0, n_seen);
            let mut trace = Trace::default();
            let mut pass = Pass::traced(&mut trace);
            let mut memory = alignment.prepare(seen(&keys), &[n_seen], &pass);
            memory.values = seen(&values);
            memory.record(&mut pass);
            let query = queries.tensor(device).narrow(1, t, 1);
            pass.scoped("attention", |pass| alignment.forward(query, &[t], &memory, pass));
            let mut explained = explain_trace(&trace, &names[..n_seen], mechanism.clone());
            for step in &mut explained.steps {
                step.step = t + 1;
                step.attention.iter_mut().for_each(|row| row.step = t + 1);
            }
            match &mut all {
                // Keys and values are those of the last query, which sees most.
                Some(all) => {
                    all.steps.append(&mut explained.steps);
                    all.memories = explained.memories;
                    all.source = explained.source;
                }
                None => all = Some(explained),
            }
        }
        let mut all = all.ok_or_else(|| Error::message("there is no query"))?;
        all.memories.iter_mut().for_each(|memory: &mut AttentionMemory| memory.name = "attention".into());
        all.target = (1..=queries.n_rows()).map(|t| format!("q_{t}")).collect();
        Ok(all)
    }

    /// The score with the numbers that are given for it.
    fn alignment(&self, d_query: usize, d_key: usize, device: &Device) -> Result<Alignment> {
        if self.score.needs_equal_widths() && d_query != d_key {
            let message = format!(
                "queries have {d_query} numbers and keys {d_key}: this score compares them one by one; take --score general or additive"
            );
            return Err(Error::message(message));
        }
        let fits = |matrix: Matrix, what: &str, rows: usize, width: usize| {
            if (matrix.n_rows(), matrix.width) == (rows, width) {
                return Ok(matrix);
            }
            let (has_rows, has_width) = (matrix.n_rows(), matrix.width);
            Err(Error::message(format!("{what} has {has_rows} rows of {has_width}, and needs {rows} of {width}")))
        };
        let square = |matrix: &Option<Matrix>, what: &str, rows: usize, width: usize| match matrix {
            Some(matrix) => fits(matrix.clone(), what, rows, width),
            None if rows == width => Ok(Matrix::identity(rows)),
            None => Err(Error::message(format!("{what} is missing: it has {rows} rows of {width} numbers"))),
        };
        let mut weights = Weights::new();
        let score = match self.score {
            ScoreConfig::General {} => {
                let matrix = square(&self.score_matrix, "--score-matrix", d_query, d_key)?;
                weights.insert("score.key.weight".into(), matrix.transposed());
                ScoreConfig::General {}
            }
            ScoreConfig::Additive { .. } => {
                let d_attention = self.score_matrix.as_ref().map_or(d_query, Matrix::n_rows);
                let query = square(&self.score_matrix, "--score-matrix", d_attention, d_query)?;
                let key = square(&self.key_matrix, "--score-key-matrix", d_attention, d_key)?;
                let vector = self.vector.clone().unwrap_or_else(|| vec![1.0; d_attention]);
                let vector = fits(Matrix { width: vector.len(), values: vector }, "--score-vector", 1, d_attention)?;
                weights.insert("score.query.weight".into(), query.transposed());
                weights.insert("score.key.weight".into(), key.transposed());
                weights.insert(
                    "score.key.bias".into(),
                    Weight { shape: vec![d_attention], values: vec![0.0; d_attention] },
                );
                weights.insert("score.vector".into(), vector.transposed());
                ScoreConfig::Additive { d_attention }
            }
            // The angle itself, without the factor that a model learns.
            ScoreConfig::Cosine {} => {
                weights.insert("score.log_sharpness".into(), Weight { shape: vec![1], values: vec![0.0] });
                ScoreConfig::Cosine {}
            }
            ref other => other.clone(),
        };
        let alignment = Alignment::new(&score, &WindowConfig::Global {}, d_query, d_key, &Init::blank(device));
        apply(alignment, &weights, Path::new("the command line"))
    }
}
