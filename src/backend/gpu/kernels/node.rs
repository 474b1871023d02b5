//! Nodes of burn's graph whose gradients kernels compute.

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, NodeGuard, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend};
use std::fmt::Debug;
use std::marker::PhantomData;

/// What a kernel with `N` inputs keeps of its forward pass.
pub(super) trait Kept<B: Backend, const N: usize>: Clone + Debug + Send + 'static {
    /// The gradients of the inputs, from that of the output. Those that are not `needed` may be left out.
    fn gradients(self, gradient: FloatTensor<B>, needed: [bool; N]) -> [Option<FloatTensor<B>>; N];
}

#[derive(Debug)]
struct Node<K>(PhantomData<fn() -> K>);

impl<B: Backend, K: Kept<B, N>, const N: usize> Backward<B, N> for Node<K> {
    type State = K;

    fn backward(self, ops: Ops<K, N>, grads: &mut Gradients, _: &mut Checkpointer) {
        let gradient = grads.consume::<B>(&ops.node);
        let needed = ops.parents.each_ref().map(Option::is_some);
        let new = ops.state.gradients(gradient, needed);
        for (parent, new) in ops.parents.into_iter().zip(new) {
            if let (Some(parent), Some(new)) = (parent, new) {
                grads.register::<B>(parent.id, new);
            }
        }
    }
}

/// The output of a kernel as a node below which its inputs stand.
pub(super) fn node<B: Backend, C: CheckpointStrategy, K: Kept<B, N>, const N: usize>(
    parents: [NodeGuard; N],
    output: FloatTensor<B>,
    kept: K,
) -> FloatTensor<Autodiff<B, C>> {
    match Backward::<B, N>::prepare::<C>(Node(PhantomData::<fn() -> K>), parents).compute_bound().stateful() {
        OpsKind::Tracked(prepared) => prepared.finish(kept, output),
        OpsKind::UnTracked(prepared) => prepared.finish(output),
    }
}
