//! Caches of keys and values that outgrow the room that was made for them.

use super::{Case, Subject};
use crate::support::{SAME_TOLERANCE, assert_close, host_backends, wgpu};
use burn::tensor::{Int, Tensor};
use lookback::layers::position::{PositionConfig, Side};
use lookback::layers::{Mask, Pass};
use lookback::models::weights::to_vec;

/// More positions than there is room for at first, and than there is after the first growth.
const LEN: usize = 110;
/// Where another word is tried, and what was read before it is gone on with.
const FORK: usize = 40;
/// Where rows are chosen, some twice, one never.
const CHOICE: usize = 70;

fn check(what: &str, subject: &Subject) {
    let steps_of = |input: &Tensor<3>, range: std::ops::Range<usize>, cache: &mut _| {
        let row = |t: usize| input.clone().narrow(1, t, 1);
        let mut step = |t| subject.step(row(t), t, cache, &mut Pass::inference().fused(false));
        to_vec(Tensor::cat(range.map(&mut step).collect(), 1))
    };
    let whole = |input: &Tensor<3>, range: std::ops::Range<usize>| {
        let all = subject.infer(input.clone(), &Mask::causal(LEN, &subject.device));
        to_vec(all.narrow(1, range.start, range.len()))
    };
    let input = subject.input(3, LEN);
    let mut cache = None;
    let found = steps_of(&input, 0..FORK, &mut cache);
    assert_close(&format!("{what}: the first steps"), &found, &whole(&input, 0..FORK), SAME_TOLERANCE);
    let mut other = cache.clone();
    steps_of(&input.clone().neg(), FORK..CHOICE, &mut other);
    let found = steps_of(&input, FORK..CHOICE, &mut cache);
    assert_close(&format!("{what}: after the fork"), &found, &whole(&input, FORK..CHOICE), SAME_TOLERANCE);
    let rows = Tensor::<1, Int>::from_ints([2, 0, 2, 2], &subject.device);
    let input = input.select(0, rows.clone());
    let mut cache = cache.map(|cache| cache.select(&rows));
    let found = steps_of(&input, CHOICE..LEN, &mut cache);
    assert_close(&format!("{what}: after the choice"), &found, &whole(&input, CHOICE..LEN), SAME_TOLERANCE);
}

#[test]
fn steps_beyond_the_room_of_a_cache_are_the_causal_whole() {
    let adapters = host_backends().into_iter().chain(wgpu());
    for adapter in adapters {
        // Keys and values that begin where a GPU can look at them in place, and some that do not.
        for d_head in [32, 6] {
            let scheme = PositionConfig::Rotary { base: 100.0 };
            let case = Case {
                batch: 3,
                len: LEN,
                lengths: vec![LEN; 3],
                n_key_value_heads: 2,
                group: 1,
                d_head,
                scheme,
                side: Side::Decoder,
            };
            check(&format!("{d_head} on {}", adapter.backend), &case.on(&adapter.device));
        }
    }
}
