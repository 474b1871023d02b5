//! Source and target as one sequence.

use crate::data::batch::Padded;
use crate::layers::{Mask, indices};
use burn::tensor::{Device, Int, Tensor};

/// `x_1 .. x_S </s> <s> y_1 .. y_T` of each row, without padding between them.
pub(super) struct Joined {
    /// The real words of each source.
    n_source: Vec<usize>,
    /// Of the joined rows.
    len: usize,
    /// For each place of the joined rows the vector that it takes from source and target side by side.
    places: Tensor<1, Int>,
    /// For each place of the target the place that it has in the joined rows.
    back: Tensor<1, Int>,
    sizes: [usize; 3],
}

impl Joined {
    pub(super) fn new(source: &Padded, target: &Padded) -> Self {
        let device = source.ids.device();
        let (source_len, target_len) = (source.len(), target.len());
        let rows = || source.lengths.iter().enumerate();
        let len = source.lengths.iter().max().unwrap_or(&0) + target_len;
        let width = source_len + target_len;
        // A place past the end of a row gets the first vector of the row, which is never used.
        let places = rows().flat_map(|(row, n_source)| {
            (0..len).map(move |i| {
                let place = match i.checked_sub(*n_source) {
                    None => i,
                    Some(t) if t < target_len => source_len + t,
                    Some(_) => 0,
                };
                row * width + place
            })
        });
        let back = rows().flat_map(|(row, n_source)| (0..target_len).map(move |t| row * len + n_source + t));
        Self {
            n_source: source.lengths.clone(),
            len,
            places: indices(places, &device),
            back: indices(back, &device),
            sizes: [source.batch_size(), source_len, target_len],
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The words of the source of one sentence alone.
    pub(super) fn n_source_of_one(&self) -> Option<usize> {
        if let [n] = self.n_source[..] { Some(n) } else { None }
    }

    /// # Shapes
    /// - source, target: `[batch, source_len, d]` and `[batch, target_len, d]`
    /// - output: `[batch, len, d]`
    pub(super) fn join(&self, source: Tensor<3>, target: Tensor<3>) -> Tensor<3> {
        let [batch, source_len, target_len] = self.sizes;
        let d = source.dims()[2];
        let both = Tensor::cat(vec![source, target], 1).reshape([batch * (source_len + target_len), d]);
        both.select(0, self.places.clone()).reshape([batch, self.len, d])
    }

    /// The vectors at the words of the target.
    ///
    /// # Shapes
    /// - joined: `[batch, len, d]`
    /// - output: `[batch, target_len, d]`
    pub(super) fn target(&self, joined: Tensor<3>) -> Tensor<3> {
        let [batch, _, target_len] = self.sizes;
        let d = joined.dims()[2];
        joined.reshape([batch * self.len, d]).select(0, self.back.clone()).reshape([batch, target_len, d])
    }

    /// What hides the future; with `sees_all`, not that of a word of the source inside it. Padding follows the real words, so
    /// whoever may not see the future does not see padding either.
    pub(super) fn mask(&self, sees_all: bool, device: &Device) -> Mask {
        if sees_all { Mask::prefix(&self.n_source, self.len, device) } else { Mask::causal(self.len, device) }
    }
}
