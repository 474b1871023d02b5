//! Where the norm of a sublayer stands, in words.

use crate::models::TransformerConfig;
use crate::models::transformer::NormPosition;

/// `norm(x)` where a sublayer's input is normalized.
pub(super) fn before(config: &TransformerConfig, x: &str) -> String {
    match config.norm_position {
        NormPosition::Pre => format!("norm({x})"),
        NormPosition::Post => x.to_owned(),
    }
}

/// `x + f`, normalized where a sublayer's output is.
pub(super) fn after(config: &TransformerConfig, x: &str, f: &str) -> String {
    match config.norm_position {
        NormPosition::Pre => format!("{x} + {f}"),
        NormPosition::Post => format!("norm({x} + {f})"),
    }
}

/// What becomes of the output of a sublayer.
pub(super) fn added(config: &TransformerConfig, what: &str) -> String {
    match config.norm_position {
        NormPosition::Pre => format!("{what}, projected and added to the layer's vector"),
        NormPosition::Post => format!("{what}, projected, added to the layer's vector, then normalized"),
    }
}
