//! Linear recurrences in burn's operations: the coefficients of every position, and a scan over them.

use crate::kernels::linear_recurrence::{Gating, RG_LRU_FLOOR, RG_LRU_SPEED};
use crate::kernels::recurrence::Reading;
use burn::tensor::{Device, Tensor, TensorData, activation};

/// `a` and `b` of every position.
pub fn coefficients(gating: Gating, gates: Tensor<3>, decay: Option<Tensor<1>>) -> [Tensor<3>; 2] {
    let d = gates.dims()[2] / gating.n_gates();
    let part = |i: usize| gates.clone().narrow(2, i * d, d);
    let gate = |i: usize| activation::sigmoid(part(i));
    let rest = |a: Tensor<3>| a.neg().add_scalar(1.0);
    match gating {
        Gating::MinGru => {
            let z = gate(0);
            [rest(z.clone()), z * positive(part(1))]
        }
        Gating::MinLstm => {
            // f / (f + i), where both may vanish.
            let a = activation::sigmoid(log_sigmoid(part(0)) - log_sigmoid(part(1)));
            [a.clone(), rest(a) * positive(part(2))]
        }
        Gating::Ssru => {
            let a = gate(0);
            [a.clone(), rest(a) * part(1)]
        }
        Gating::RgLru => {
            let decay = decay.expect("RG-LRU has a decay");
            let slowest = log_sigmoid(decay).mul_scalar(RG_LRU_SPEED).unsqueeze::<3>();
            let log = gate(0) * slowest;
            let a = log.clone().exp();
            // 1 - a^2, without losing the digits of what is near 1.
            let room = (a.clone() * a.clone()).add_scalar(1.0) * log.neg().tanh();
            let room = room.clamp_min(RG_LRU_FLOOR).sqrt();
            [a, room * gate(1) * part(2)]
        }
    }
}

/// `x + 1/2` for `x >= 0`, `sigmoid(x)` below: always above 0, and without a jump.
fn positive(x: Tensor<3>) -> Tensor<3> {
    let is_negative = x.clone().lower_elem(0.0);
    let below = activation::sigmoid(x.clone());
    x.add_scalar(0.5).mask_where(is_negative, below)
}

/// All states of `h_t = a_t * h_(t-1) + b_t`, in as many passes as the length has binary digits: after pass `k`, each position
/// knows what `2^k` positions make of the state before them (Hillis and Steele 1986).
pub(super) fn scan(a: Tensor<3>, b: Tensor<3>, start: Tensor<2>, reading: &Reading) -> Tensor<3> {
    let [rows, len, d] = a.dims();
    let device = a.device();
    let real = reading.lengths.as_ref().and_then(|lengths| real(lengths, len, &device));
    let turn = |x: Tensor<3>| if reading.is_backward { x.flip([1]) } else { x };
    // On padding the state stands still.
    let (a, b) = match &real {
        Some(real) => (a * real.clone() + real.clone().neg().add_scalar(1.0), b * real.clone()),
        None => (a, b),
    };
    let (mut a, mut b) = (turn(a), turn(b));
    let mut reach = 1;
    while reach < len {
        let before =
            |x: &Tensor<3>, filler: Tensor<3>| Tensor::cat(vec![filler, x.clone().narrow(1, 0, len - reach)], 1);
        b = b.clone() + a.clone() * before(&b, Tensor::zeros([rows, reach, d], &device));
        a = a.clone() * before(&a, Tensor::ones([rows, reach, d], &device));
        reach *= 2;
    }
    let states = turn(a * start.unsqueeze_dim::<3>(1) + b);
    match real {
        Some(real) => states * real,
        None => states,
    }
}

/// `log(sigmoid(x))`. burn's own loses the digits of what is near 0, which is how slow a memory fades.
pub(super) fn log_sigmoid<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    x.clone().clamp_max(0.0) - x.abs().neg().exp().log1p()
}

/// One for every real position of sentences padded to `len`, zero for padding: `[rows, len, 1]`; nothing where there is none.
pub(super) fn real(lengths: &[usize], len: usize, device: &Device) -> Option<Tensor<3>> {
    lengths.iter().any(|length| *length < len).then(|| {
        let of_sentence = |length: &usize| {
            let length = *length;
            (0..len).map(move |position| if position < length { 1f32 } else { 0.0 })
        };
        let real: Vec<f32> = lengths.iter().flat_map(of_sentence).collect();
        Tensor::from_data(TensorData::new(real, [lengths.len(), len, 1]), device)
    })
}
