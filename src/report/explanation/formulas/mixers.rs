//! The formulas of mixers that are no attention.

use super::sublayer::{added, after, before};
use super::{Formula, line};
use crate::layers::mixer::{MixerConfig, MixerKind};
use crate::models::TransformerConfig;
use crate::models::transformer::NormPosition;

/// The lines of a mixer at position `t` of the decoder: its state, and what it adds to the layer's vector.
pub(super) fn recurrence(config: &TransformerConfig, own: &MixerConfig, layers: &str) -> Vec<Formula> {
    let mut lines = cell(own, ["x_t^(n-1)", "x_(t-j)^(n-1)"].map(|x| before(config, x)), layers);
    let seen = seen(own.kind);
    let is_projected = own.expansion() > 1 || is_matrix(own.kind);
    let term = if is_projected { format!("W^O {seen} + b^O") } else { seen.to_owned() };
    let text = format!("u_t = {}", after(config, "x_t^(n-1)", &term));
    let meaning = match (is_projected, config.norm_position) {
        (true, _) => added(config, "what the layer has read"),
        (false, NormPosition::Pre) => "what the layer has read, added to the layer's vector".to_owned(),
        (false, NormPosition::Post) => {
            "what the layer has read, added to the layer's vector, then normalized".to_owned()
        }
    };
    lines.push(line("residual", text, meaning));
    lines
}

/// The lines of a recurrence that reads a source of which `x_i` is a vector, after the one at `before`.
pub(super) fn of_encoder(own: &MixerConfig, before: &str, layers: &str) -> Vec<Formula> {
    let further = if before == "i+1" { "x_(t+j)" } else { "x_(t-j)" };
    let mut lines = cell(own, ["x_t".to_owned(), further.to_owned()], layers);
    for line in &mut lines {
        line.text = line.text.replace("(t-1)", &format!("({before})")).replace("(t", "(i").replace("_t", "_i");
    }
    lines
}

/// A convolution over `further`, if there is one, and the state made of `x`.
fn cell(own: &MixerConfig, [x, further]: [String; 2], layers: &str) -> Vec<Formula> {
    let of_layers = |meaning: &str| match layers.trim_start() {
        "" => meaning.to_owned(),
        layers => format!("{layers}: {meaning}"),
    };
    let mut lines = Vec::new();
    if let Some(width) = own.convolution {
        let text = format!("c_t = sum_(j < {width}) w_j * {further}");
        lines.push(line("cell", text, of_layers(&format!("a convolution over the last {width} positions"))));
    }
    let x = if own.convolution.is_some() { "c_t" } else { &x };
    lines.extend(equations(own, x).into_iter().map(|(text, meaning)| line("cell", text, of_layers(meaning))));
    lines
}

/// Whether the state is a matrix for each head.
fn is_matrix(kind: MixerKind) -> bool {
    matches!(kind, MixerKind::Linear | MixerKind::GatedLinear | MixerKind::Delta | MixerKind::GatedDelta)
}

/// What a layer shows of its state.
fn seen(kind: MixerKind) -> &'static str {
    match kind {
        MixerKind::Ssru => "relu(m_t)",
        kind if is_matrix(kind) => "o_t",
        _ => "m_t",
    }
}

/// How a state is made of the one before, line by line, with what each line means.
fn equations(own: &MixerConfig, x: &str) -> Vec<(String, &'static str)> {
    let gate = |name: &str, letter: &str| format!("{name} = sigmoid(W_{letter} {x} + b_{letter})");
    let packed = |what: &str| format!("q_t, k_t, v_t = {what}");
    match own.kind {
        MixerKind::Attention => Vec::new(),
        MixerKind::Vanilla => vec![(format!("m_t = tanh(W {x} + b + U m_(t-1))"), "the new state")],
        MixerKind::Gru => vec![(format!("m_t = GRU({x}, m_(t-1))"), "the new state")],
        MixerKind::Lstm => vec![(format!("m_t = LSTM({x}, m_(t-1))"), "the new state")],
        MixerKind::MinGru => vec![
            (gate("z_t", "z"), "how much is new; it does not see the state"),
            (
                format!("m_t = (1 - z_t) * m_(t-1) + z_t * g(W_h {x} + b_h)"),
                "the new state; g(y) = y + 1/2, or sigmoid(y) below 0",
            ),
        ],
        MixerKind::MinLstm => vec![
            (gate("f_t", "f"), "how much is kept; it does not see the state"),
            (gate("i_t", "i"), "how much is taken in"),
            (
                format!("m_t = (f_t * m_(t-1) + i_t * g(W_h {x} + b_h)) / (f_t + i_t)"),
                "the new state; g(y) = y + 1/2, or sigmoid(y) below 0",
            ),
        ],
        MixerKind::Ssru => vec![
            (gate("f_t", "f"), "how much is kept; it does not see the state"),
            (format!("m_t = f_t * m_(t-1) + (1 - f_t) * (W {x} + b)"), "the new state"),
        ],
        MixerKind::RgLru => vec![
            (gate("r_t", "r"), "how fast is forgotten"),
            (gate("i_t", "i"), "how much is taken in"),
            ("a_t = sigmoid(L)^(8 r_t)".to_owned(), "how much is kept"),
            (format!("m_t = a_t * m_(t-1) + sqrt(1 - a_t^2) * i_t * (W {x} + b)"), "the new state"),
        ],
        MixerKind::Linear => vec![
            (packed(&format!("elu(W^Q {x} + b^Q) + 1, elu(W^K {x} + b^K) + 1, W^V {x} + b^V")), "query, key and value"),
            ("S_t = S_(t-1) + k_t v_t^T".to_owned(), "the memory takes up the key with its value"),
            ("o_t = S_t^T q_t / sum_(i <= t) k_i . q_t".to_owned(), "what it has for the query"),
        ],
        MixerKind::GatedLinear => vec![
            (packed(&format!("W^Q {x} + b^Q, W^K {x} + b^K, W^V {x} + b^V")), "query, key and value"),
            (format!("a_t = sigmoid(W_a {x} + b_a)^(1/16)"), "how much of each row of the memory is kept"),
            ("S_t = diag(a_t) S_(t-1) + k_t v_t^T".to_owned(), "the memory takes up the key with its value"),
            (format!("o_t = norm(S_t^T q_t) * silu(W_g {x} + b_g)"), "what it has for the query, through a gate"),
        ],
        MixerKind::Delta | MixerKind::GatedDelta => {
            let most = if own.negative_eigenvalues == Some(true) { "2 " } else { "" };
            let is_gated = own.kind == MixerKind::GatedDelta;
            let (memory, asked, read) = match is_gated {
                true => ("a_t S_(t-1)", "(a_t S_(t-1))^T", format!(" * silu(W_g {x} + b_g)")),
                false => ("S_(t-1)", "S_(t-1)^T", String::new()),
            };
            let mut lines = vec![(
                packed(&format!("unit(silu(W^Q {x} + b^Q)), unit(silu(W^K {x} + b^K)), silu(W^V {x} + b^V)")),
                "query and key of length 1, and value",
            )];
            if is_gated {
                lines.push((format!("a_t = exp(-exp(A) softplus(w_a . {x} + c))"), "how much of the memory is kept"));
            }
            lines.push((format!("b_t = {most}sigmoid(w_b . {x} + b_b)"), "how much of the key's place is replaced"));
            let write = format!("S_t = {memory} + b_t k_t (v_t - {asked} k_t)^T");
            lines.push((write, "the memory replaces what it had for the key"));
            lines.push((format!("o_t = norm(S_t^T q_t){read}"), "what it has for the query"));
            lines
        }
    }
}
