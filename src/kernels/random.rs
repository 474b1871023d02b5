//! Randomness as a function of (seed, purpose, counters), never as hidden state.
//!
//! The generators of burn's backends cannot be saved, and they differ from backend to backend. Everything random here is
//! therefore computed from counters: the same seed and update give the same dropout masks and initial weights on every
//! machine, however many threads work on them, and a resumed run needs no generator state.

/// What the random numbers are for; each purpose has numbers of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The initial weights.
    Initialization = 1,
    /// Dropout masks.
    Dropout = 2,
    /// The order of training examples.
    Shuffle = 4,
    /// Sampling in decoding.
    Sampling = 3,
    /// Which words a decoder in training reads from itself.
    InputReplacement = 5,
    /// Which words of a text are hidden.
    Masking = 6,
    /// Which positions tokens are given.
    Positions = 7,
    /// Of which part of a large text vocabularies are made.
    TokenizerSample = 8,
}

/// A stream of random numbers that are addressed by position instead of drawn in order.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    key: u64,
}

/// The odd constant that SplitMix64 counts with: 2^64 divided by the golden ratio.
pub const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// What [`mix`] multiplies by.
pub const MIX_FACTORS: [u64; 2] = [0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb];

/// The finalizer of SplitMix64 (Steele, Lea and Flood 2014): a bijection that scatters every input bit over the output. A generator
/// that counts its state up by [`GAMMA`] and returns this of it is SplitMix64 itself.
#[inline(always)]
pub fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(MIX_FACTORS[0]);
    z = (z ^ (z >> 27)).wrapping_mul(MIX_FACTORS[1]);
    z ^ (z >> 31)
}

impl Stream {
    /// The stream that belongs to `seed`, `purpose` and `counters`.
    pub fn new(seed: u64, purpose: Purpose, counters: &[u64]) -> Self {
        let mut key = mix(seed ^ 0x6a09_e667_f3bc_c908);
        for part in std::iter::once(&(purpose as u64)).chain(counters) {
            key = mix(key.wrapping_add(GAMMA) ^ mix(part.wrapping_add(0x3c6e_f372_fe94_f82b)));
        }
        Self { key }
    }

    /// What tells this stream from others.
    pub fn key(&self) -> u64 {
        self.key
    }

    /// The 64 random bits at `position`.
    #[inline(always)]
    pub fn bits(&self, position: u64) -> u64 {
        mix(self.key.wrapping_add(position.wrapping_mul(GAMMA)))
    }

    /// A number in `[0, 1)` at `position`.
    pub fn unit(&self, position: u64) -> f64 {
        (self.bits(position) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A standard normal number at `position` (Box-Muller).
    pub fn normal(&self, position: u64) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit(2 * position)).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit(2 * position + 1)).cos()
    }

    /// `n` different numbers below `range`, rising; all sets of them are equally likely (Floyd's algorithm).
    ///
    /// # Panics
    /// If there are not so many.
    pub fn sample(&self, range: usize, n: usize) -> Vec<usize> {
        assert!(n <= range, "there are {range} numbers, not {n}");
        let mut chosen = std::collections::BTreeSet::new();
        for last in range - n..range {
            let draw = (self.bits(last as u64) % (last as u64 + 1)) as usize;
            if !chosen.insert(draw) {
                chosen.insert(last);
            }
        }
        chosen.into_iter().collect()
    }
}
