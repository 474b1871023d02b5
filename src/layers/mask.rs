//! Which positions attention may not look at. **True means hidden**, everywhere.
//!
//! Hiding a position adds [`HIDDEN`] to its score, so that its weight is exactly zero after the softmax. A row in which
//! every position is hidden would become uniform; such rows are set to zero, weight and gradient.

use burn::tensor::{Bool, Device, Tensor, TensorData};
use std::sync::Arc;

/// The score added to a hidden position: far below any real score, and finite, so that no row becomes NaN.
pub const HIDDEN: f32 = -1e9;

/// Hidden positions of attention scores.
///
/// # Shapes
/// - every tensor: `[batch or 1, 1, query_len or 1, key_len]`, ready to be broadcast over `[batch, n_heads, query_len, key_len]`
#[derive(Clone, Debug)]
pub struct Mask {
    hidden: Option<Tensor<4, Bool>>,
    bias: Option<Tensor<4>>,
    visible_rows: Option<Tensor<4>>,
    is_causal: bool,
    lengths: Option<Arc<[usize]>>,
}

impl Mask {
    /// Nothing is hidden.
    pub fn none() -> Self {
        Self { hidden: None, bias: None, visible_rows: None, is_causal: false, lengths: None }
    }

    /// Hides what lies beyond each sentence's length.
    pub fn padding(lengths: &[usize], key_len: usize, device: &Device) -> Self {
        if lengths.iter().all(|length| *length >= key_len) {
            return Self::none();
        }
        let shape = [lengths.len(), 1, 1, key_len];
        let hidden: Vec<bool> =
            lengths.iter().flat_map(|length| (0..key_len).map(move |position| position >= *length)).collect();
        let visible_rows = lengths.contains(&0).then(|| {
            let rows: Vec<f32> = lengths.iter().map(|length| if *length == 0 { 0.0 } else { 1.0 }).collect();
            Tensor::from_data(TensorData::new(rows, [lengths.len(), 1, 1, 1]), device)
        });
        let lengths = Some(lengths.into());
        Self { visible_rows, lengths, ..Self::from_hidden(hidden, shape, false, device) }
    }

    /// Hides the future: position `i` sees positions up to `i` only.
    pub fn causal(len: usize, device: &Device) -> Self {
        let hidden: Vec<bool> = (0..len).flat_map(|query| (0..len).map(move |key| key > query)).collect();
        Self::from_hidden(hidden, [1, 1, len, len], true, device)
    }

    fn from_hidden(hidden: Vec<bool>, shape: [usize; 4], is_causal: bool, device: &Device) -> Self {
        let bias: Vec<f32> = hidden.iter().map(|hidden| if *hidden { HIDDEN } else { 0.0 }).collect();
        Self {
            hidden: Some(Tensor::from_data(TensorData::new(hidden, shape), device)),
            bias: Some(Tensor::from_data(TensorData::new(bias, shape), device)),
            visible_rows: None,
            is_causal,
            lengths: None,
        }
    }

    /// Adds [`HIDDEN`] to the scores of hidden positions.
    pub fn apply(&self, scores: Tensor<4>) -> Tensor<4> {
        match &self.bias {
            Some(bias) => scores + bias.clone(),
            None => scores,
        }
    }

    /// Softmax over the visible positions of the last axis; a row without any becomes zero.
    pub fn softmax(&self, scores: Tensor<4>) -> Tensor<4> {
        let weights = burn::tensor::activation::softmax(self.apply(scores), 3);
        match &self.visible_rows {
            Some(visible) => weights * visible.clone(),
            None => weights,
        }
    }

    /// The hidden positions, unless the causal order alone says it.
    pub fn hidden(&self) -> Option<&Tensor<4, Bool>> {
        if self.is_causal { None } else { self.hidden.as_ref() }
    }

    /// The hidden positions, the future included.
    pub fn every_hidden(&self) -> Option<&Tensor<4, Bool>> {
        self.hidden.as_ref()
    }

    /// The sentences' lengths, where the mask is exactly "no query sees the keys beyond", and where that is known here.
    pub fn lengths(&self) -> Option<Arc<[usize]>> {
        self.lengths.clone()
    }

    /// Whether nothing is hidden.
    pub fn is_none(&self) -> bool {
        self.hidden.is_none()
    }

    /// Whether the mask is exactly "no position sees its future".
    pub fn is_causal(&self) -> bool {
        self.is_causal
    }

    /// The mask of the sentences `rows`, in that order.
    pub fn select(&self, rows: &Tensor<1, burn::tensor::Int>) -> Self {
        if self.is_causal {
            return self.clone();
        }
        Self {
            hidden: self.hidden.clone().map(|hidden| hidden.select(0, rows.clone())),
            bias: self.bias.clone().map(|bias| bias.select(0, rows.clone())),
            visible_rows: self.visible_rows.clone().map(|visible| visible.select(0, rows.clone())),
            is_causal: false,
            // Reading the rows costs nothing where they lie in this process's memory, and is of no use elsewhere.
            lengths: self.lengths.as_ref().filter(|_| crate::backend::is_host(&rows.device())).map(|lengths| {
                let rows = rows.clone().into_data().convert::<i64>();
                rows.as_slice::<i64>().expect("row numbers").iter().map(|row| lengths[*row as usize]).collect()
            }),
        }
    }
}
