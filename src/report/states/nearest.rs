//! Which vectors lie nearest to each, in all dimensions.

use super::words::cosine;
use rayon::prelude::*;

/// More vectors than this are not compared: the time grows with their square.
const MOST: usize = 4000;

/// The `n` nearest others of each vector by cosine, nearest first, as places and cosines; the mean of all is taken off first, since they
/// share most of it. Empty where there are too many.
pub fn nearest(vectors: &[&[f32]], n: usize) -> Vec<Vec<(usize, f64)>> {
    if vectors.len() > MOST {
        return Vec::new();
    }
    let moved = centred(vectors);
    let of = |i: usize| {
        let others = (0..moved.len()).filter(|j| *j != i);
        let mut found: Vec<(usize, f64)> = others.map(|j| (j, cosine(&moved[i], &moved[j]))).collect();
        found.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        found.truncate(n);
        found
    };
    (0..moved.len()).into_par_iter().map(of).collect()
}

/// The vectors without their mean.
pub(super) fn centred(vectors: &[&[f32]]) -> Vec<Vec<f32>> {
    let Some(first) = vectors.first() else { return Vec::new() };
    let mut centre = vec![0.0; first.len()];
    for vector in vectors {
        centre.iter_mut().zip(*vector).for_each(|(sum, value)| *sum += value / vectors.len() as f32);
    }
    vectors.iter().map(|vector| vector.iter().zip(&centre).map(|(x, c)| x - c).collect()).collect()
}
