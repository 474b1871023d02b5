//! Which positions attention may not look at. **True means hidden**, everywhere.
//!
//! Hiding a position adds [`HIDDEN`] to its score, so that its weight is exactly zero after the softmax. A row in which
//! every position is hidden would become uniform; such rows are set to zero, weight and gradient.

use burn::tensor::{Bool, Device, Element, Int, Tensor, TensorData};
use std::sync::{Arc, OnceLock};

pub use crate::kernels::one_query::HIDDEN;

/// Hidden positions of attention scores.
///
/// # Shapes
/// - every tensor: `[batch or 1, 1, query_len or 1, key_len]`, ready to be broadcast over `[batch, n_heads, query_len, key_len]`
#[derive(Clone, Debug)]
pub struct Mask {
    hidden: Option<Hidden>,
    visible_rows: Option<Tensor<4>>,
    causal: Option<Arc<Causal>>,
    lengths: Option<Arc<[usize]>>,
}

/// Hidden positions, and what is added to their scores.
#[derive(Clone, Debug)]
struct Hidden {
    places: Tensor<4, Bool>,
    bias: Tensor<4>,
}

impl Hidden {
    fn new(hidden: Vec<bool>, shape: [usize; 4], device: &Device) -> Self {
        let bias: Vec<f32> = hidden.iter().map(|hidden| bias_of(*hidden)).collect();
        Self {
            places: Tensor::from_data(TensorData::new(hidden, shape), device),
            bias: Tensor::from_data(TensorData::new(bias, shape), device),
        }
    }
}

/// The future, which is written out when somebody asks for it, in the form that is asked for: its size is the square of the length, and
/// a fused attention needs none of it, or but what is added.
#[derive(Debug)]
struct Causal {
    len: usize,
    device: Device,
    places: OnceLock<Tensor<4, Bool>>,
    bias: OnceLock<Tensor<4>>,
}

impl Causal {
    fn places(&self) -> &Tensor<4, Bool> {
        self.places.get_or_init(|| Tensor::from_data(self.written(|is_hidden| is_hidden), &self.device))
    }

    fn bias(&self) -> &Tensor<4> {
        self.bias.get_or_init(|| Tensor::from_data(self.written(bias_of), &self.device))
    }

    fn written<T: Element>(&self, of: impl Fn(bool) -> T) -> TensorData {
        let len = self.len;
        let all: Vec<T> = (0..len).flat_map(|query| (0..len).map(move |key| key > query)).map(of).collect();
        TensorData::new(all, [1, 1, len, len])
    }
}

/// What is added to the score of a position.
fn bias_of(is_hidden: bool) -> f32 {
    if is_hidden { HIDDEN } else { 0.0 }
}

impl Mask {
    /// Nothing is hidden.
    pub fn none() -> Self {
        Self { hidden: None, visible_rows: None, causal: None, lengths: None }
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
        Self { hidden: Some(Hidden::new(hidden, shape, device)), visible_rows, lengths, causal: None }
    }

    /// Hides the future: position `i` sees positions up to `i` only.
    pub fn causal(len: usize, device: &Device) -> Self {
        let causal = Causal { len, device: device.clone(), places: OnceLock::new(), bias: OnceLock::new() };
        Self { causal: Some(Arc::new(causal)), ..Self::none() }
    }

    /// The mask of the first positions of rows that begin in the columns `starts` and end in the same: what is before a row's
    /// beginning is hidden, and the future too unless the row `sees_all` of itself. Places before the beginning see
    /// themselves, so that none of them is without a number.
    pub fn right_aligned(starts: &[usize], len: usize, sees_all: bool, device: &Device) -> Self {
        let shape = [starts.len(), 1, len, len];
        let is_hidden =
            |start: usize, query: usize, key: usize| query != key && (key < start || !sees_all && key > query);
        let rows = starts.iter().flat_map(|start| (0..len * len).map(move |i| is_hidden(*start, i / len, i % len)));
        let hidden = Some(Hidden::new(rows.collect(), shape, device));
        Self { hidden, ..Self::none() }
    }

    /// Hides the future, but not from the first `lengths` positions of each row what lies among them.
    pub fn prefix(lengths: &[usize], len: usize, device: &Device) -> Self {
        let is_hidden = |length: usize, query: usize, key: usize| key > query && key >= length;
        let rows = lengths.iter().flat_map(|n| (0..len * len).map(move |i| is_hidden(*n, i / len, i % len)));
        let hidden = Some(Hidden::new(rows.collect(), [lengths.len(), 1, len, len], device));
        Self { hidden, ..Self::none() }
    }

    /// Hides the columns before the beginning of each row.
    ///
    /// # Shapes
    /// - starts: `[rows]`
    pub fn before(starts: &Tensor<1, Int>, key_len: usize) -> Self {
        let [rows] = starts.dims();
        let device = starts.device();
        let columns = Tensor::<1, Int>::arange(0..key_len as i64, &device).unsqueeze::<2>();
        let places = columns.lower(starts.clone().unsqueeze_dim::<2>(1)).reshape([rows, 1, 1, key_len]);
        let bias = places.clone().float().mul_scalar(HIDDEN);
        Self { hidden: Some(Hidden { places, bias }), ..Self::none() }
    }

    /// Adds [`HIDDEN`] to the scores of hidden positions.
    pub fn apply(&self, scores: Tensor<4>) -> Tensor<4> {
        match self.bias() {
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

    /// Whether a row has no visible position.
    pub fn has_empty_rows(&self) -> bool {
        self.visible_rows.is_some()
    }

    /// What is added to scores: zero, or [`HIDDEN`].
    pub fn bias(&self) -> Option<&Tensor<4>> {
        self.causal.as_ref().map(|causal| causal.bias()).or(self.hidden.as_ref().map(|hidden| &hidden.bias))
    }

    /// The hidden positions, unless the causal order alone says it.
    pub fn hidden(&self) -> Option<&Tensor<4, Bool>> {
        self.hidden.as_ref().map(|hidden| &hidden.places)
    }

    /// The hidden positions, the future included.
    pub fn every_hidden(&self) -> Option<&Tensor<4, Bool>> {
        self.causal.as_ref().map(|causal| causal.places()).or(self.hidden.as_ref().map(|hidden| &hidden.places))
    }

    /// The sentences' lengths, where the mask is exactly "no query sees the keys beyond", and where that is known here.
    pub fn lengths(&self) -> Option<Arc<[usize]>> {
        self.lengths.clone()
    }

    /// Whether nothing is hidden.
    pub fn is_none(&self) -> bool {
        self.hidden.is_none() && self.causal.is_none()
    }

    /// Whether the mask is exactly "no position sees its future".
    pub fn is_causal(&self) -> bool {
        self.causal.is_some()
    }

    /// The mask of the sentences `rows`, in that order.
    pub fn select(&self, rows: &Tensor<1, Int>) -> Self {
        if self.is_causal() {
            return self.clone();
        }
        Self {
            hidden: self.hidden.clone().map(|hidden| Hidden {
                places: hidden.places.select(0, rows.clone()),
                bias: hidden.bias.select(0, rows.clone()),
            }),
            visible_rows: self.visible_rows.clone().map(|visible| visible.select(0, rows.clone())),
            causal: None,
            // Reading the rows costs nothing where they lie in this process's memory, and is of no use elsewhere.
            lengths: self.lengths.as_ref().filter(|_| crate::backend::is_host(&rows.device())).map(|lengths| {
                let rows = rows.clone().into_data().convert::<i64>();
                rows.as_slice::<i64>().expect("row numbers").iter().map(|row| lengths[*row as usize]).collect()
            }),
        }
    }
}
