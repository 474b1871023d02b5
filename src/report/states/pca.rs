//! Principal component analysis onto two dimensions.

/// Points in the plane.
#[derive(Clone, Debug, PartialEq)]
pub struct Projection {
    /// One for each vector.
    pub points: Vec<[f64; 2]>,
    /// The part of the variance that each direction holds.
    pub explained: [f64; 2],
}

/// Iterations are stopped when a direction turns by less than this.
const TOLERANCE: f64 = 1e-13;
const MOST_ITERATIONS: usize = 1000;

/// Projects `vectors` onto the two directions of most variance, found one after the other by power iteration.
///
/// The sign of a direction is such that its largest coordinate is positive, so that the same vectors always give the same
/// picture.
///
/// # Reference
/// Pearson, On lines and planes of closest fit to systems of points in space, 1901.
pub fn project(vectors: &[&[f32]]) -> Projection {
    let width = vectors.first().map_or(0, |vector| vector.len());
    let n = vectors.len().max(1) as f64;
    let mut mean = vec![0.0; width];
    for vector in vectors {
        mean.iter_mut().zip(*vector).for_each(|(sum, value)| *sum += f64::from(*value) / n);
    }
    let mut rest: Vec<Vec<f64>> = vectors
        .iter()
        .map(|vector| vector.iter().zip(&mean).map(|(value, mean)| f64::from(*value) - mean).collect())
        .collect();
    let total: f64 = rest.iter().flatten().map(|value| value * value).sum();
    let mut points = vec![[0.0; 2]; vectors.len()];
    let mut explained = [0.0; 2];
    for axis in 0..2 {
        let Some(direction) = main_direction(&rest, width, total) else { break };
        for (vector, point) in rest.iter_mut().zip(&mut points) {
            let length = dot(vector, &direction);
            point[axis] = length;
            explained[axis] += length * length / total;
            vector.iter_mut().zip(&direction).for_each(|(value, d)| *value -= length * d);
        }
    }
    Projection { points, explained }
}

/// The unit vector along which centred `vectors` vary most; none if they do not vary.
fn main_direction(vectors: &[Vec<f64>], width: usize, total: f64) -> Option<Vec<f64>> {
    // Any start that is not orthogonal to the answer will do; this one has no symmetry.
    let mut direction: Vec<f64> = (0..width).map(|i| (1.0 + i as f64).sin()).collect();
    let norm = dot(&direction, &direction).sqrt();
    direction.iter_mut().for_each(|value| *value /= norm);
    for _ in 0..MOST_ITERATIONS {
        let mut next = vec![0.0; width];
        for vector in vectors {
            let length = dot(vector, &direction);
            next.iter_mut().zip(vector).for_each(|(sum, value)| *sum += length * value);
        }
        let norm = dot(&next, &next).sqrt();
        if norm <= total * 1e-14 {
            return None;
        }
        next.iter_mut().for_each(|value| *value /= norm);
        let turned = 1.0 - dot(&next, &direction).abs();
        direction = next;
        if turned < TOLERANCE {
            break;
        }
    }
    let largest = direction.iter().copied().fold(0.0, |a: f64, b| if b.abs() > a.abs() { b } else { a });
    direction.iter_mut().for_each(|value| *value *= largest.signum());
    Some(direction)
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
