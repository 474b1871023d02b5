//! However many cores share out the sentences, the numbers are the same.

use super::{Incoming, Reading, Recurrence, States};
use crate::cell::CellKind;
use crate::matrix::Matrix;

fn numbers(n: usize, step: usize) -> Vec<f32> {
    (0..n).map(|i| (i * step % 1009) as f32 / 504.5 - 1.0).collect()
}

/// All that a layer makes forwards and backwards, with so many threads.
fn made(kind: CellKind, batch: usize, n_threads: usize) -> Vec<Vec<f32>> {
    let (len, d) = (5, 20);
    let width = kind.n_gates() * d;
    let lengths: Vec<usize> = (0..batch).map(|i| 1 + i % len).collect();
    let reading = Reading { is_backward: false, lengths: Some(lengths.into()) };
    let (gates, recurrent) = (numbers(batch * len * width, 7919), numbers(d * width, 104_729));
    let (start, bias) = (numbers(batch * d, 31), numbers(d, 17));
    let layer = Recurrence {
        kind,
        reading: &reading,
        gates: &gates,
        recurrent: Matrix::new(&recurrent, d, width),
        start: &start,
        start_memory: if kind == CellKind::Lstm { &start } else { &[] },
        candidate_bias: (kind == CellKind::Gru).then_some(&bias[..]),
        attention: None,
        batch,
        len,
        d,
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().expect("threads");
    pool.install(|| {
        let (States { states, contexts, last, last_memory }, kept) = layer.forward();
        let of_states = numbers(states.len(), 13);
        let incoming = Incoming {
            states: &of_states,
            contexts: &[],
            last: &start,
            last_memory: if kind == CellKind::Lstm { &start } else { &[] },
            made_states: &states,
            made_contexts: &contexts,
        };
        let found = layer.backward(&kept, &incoming);
        vec![
            states.clone(),
            last,
            last_memory,
            found.gates,
            found.recurrent,
            found.start,
            found.start_memory,
            found.candidate_bias,
        ]
    })
}

#[test]
fn however_many_cores_share_out_the_sentences_the_numbers_are_the_same() {
    for kind in [CellKind::Vanilla, CellKind::Gru, CellKind::Lstm] {
        // Fewer sentences than cores, as many as one task takes at most, and more.
        for batch in [1, 3, 16, 37] {
            let alone = made(kind, batch, 1);
            assert!(alone[0].iter().any(|value| *value != 0.0));
            for n_threads in [2, 5, 16] {
                assert_eq!(made(kind, batch, n_threads), alone, "{kind:?}, {batch} sentences, {n_threads} threads");
            }
        }
    }
}
