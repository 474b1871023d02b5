//! Attention of a recurrent decoder: every score and every window, against the papers' equations and by hand.

mod by_hand;
mod laws;

use super::{Outputs, check_golden, golden_layers, named};
use crate::support::{check_quotients, closed_form_tensor, flex, with_closed_form};
use burn::module::Module;
use lookback::layers::attention::{Alignment, AttentionConfig, ScoreConfig, WindowConfig};
use lookback::layers::{Init, Pass};
use lookback::models::weights::collect;

/// Every score, for sources of up to `max_source_len` tokens.
pub fn scores(max_source_len: usize) -> [ScoreConfig; 7] {
    [
        ScoreConfig::Dot {},
        ScoreConfig::ScaledDot {},
        ScoreConfig::General {},
        ScoreConfig::Additive { d_attention: 3 },
        ScoreConfig::Concat { d_attention: 3 },
        ScoreConfig::Cosine {},
        ScoreConfig::Location { max_source_len },
    ]
}

/// Every window.
pub fn windows(half_width: usize) -> [WindowConfig; 3] {
    [WindowConfig::Global {}, WindowConfig::LocalM { half_width }, WindowConfig::LocalP { half_width }]
}

#[test]
fn every_score_with_every_window_is_the_papers_forward_and_backward() {
    for case in golden_layers("alignment") {
        let (score, window): (ScoreConfig, WindowConfig) = (case.choice("score"), case.choice("window"));
        let (lengths, steps) = (case.lengths().expect("a source has a length"), case.choice::<Vec<usize>>("steps"));
        let [d_query, d_value] = ["d_query", "d_value"].map(|key| case.number(key));
        let build = |init: &Init| Alignment::new(&score, &window, d_query, d_value, init);
        check_golden(case, build, |layer, inputs, pass| {
            let memory = layer.prepare(inputs.get::<3>("values"), &lengths, pass);
            let context = layer.forward(inputs.get::<3>("query"), &steps, &memory, pass);
            Outputs::from([named("context", context)])
        });
    }
}

/// As [`Alignment`] is named in an attention layer.
#[derive(Module, Debug)]
struct Named {
    alignment: Alignment,
}

#[test]
fn additive_attention_is_bahdanaus_for_every_beam() {
    for case in golden_layers("bahdanau") {
        let score = ScoreConfig::Additive { d_attention: case.number("d_attention") };
        let lengths = case.lengths().expect("a source has a length");
        let [d_query, d_value, beams] = ["d_query", "d_value", "beams"].map(|key| case.number(key));
        let build =
            |init: &Init| Named { alignment: Alignment::new(&score, &WindowConfig::Global {}, d_query, d_value, init) };
        check_golden(case, build, |layer, inputs, pass| {
            let memory = layer.alignment.prepare(inputs.get::<3>("values"), &lengths, pass);
            let query = inputs.get::<2>("query").reshape([lengths.len(), beams, d_query]);
            Outputs::from([named("context", layer.alignment.forward(query, &[0], &memory, pass))])
        });
    }
}

#[test]
fn gradients_of_every_score_and_window_are_difference_quotients() {
    for (score, window) in scores(7).iter().flat_map(|score| windows(2).map(|window| (score.clone(), window))) {
        let what = format!("{score:?}, {window:?}");
        let layer = Alignment::new(&score, &window, 5, 5, &Init::new(1, &flex()));
        if collect(&layer).is_empty() {
            continue;
        }
        check_quotients(&what, with_closed_form(layer, 2.0), |layer, device| {
            let [query, values] =
                [("query", 3), ("values", 7)].map(|(path, len)| closed_form_tensor(path, [3, len, 5], 4.0, device));
            let mut pass = Pass::inference();
            let memory = layer.prepare(values, &[7, 2, 4], &pass);
            layer.forward(query, &[0, 1, 5], &memory, &mut pass)
        });
    }
}

#[test]
fn no_attention_is_no_layer() {
    assert!(AttentionConfig::None {}.init(7, 11, 3, &Init::new(1, &flex())).is_none());
}
