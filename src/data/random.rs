//! The random numbers behind generated data and shuffling.
//!
//! A generator is a pure function of (seed, purpose, index), so nothing has to be saved to go on where a run stopped,
//! and no draw for one purpose moves the draws for another. The numbers are fixed forever and the same on every
//! platform: generated data sets and shuffles depend on them, and a test pins them.

use crate::random::{GAMMA, mix};

/// A hash of bytes that never changes (64-bit FNV-1a, then the finalizer of SplitMix64). Not for security.
pub fn hash(bytes: &[u8]) -> u64 {
    mix(bytes.iter().fold(0xcbf2_9ce4_8422_2325, |h, &b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)))
}

/// The generator for the `index`-th use of `purpose` under `seed`.
///
/// Equal arguments give equal numbers on every platform and in every version of the program; different arguments give
/// unrelated ones.
pub fn stream(seed: u64, purpose: &str, index: u64) -> Rng {
    let purpose = mix(mix(seed.wrapping_add(GAMMA)) ^ hash(purpose.as_bytes()));
    Rng { key: mix(purpose.wrapping_add(index.wrapping_mul(GAMMA))), counter: 0 }
}

/// A counter-based generator: the n-th number is `mix(key + n GAMMA)`.
///
/// # Reference
///
/// Steele, Lea and Flood, *Fast Splittable Pseudorandom Number Generators*, OOPSLA 2014 (SplitMix64), as in the paper
/// with the usual constants of the 64-bit variant. Not for security.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rng {
    key: u64,
    counter: u64,
}

impl Rng {
    /// The next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.counter = self.counter.wrapping_add(1);
        mix(self.key.wrapping_add(self.counter.wrapping_mul(GAMMA)))
    }

    /// A number from 0 to `n - 1`, each equally likely (Lemire's multiplication with rejection).
    ///
    /// # Panics
    ///
    /// When `n` is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        assert!(n > 0, "below: n must be positive");
        let threshold = n.wrapping_neg() % n;
        loop {
            let product = u128::from(self.next_u64()) * u128::from(n);
            if product as u64 >= threshold {
                return (product >> 64) as u64;
            }
        }
    }

    /// A whole number from `low` to `high`, both included, each equally likely.
    ///
    /// # Panics
    ///
    /// When `low` exceeds `high`.
    pub fn between(&mut self, low: usize, high: usize) -> usize {
        assert!(low <= high, "between: {low} exceeds {high}");
        match (high - low).checked_add(1) {
            Some(n) => low + self.below(n as u64) as usize,
            None => self.next_u64() as usize,
        }
    }

    /// A number in [0, 1) with 53 random bits.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// One of `items`, each equally likely.
    ///
    /// # Panics
    ///
    /// When `items` is empty.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len() as u64) as usize]
    }

    /// Puts `items` into a random order, every order equally likely (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }

    /// `n` different numbers below `bound`, every selection and order equally likely (Floyd's algorithm, then a shuffle).
    ///
    /// # Panics
    /// If there are not so many.
    pub fn distinct(&mut self, n: usize, bound: usize) -> Vec<usize> {
        assert!(n <= bound, "there are no {n} different numbers below {bound}");
        let mut chosen = std::collections::BTreeSet::new();
        for top in bound - n..bound {
            let candidate = self.between(0, top);
            if !chosen.insert(candidate) {
                chosen.insert(top);
            }
        }
        let mut chosen: Vec<usize> = chosen.into_iter().collect();
        self.shuffle(&mut chosen);
        chosen
    }
}
