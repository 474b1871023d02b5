//! Attention in several heads on a GPU as one node.

use super::dropout::DropoutBackend;
use super::heads::HeadsKernels;
use super::node::{Kept, node};
use super::product::{ProductKernels, transposed};
use super::softmax::SoftmaxKernels;
use super::{are_counted, computed, one_query};
use crate::backend::gpu::{Heads, Softening};
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, TensorMetadata, backend_extension};
use burn::tensor::Tensor;
use burn_cubecl::CubeBackend;

/// How heads attend.
#[derive(Clone, Copy, Debug)]
pub struct Attending {
    heads: Heads,
    /// Whether `hiding` hides anything; else it does not matter what it is.
    hides: bool,
    softening: Softening,
}

/// Backends on which attention is one operation with gradients.
#[backend_extension(Cube, Fusion: cfg(feature = "fusion"), Autodiff)]
pub trait AttentionBackend: Backend {
    /// Of a sequence to itself: queries, keys and values lie side by side.
    #[fusion(meta = |packed, _hiding, how| {
        let shape = [packed.shape[0], packed.shape[1], how.heads.n_heads * how.heads.d_head].into();
        burn::backend::fusion::custom::TensorSpec::new(shape, packed.dtype)
    })]
    fn attend_within(packed: FloatTensor<Self>, hiding: FloatTensor<Self>, how: Attending) -> FloatTensor<Self>;

    /// Of one sequence to another, whose keys and values lie side by side.
    #[fusion(meta = |query, _key_value, _hiding, _how| query.clone())]
    fn attend_across(
        query: FloatTensor<Self>,
        key_value: FloatTensor<Self>,
        hiding: FloatTensor<Self>,
        how: Attending,
    ) -> FloatTensor<Self>;
}

/// `dropout(softmax(scale * Q K^T + hiding)) V` in every head. None where the tensors are not ones of 32-bit floats on a device that has
/// these kernels.
///
/// # Shapes
/// - query: `[batch, query_len, n_heads d_head]`; without `key_value` `[batch, len, (n_heads + 2 n_key_value_heads) d_head]`
/// - key_value: `[batch, key_len, 2 n_key_value_heads d_head]`
/// - hiding, which is a constant: `[batch or 1, 1, query_len or 1, key_len]`
/// - output: `[batch, query_len, n_heads d_head]`
pub fn attention(
    query: &Tensor<3>,
    key_value: Option<&Tensor<3>>,
    hiding: Option<&Tensor<4>>,
    heads: Heads,
    how: Softening,
) -> Option<Tensor<3>> {
    let [batch, query_len, _] = query.dims();
    let key_len = key_value.map_or(query_len, |key_value| key_value.dims()[1]);
    if !are_counted(&[batch, heads.n_heads, query_len, key_len]) {
        return None;
    }
    if let Some(hiding) = hiding {
        super::softmax::check_hiding(hiding, [batch, heads.n_heads, query_len, key_len]);
    }
    let how = Attending { heads, hides: hiding.is_some(), softening: how };
    let hiding = computed(&hiding.cloned().unwrap_or_else(|| super::softmax::nothing(&query.device())))?;
    let query = computed(query)?;
    let context = match key_value {
        Some(key_value) => Dispatch::attend_across(query, computed(key_value)?, hiding, how),
        None => Dispatch::attend_within(query, hiding, how),
    };
    Some(Tensor::from_dispatch(context))
}

/// What the backward pass needs: every head by itself.
#[derive(Clone, Debug)]
struct Attended<B: Backend> {
    query: FloatTensor<B>,
    key: FloatTensor<B>,
    value: FloatTensor<B>,
    /// Before dropout, which is computed again.
    weights: FloatTensor<B>,
    how: Softening,
}

/// `[batch, n_heads, len, width]` to `[batch, n_folded, n_heads / n_folded * len, width]`: heads that share keys, one below the other.
fn fold<B: Backend>(heads: FloatTensor<B>, n_folded: usize) -> FloatTensor<B> {
    let shape = heads.shape();
    if shape[1] == n_folded {
        return heads;
    }
    B::float_reshape(heads, [shape[0], n_folded, shape[1] / n_folded * shape[2], shape[3]].into())
}

/// The inverse of [`fold`].
fn unfold<B: Backend>(folded: FloatTensor<B>, n_heads: usize) -> FloatTensor<B> {
    let shape = folded.shape();
    if shape[1] == n_heads {
        return folded;
    }
    B::float_reshape(folded, [shape[0], n_heads, shape[2] * shape[1] / n_heads, shape[3]].into())
}

impl<B: SoftmaxKernels + HeadsKernels + ProductKernels + DropoutBackend> Attended<B> {
    /// The contexts of all heads side by side, and what the backward pass needs.
    fn new([query, key, value]: [FloatTensor<B>; 3], hiding: FloatTensor<B>, how: Attending) -> (FloatTensor<B>, Self) {
        let (n_heads, n_folded) = (query.shape()[1], key.shape()[1]);
        let scores = B::multiplied(fold::<B>(query.clone(), n_folded), transposed::<B>(key.clone()));
        let (dropped, weights) = B::weights_of_scores(unfold::<B>(scores, n_heads), hiding, how.hides, how.softening);
        let context = B::multiplied(fold::<B>(dropped, n_folded), value.clone());
        let context = B::join_one(unfold::<B>(context, n_heads));
        (context, Self { query, key, value, weights, how: how.softening })
    }

    /// The gradients of queries, keys and values.
    fn backward(self, gradient: FloatTensor<B>) -> [FloatTensor<B>; 3] {
        let Self { query, key, value, weights, how } = self;
        let (n_heads, d_head, n_folded) = (query.shape()[1], query.shape()[3], key.shape()[1]);
        let gradient = fold::<B>(B::cut_one(gradient, d_head), n_folded);
        let dropped = match how.dropout {
            Some(dropout) => B::dropped(weights.clone(), dropout),
            None => weights.clone(),
        };
        let of_value = B::multiplied(transposed::<B>(fold::<B>(dropped, n_folded)), gradient.clone());
        let of_dropped = unfold::<B>(B::multiplied(gradient, transposed::<B>(value)), n_heads);
        let of_scores = fold::<B>(B::gradient_of_scores(weights, of_dropped, how), n_folded);
        let of_key = B::multiplied(transposed::<B>(of_scores.clone()), fold::<B>(query, n_folded));
        let of_query = unfold::<B>(B::multiplied(of_scores, key), n_heads);
        [of_query, of_key, of_value]
    }
}

/// From queries, keys and values side by side.
#[derive(Clone, Debug)]
struct Within<B: Backend>(Attended<B>);

impl<B: SoftmaxKernels + HeadsKernels + ProductKernels + DropoutBackend> Kept<B, 1> for Within<B> {
    fn gradients(self, gradient: FloatTensor<B>, _needed: [bool; 1]) -> [Option<FloatTensor<B>>; 1] {
        let [of_query, of_key, of_value] = self.0.backward(gradient);
        [Some(B::join_three(of_query, of_key, of_value))]
    }
}

/// From queries, and keys and values side by side.
#[derive(Clone, Debug)]
struct Across<B: Backend>(Attended<B>);

impl<B: SoftmaxKernels + HeadsKernels + ProductKernels + DropoutBackend> Kept<B, 2> for Across<B> {
    fn gradients(self, gradient: FloatTensor<B>, needed: [bool; 2]) -> [Option<FloatTensor<B>>; 2] {
        let [of_query, of_key, of_value] = self.0.backward(gradient);
        [needed[0].then(|| B::join_one(of_query)), needed[1].then(|| B::join_two(of_key, of_value))]
    }
}

fn within<B: SoftmaxKernels + HeadsKernels + ProductKernels + DropoutBackend>(
    packed: FloatTensor<B>,
    hiding: FloatTensor<B>,
    how: Attending,
) -> (FloatTensor<B>, Attended<B>) {
    let (query, key, value) = B::cut_three(packed, how.heads.n_heads, how.heads.d_head);
    Attended::new([query, key, value], hiding, how)
}

fn across<B: SoftmaxKernels + HeadsKernels + ProductKernels + DropoutBackend>(
    query: FloatTensor<B>,
    key_value: FloatTensor<B>,
    hiding: FloatTensor<B>,
    how: Attending,
) -> (FloatTensor<B>, Attended<B>) {
    let (key, value) = B::cut_two(key_value, how.heads.d_head);
    Attended::new([B::cut_one(query, how.heads.d_head), key, value], hiding, how)
}

impl<B: SoftmaxKernels + HeadsKernels + ProductKernels + DropoutBackend, C: CheckpointStrategy> AttentionBackend
    for Autodiff<B, C>
{
    fn attend_within(packed: FloatTensor<Self>, hiding: FloatTensor<Self>, how: Attending) -> FloatTensor<Self> {
        let ((packed, parent), (hiding, _)) = (packed.into_parts(), hiding.into_parts());
        let (context, kept) = within::<B>(packed, hiding, how);
        node::<B, C, _, 1>([parent], context, Within(kept))
    }

    fn attend_across(
        query: FloatTensor<Self>,
        key_value: FloatTensor<Self>,
        hiding: FloatTensor<Self>,
        how: Attending,
    ) -> FloatTensor<Self> {
        let [(query, of_query), (key_value, of_key_value)] = [query, key_value].map(|it| it.into_parts());
        let (context, kept) = across::<B>(query, key_value, hiding.into_parts().0, how);
        node::<B, C, _, 2>([of_query, of_key_value], context, Across(kept))
    }
}

impl AttentionBackend for CubeBackend {
    fn attend_within(packed: FloatTensor<Self>, hiding: FloatTensor<Self>, how: Attending) -> FloatTensor<Self> {
        within::<Self>(packed, hiding, how).0
    }

    fn attend_across(
        query: FloatTensor<Self>,
        key_value: FloatTensor<Self>,
        hiding: FloatTensor<Self>,
        how: Attending,
    ) -> FloatTensor<Self> {
        let Attending { heads, hides, softening } = how;
        if one_query::is_taken(&query, &key_value, softening) {
            return one_query::attend(query, key_value, hiding, hides, heads, softening);
        }
        across::<Self>(query, key_value, hiding, how).0
    }
}
