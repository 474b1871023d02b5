//! Gates of recurrences without a product at each step.

/// How much faster than its gate RG-LRU forgets: `c` of the paper.
pub const RG_LRU_SPEED: f64 = 8.0;
/// What RG-LRU's `1 - a^2` is at least, so that its root has a gradient.
pub const RG_LRU_FLOOR: f32 = 1e-6;

/// Which gates make `a_t` and `b_t` of `h_t = a_t * h_(t-1) + b_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gating {
    /// Gates packed as (z, x): `a = 1 - sigmoid(z)`, `b = sigmoid(z) g(x)`.
    MinGru,
    /// Gates packed as (f, i, x): `a = sigmoid(f) / (sigmoid(f) + sigmoid(i))`, `b = (1 - a) g(x)`.
    MinLstm,
    /// Gates packed as (f, x): `a = sigmoid(f)`, `b = (1 - a) x`; what others see is `relu(h)`.
    Ssru,
    /// Gates packed as (r, i, x): `a = sigmoid(L)^(8 sigmoid(r))`, `b = sqrt(1 - a^2) sigmoid(i) x`.
    RgLru,
}

impl Gating {
    /// How many matrices are packed side by side.
    pub fn n_gates(self) -> usize {
        match self {
            Self::MinGru | Self::Ssru => 2,
            Self::MinLstm | Self::RgLru => 3,
        }
    }
}
