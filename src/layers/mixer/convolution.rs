//! A short causal convolution, channel by channel.

use crate::layers::{Init, Pass};
use crate::ops::convolution;
use burn::module::{Module, Param};
use burn::tensor::Tensor;

/// `y_t = sum_j w_j * x_(t-j)` for `j = 0, ..., width - 1`, with a vector `w_j` for each distance.
///
/// A recurrence that writes a key when it sees it cannot know the word that stands before; with a convolution it can, and
/// recall becomes a matter of one layer.
///
/// burn-nn's `Conv1d` wants channels before positions and pads both ends, so that it would need two turns of the tensor and a
/// cut.
///
/// # Reference
/// Fu et al., Hungry Hungry Hippos, 2023, section 3.1 (the shift); De et al., Griffin, 2024, section 2.3 (width 4).
#[derive(Module, Debug)]
pub struct ShortConvolution {
    /// `[width, d_model]`; row `j` is for the position `j` before.
    weight: Param<Tensor<2>>,
}

impl ShortConvolution {
    /// A convolution over `width` positions.
    ///
    /// # Panics
    /// If the width is 0.
    pub fn new(width: usize, d_model: usize, init: &Init) -> Self {
        assert!(width > 0, "a convolution sees at least its own position");
        Self { weight: init.uniform([width, d_model], (width as f64).powf(-0.5)) }
    }

    /// The convolution of `input`, which follows what is in `past`; what comes next follows both.
    ///
    /// # Shapes
    /// - input, output: `[rows, len, d_model]`
    /// - past: `[rows, width - 1, d_model]`, zeros if there is none
    pub fn advance(&self, input: Tensor<3>, past: &mut Option<Tensor<3>>, pass: &Pass) -> Tensor<3> {
        let ([rows, _, d], weight) = (input.dims(), self.weight.val());
        let width = weight.dims()[0];
        if width == 1 {
            return input * weight.unsqueeze();
        }
        let before = past.take().unwrap_or_else(|| Tensor::zeros([rows, width - 1, d], &input.device()));
        let (output, next) = convolution(input, weight, before, pass.body());
        *past = Some(next);
        output
    }
}
