//! The gradient of an update, from the parts that a process has of it.

use super::gradient_set::GradientSet;
use super::lessons::{Trainable, UpdatePart, unread_gradients};
use super::loss::{LossSums, Unread};
use crate::pool::in_pool;
use burn::tensor::Device;

/// The gradient of one part, and the sums of its loss, which have yet to be read.
pub(super) fn of_part<M: Trainable>(
    model: &mut M,
    part: UpdatePart<M::Batch>,
    device: &Device,
    is_host: bool,
) -> (GradientSet, Unread) {
    // A model can be handed to another thread, and not be shared with one: hence `&mut`.
    in_pool(device, move || {
        let (gradients, sums) = unread_gradients(&*model, &part);
        (GradientSet::new(&*model, gradients, is_host), sums)
    })
}

/// The gradient of all `parts`, the sums of their loss, and the norm of the gradient. A device is read once, when everything has been
/// enqueued.
pub(super) fn of_all<M: Trainable>(
    model: &mut M,
    parts: impl IntoIterator<Item = UpdatePart<M::Batch>>,
    device: &Device,
    is_host: bool,
) -> (GradientSet, LossSums, f64) {
    let mut total = GradientSet::default();
    let mut all = Vec::new();
    for part in parts {
        let (gradients, sums) = of_part(model, part, device, is_host);
        total.add(gradients);
        all.push(sums);
    }
    let (sums, squares) = Unread::read_all(all, total.squares_on_device());
    let norm = total.norm_with(&squares);
    (total, sums, norm)
}
