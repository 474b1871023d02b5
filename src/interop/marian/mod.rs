//! MarianMT and OPUS-MT, of Hugging Face's transformers, in and out; and Pegasus, which is the same with norms before the sublayers.

mod export;
mod generation;
mod import;
mod taker;

pub(super) use export::files;
pub use import::import_marian;

use crate::interop::shipped::self_attention_parts;

/// What a part of a layer is.
enum Kind {
    /// Linear maps of `d_model` numbers, side by side in ours, to so many.
    FromModel(usize),
    /// A linear map of so many numbers to `d_model`.
    ToModel(usize),
    /// A normalization.
    Norm,
}

/// A part of a layer, by its name here and its names there.
struct Part {
    ours: String,
    theirs: Vec<String>,
    kind: Kind,
}

/// The parts of the layer `theirs` of a side, which is the layer `ours` here, in models of these widths.
fn parts(side: &str, theirs: usize, ours: usize, [d_model, d_inner]: [usize; 2]) -> Vec<Part> {
    let is_decoder = side == "decoder";
    let [attention, residual] = self_attention_parts(is_decoder);
    let (from, to) = (format!("model.{side}.layers.{theirs}"), format!("{side}.{ours}"));
    let part = |own: String, names: &[&str], kind| Part {
        ours: format!("{to}.{own}"),
        theirs: names.iter().map(|name| format!("{from}.{name}")).collect(),
        kind,
    };
    let projections = ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"];
    let mut all = vec![
        part(format!("{attention}.query_key_value"), &projections, Kind::FromModel(d_model)),
        part(format!("{attention}.output"), &["self_attn.out_proj"], Kind::ToModel(d_model)),
        part(format!("{residual}.norm"), &["self_attn_layer_norm"], Kind::Norm),
        part("feed_forward.inner".into(), &["fc1"], Kind::FromModel(d_inner)),
        part("feed_forward.outer".into(), &["fc2"], Kind::ToModel(d_inner)),
        part("feed_forward_residual.norm".into(), &["final_layer_norm"], Kind::Norm),
    ];
    if is_decoder {
        let cross = |own: &str| format!("cross_attention.{own}");
        all.extend([
            part(cross("query"), &["encoder_attn.q_proj"], Kind::FromModel(d_model)),
            part(cross("key_value"), &["encoder_attn.k_proj", "encoder_attn.v_proj"], Kind::FromModel(d_model)),
            part(cross("output"), &["encoder_attn.out_proj"], Kind::ToModel(d_model)),
            part("cross_residual.norm".into(), &["encoder_attn_layer_norm"], Kind::Norm),
        ]);
    }
    all
}

/// Their column for each of ours. Their sinusoids have all sines, of which an odd width has one more, before all cosines; ours have
/// them in turns. With the axis of `d_model` in the other order in every parameter the model is the same.
fn columns(d_model: usize) -> Vec<usize> {
    (0..d_model).map(|column| column / 2 + column % 2 * d_model.div_ceil(2)).collect()
}
