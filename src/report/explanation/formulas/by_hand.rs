//! The formulas of one attention without a model.

use super::{Mechanism, Part, line, softmax};
use crate::layers::attention::ScoreConfig;

/// The lines of an attention whose queries, keys and values are given, or made of vectors by matrices: `is_projected` says which of
/// the three. Keys are `h_i`, as the states of an encoder, or `x_i` where a sequence looks at itself; values that are not the keys
/// are `v_i`.
pub(crate) fn of_attention(
    score: &ScoreConfig,
    d_query: usize,
    is_self: bool,
    has_values: bool,
    is_projected: &[bool; 3],
) -> Mechanism {
    let (source, whose) = if is_self { ("x", "the sequence") } else { ("h", "the source") };
    let [query, key, value] = *is_projected;
    let key_name = if key { "k_i".to_owned() } else { format!("{source}_i") };
    let value_name = if value || has_values && !is_self { "v_i".to_owned() } else { format!("{source}_i") };
    let asked = match (query, is_self) {
        (true, true) => ("q_t = W^Q x_t", "the query is made of the position itself"),
        (true, false) => ("q_t = W^Q s_t", "the query is made of what is given"),
        (false, true) => ("q_t = x_t", "the query is the position itself"),
        (false, false) => ("q_t = s_t", "the query is given, such as the state of a decoder"),
    };
    let mut formulas = vec![line("query", asked.0, asked.1)];
    let made: Vec<String> = [(key, "k_i = W^K"), (value, "v_i = W^V")]
        .iter()
        .filter(|(is_made, _)| *is_made)
        .map(|(_, text)| format!("{text} {source}_i"))
        .collect();
    if !made.is_empty() {
        formulas.push(line("memory", made.join(", "), format!("what is looked at, made of each position of {whose}")));
    }
    let (text, meaning) = match score {
        ScoreConfig::ScaledDot {} => (
            format!("e_ti = q_t . {key_name} / sqrt({d_query})"),
            "the dot product, scaled so that wide vectors keep it small",
        ),
        ScoreConfig::General {} => (format!("e_ti = q_t . W {key_name}"), "the dot product after a change of space"),
        ScoreConfig::Additive { .. } | ScoreConfig::Concat { .. } => {
            (format!("e_ti = v . tanh(W q_t + U {key_name})"), "a small network scores both vectors")
        }
        ScoreConfig::Cosine {} => (format!("e_ti = cos(q_t, {key_name})"), "the angle alone, not the lengths"),
        ScoreConfig::Dot {} | ScoreConfig::Location { .. } => {
            (format!("e_ti = q_t . {key_name}"), "the score of position i: the dot product")
        }
    };
    formulas.push(line("score", text, meaning));
    formulas.push(softmax(&format!("the positions of {whose}")));
    formulas.push(line("context", format!("c_t = sum_i a_ti {value_name}"), "the weighted sum of what is looked at"));
    let formulas = formulas.into_iter().map(|formula| formula.of(Part::CrossAttention)).collect();
    Mechanism { title: "One attention by hand".into(), formulas, has_attention: true, ..Mechanism::default() }
}
