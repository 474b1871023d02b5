//! Every operation with inputs of random sizes. The first word of a case is the name of the operation's type.

mod attention;
mod bad_number;
mod layers;
mod loss;
mod memories;
mod recurrent;

pub use bad_number::with_bad_number;

use super::Leaves;
use burn::tensor::Tensor;
use lookback::kernels::dropout::Dropout;
use lookback::ops::Body;
use lookback::random::{Purpose, Stream};
use proptest::prelude::*;
use std::sync::Arc;

/// The sizes that operations take what they need of.
#[derive(Clone, Debug)]
pub struct Sizes {
    batch: usize,
    len: usize,
    key_len: usize,
    width: usize,
    inner: usize,
    n_key_value_heads: usize,
    group: usize,
    d_head: usize,
    /// Real positions of each sentence, in thousandths of the length.
    lengths: Option<Vec<usize>>,
    is_causal: bool,
    has_bias: bool,
    is_transposed: bool,
    dropout_rate: f64,
    /// Chooses among kinds.
    choice: usize,
}

/// Lengths on both sides of what a block of attention holds (256 queries, 512 keys), widths on both sides of what instructions take.
pub fn sizes() -> impl Strategy<Value = Sizes> {
    let len = prop_oneof![8 => 1usize..12, 1 => 60usize..70, 1 => 254usize..259];
    let key_len = prop_oneof![8 => 1usize..12, 1 => 60usize..70, 1 => 510usize..515];
    let numbers = (1usize..4, len, key_len, 1usize..40, 1usize..40, 1usize..3, 1usize..4, 1usize..6);
    let lengths = prop::option::of(prop::collection::vec(0usize..=1000, 3));
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), prop_oneof![Just(0.0), Just(0.3)], 0usize..60);
    (numbers, lengths, flags).prop_map(|(numbers, lengths, flags)| {
        let (batch, len, key_len, width, inner, n_key_value_heads, group, d_head) = numbers;
        let (is_causal, has_bias, is_transposed, dropout_rate, choice) = flags;
        Sizes {
            batch,
            len,
            key_len,
            width,
            inner,
            n_key_value_heads,
            group,
            d_head,
            lengths,
            is_causal,
            has_bias,
            is_transposed,
            dropout_rate,
            choice,
        }
    })
}

impl Sizes {
    /// One for devices that compile a kernel for every shape.
    pub fn small() -> Self {
        Self {
            batch: 2,
            len: 4,
            key_len: 3,
            width: 6,
            inner: 5,
            n_key_value_heads: 1,
            group: 2,
            d_head: 3,
            lengths: Some(vec![1000, 700, 0]),
            is_causal: false,
            has_bias: true,
            is_transposed: true,
            dropout_rate: 0.3,
            choice: 1,
        }
    }

    /// On both sides of the units that share a row on a GPU, with what its kernels can do without, with other masks, cells, scores and
    /// activations. No row is empty: what has kernels.
    pub fn of_kernels() -> [Self; 6] {
        let small = Self { lengths: None, has_bias: false, is_transposed: false, choice: 0, ..Self::small() };
        let large = Self { batch: 3, len: 70, key_len: 130, width: 200, inner: 90, d_head: 8, ..small.clone() };
        let parts = |parts: [usize; 3]| Some(parts.to_vec());
        [
            Self { is_causal: true, dropout_rate: 0.0, ..small.clone() },
            Self { lengths: parts([1000, 700, 400]), has_bias: true, is_transposed: true, choice: 10, ..small },
            Self { is_causal: true, choice: 20, ..large.clone() },
            Self { lengths: parts([1000, 700, 20]), dropout_rate: 0.0, has_bias: true, choice: 15, ..large.clone() },
            Self { lengths: parts([1000, 300, 20]), is_transposed: true, choice: 34, ..large.clone() },
            Self { lengths: parts([1000, 300, 20]), n_key_value_heads: 2, len: 1, choice: 20, ..large },
        ]
    }

    fn dropout(&self) -> Option<Dropout> {
        (self.dropout_rate > 0.0).then(|| Dropout::new(Stream::new(1, Purpose::Dropout, &[2, 3]), self.dropout_rate))
    }

    fn lengths(&self, len: usize) -> Option<Arc<[usize]>> {
        let parts = self.lengths.as_ref()?;
        Some(parts[..self.batch].iter().map(|part| part * len / 1000).collect())
    }

    /// The same, of sentences that have a word at least.
    fn real_lengths(&self, len: usize) -> Option<Arc<[usize]>> {
        Some(self.lengths(len)?.iter().map(|length| (*length).max(1)).collect())
    }

    fn one_of<T: Copy>(&self, choices: &[T]) -> T {
        choices[self.choice % choices.len()]
    }
}

/// Calls an operation and returns its outputs.
pub type Run = fn(&mut Leaves, &Sizes, Body) -> Vec<Tensor<1>>;

/// Every operation.
pub const CASES: &[(&str, Run)] = &[
    ("Linear", layers::linear),
    ("FeedForward", layers::feed_forward),
    ("Drop", layers::dropout),
    ("AddDropped", layers::add_dropped),
    ("LayerNorm", layers::layer_norm),
    ("RmsNorm", layers::rms_norm),
    ("LayerNorm of sum", layers::layer_norm_of_sum),
    ("LayerNorm with sum", layers::layer_norm_with_sum),
    ("RmsNorm with sum", layers::rms_norm_with_sum),
    ("Embedding", layers::embedding),
    ("Rotate", layers::rotate),
    ("Attention packed", attention::attention_packed),
    ("Attention apart", attention::attention_apart),
    ("CrossEntropy", loss::cross_entropy),
    ("ProjectedCrossEntropy", loss::projected_cross_entropy),
    ("DeepOutput", recurrent::deep_output),
    ("CellStep", recurrent::cell_step),
    ("Contexts", recurrent::contexts),
    ("Layer alone", recurrent::recurrent_layer),
    ("Layer with attention", recurrent::attentive_layer),
    ("Recurrence", memories::linear_recurrence),
    ("MatrixMemory", memories::matrix_memory),
    ("Convolution", memories::convolution),
];

fn flat<const D: usize>(tensor: Tensor<D>) -> Tensor<1> {
    let len: usize = tensor.dims().iter().product();
    tensor.reshape([len])
}
