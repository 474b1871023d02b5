//! Positions: how a Transformer, which sees a set, learns the order of a sequence.

use super::Init;
use burn::module::Module;
use burn::nn::Embedding;
use burn::tensor::{Int, Tensor, TensorData};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The choice of a position scheme.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum PositionConfig {
    /// Sines and cosines of the position, added to the embeddings; any length.
    Sinusoidal,
    /// A learned vector for each position, added to the embeddings.
    Learned {
        /// Longest sequence, in tokens with the end symbol; longer input is refused.
        max_len: usize,
    },
}

/// Adds positions to embeddings.
#[derive(Module, Debug)]
pub struct Position {
    /// The table of [`PositionConfig::Learned`]; sinusoids have no parameters.
    learned: Option<Embedding>,
}

impl PositionConfig {
    /// Makes the layer.
    pub fn init(&self, d_model: usize, init: &Init) -> Position {
        match self {
            Self::Sinusoidal => Position { learned: None },
            Self::Learned { max_len } => Position { learned: Some(init.embedding(*max_len, d_model)) },
        }
    }

    /// The longest sequence that the scheme can number, in tokens with the end symbol.
    pub fn max_len(&self) -> Option<usize> {
        match self {
            Self::Sinusoidal => None,
            Self::Learned { max_len } => Some(*max_len),
        }
    }
}

impl Position {
    /// Adds the positions `offset, offset + 1, ...` to `input`.
    ///
    /// # Shapes
    /// - input, output: `[batch, len, d_model]`
    ///
    /// # Panics
    /// If a learned table is shorter than `offset + len`; callers check lengths at the door.
    pub fn forward(&self, input: Tensor<3>, offset: usize) -> Tensor<3> {
        let [_, len, d_model] = input.dims();
        let device = input.device();
        let table = match &self.learned {
            Some(embedding) => {
                let positions = Tensor::<1, Int>::arange(offset as i64..(offset + len) as i64, &device);
                embedding.weight.val().select(0, positions)
            }
            None => Tensor::from_data(TensorData::new(sinusoids(offset, len, d_model), [len, d_model]), &device),
        };
        input + table.unsqueeze::<3>()
    }
}

/// `sin(pos / 10000^(2i/d))` in even columns and the cosine in odd ones, row-major `[len, d_model]`.
///
/// burn-nn's `PositionalEncoding` computes the same numbers into a table of fixed length and panics beyond it; here any
/// position can be asked for.
///
/// # Reference
/// Vaswani et al., Attention Is All You Need, 2017, section 3.5. As in the paper.
pub fn sinusoids(offset: usize, len: usize, d_model: usize) -> Vec<f32> {
    let mut values = Vec::with_capacity(len * d_model);
    for position in offset..offset + len {
        for column in 0..d_model {
            let exponent = (column / 2 * 2) as f64 / d_model as f64;
            let angle = position as f64 / 10_000f64.powf(exponent);
            values.push(if column % 2 == 0 { angle.sin() } else { angle.cos() } as f32);
        }
    }
    values
}
