//! What recurrences keep: shares by hand, as products of factors, and as what becomes of a change.

use super::map;
use crate::support::{assert_close, closed_form_tensor, flex, with_closed_form};
use crate::training::{assert_says, fail, read, succeed};
use burn::tensor::Tensor;
use lookback::data::tokenizer::{TokenizerConfig, WordConfig};
use lookback::data::{EOS, Pair, Tokenizers};
use lookback::kernels::recurrence::Reading;
use lookback::layers::attention::AttentionConfig;
use lookback::layers::mixer::{Gating, LinearRecurrence, MatrixMemory, MixerKind, Mixers, Rule, SideConfig};
use lookback::layers::position::PositionConfig;
use lookback::layers::{Init, Pass, Trace};
use lookback::models::weights::to_vec;
use lookback::models::{
    DecoderOnlyConfig, EncoderOnlyConfig, Model, ModelConfig, RnnConfig, Seq2Seq, TransformerConfig, Vocabularies,
};
use lookback::report::attention::collect::{Written, collect};
use lookback::report::attention::memory::{MemorySummary, shares, summarize};
use lookback::report::attention::{AttentionMap, Part, SentenceMaps};
use serde_json::Value;
use tempfile::TempDir;

/// Products of a few numbers in 32 bits.
const TOLERANCE: f64 = 1e-5;
/// Differences of states of a size of about one in 32 bits.
const DIFFERENCE_TOLERANCE: f64 = 1e-5;

const EXACT: [MixerKind; 5] =
    [MixerKind::MinGru, MixerKind::MinLstm, MixerKind::Ssru, MixerKind::RgLru, MixerKind::GatedLinear];
const GATINGS: [Gating; 4] = [Gating::MinGru, Gating::MinLstm, Gating::Ssru, Gating::RgLru];

#[test]
fn shares_by_hand() {
    let found = shares(&[0.5, 0.1, 0.5, 0.2, 0.25, 0.4], 3);
    // Of the first token (0.5 + 0.2) / 2 is left at the second, (0.125 + 0.08) / 2 at the third.
    assert_close("shares", &found, &[1.0, 0.0, 0.0, 0.35, 1.0, 0.0, 0.1025, 0.325, 1.0], 1e-7);
    assert!(shares(&[], 0).is_empty());
}

#[test]
fn what_is_kept_as_numbers() {
    let kept = |part, weights: &[f32]| map(part, [1, 1], 3, weights);
    let forward = kept(Part::Memory, &[1.0, 0.0, 0.0, 0.5, 1.0, 0.0, 0.25, 0.75, 1.0]);
    let found = MemorySummary::of(&forward);
    assert_close("tokens", &[found.tokens], &[4.5 / 3.0], 1e-9);
    assert_eq!(found.left, [Some(0.625), None, None, None]);
    let backward = kept(Part::EncoderMemoryBackward, &[1.0, 0.5, 0.25, 0.0, 1.0, 0.75, 0.0, 0.0, 1.0]);
    assert_eq!(MemorySummary::of(&backward).left, [Some(0.625), None, None, None]);
    // Attention has numbers of its own.
    let sentence = SentenceMaps { maps: vec![forward, map(Part::Decoder, [1, 1], 1, &[1.0])], ..super::sentence() };
    assert_eq!(summarize(std::slice::from_ref(&sentence)).len(), 1);
    assert_eq!(lookback::report::attention::measure::summarize(&[sentence]).len(), 1);
}

/// The mean over the last axis.
fn mean(difference: Tensor<3>) -> Vec<f32> {
    to_vec(difference.mean_dim(2))
}

#[test]
fn what_is_changed_of_a_state_comes_to_the_share_later() {
    let (device, len, delta) = (flex(), 6, 0.5);
    for gating in GATINGS {
        for is_backward in [false, true] {
            let layer = with_closed_form(LinearRecurrence::new(gating, 5, 7, &Init::new(1, &device)), 0.4);
            let input = closed_form_tensor("input", [1, len, 5], 1.0, &device);
            let reading = || Reading { is_backward, lengths: None };
            let mut trace = Trace::default();
            let start = Tensor::zeros([1, 7], &device);
            let states = layer.states(input.clone(), start, reading(), &mut Pass::traced(&mut trace));
            let mut kept: Vec<&[f32]> = trace.get("kept").unwrap().values.chunks(7).collect();
            if is_backward {
                kept.reverse();
            }
            let shares = shares(&kept.concat(), len);
            for j in 0..len - 1 {
                // What the token has written is in the state after it; the others go on from there.
                let (place, from, n) =
                    if is_backward { (len - 1 - j, 0, len - 1 - j) } else { (j, j + 1, len - 1 - j) };
                let changed = states.clone().narrow(1, place, 1).squeeze_dim::<2>(1).add_scalar(delta);
                let rest = input.clone().narrow(1, from, n);
                let after = layer.states(rest, changed, reading(), &mut Pass::inference());
                let mut left = mean((after - states.clone().narrow(1, from, n)).div_scalar(delta));
                if is_backward {
                    left.reverse();
                }
                let expected: Vec<f32> = (j + 1..len).map(|t| shares[t * len + j]).collect();
                let what = format!("{gating:?}, backward {is_backward}, token {j}");
                assert_close(&what, &left, &expected, DIFFERENCE_TOLERANCE);
                assert!(expected.iter().all(|share| *share > 0.0 && *share < 1.0), "{what}: {expected:?}");
            }
        }
    }
}

#[test]
fn what_is_changed_of_a_matrix_comes_to_the_share_later() {
    let (device, len, delta) = (flex(), 5, 0.5);
    let layer = with_closed_form(MatrixMemory::new(Rule::GatedLinear, 6, 2, false, &Init::new(1, &device)), 0.4);
    let input = closed_form_tensor("input", [1, len, 6], 1.0, &device);
    let mut trace = Trace::default();
    layer.advance(input.clone(), Reading::default(), &mut None, &mut Pass::traced(&mut trace));
    let kept = trace.get("kept").unwrap();
    assert_eq!(kept.shape, [1, 2, len, 3]);
    let after = |from: usize, n: usize, mut state: Option<Tensor<4>>| {
        layer.advance(input.clone().narrow(1, from, n), Reading::default(), &mut state, &mut Pass::inference());
        state.unwrap()
    };
    for j in 0..len - 1 {
        let written = after(0, j + 1, None);
        for t in j + 1..len {
            let plain = after(j + 1, t - j, Some(written.clone()));
            let changed = after(j + 1, t - j, Some(written.clone().add_scalar(delta)));
            let left = to_vec((changed - plain).div_scalar(delta).reshape([2, 9]).mean_dim(1));
            let share = |head: usize| shares(&kept.values[head * len * 3..][..len * 3], len)[t * len + j];
            assert_close(&format!("{j} at {t}"), &left, &[share(0), share(1)], DIFFERENCE_TOLERANCE);
        }
    }
}

fn tokenizers() -> Tokenizers {
    let pairs = [Pair::new("a b c d e", "a b c d e")];
    Tokenizers::train(&pairs, &TokenizerConfig::Word(WordConfig::default())).unwrap()
}

fn decoder_only(mixer: MixerKind, reads_source: bool) -> ModelConfig {
    ModelConfig::DecoderOnly(DecoderOnlyConfig {
        d_model: 8,
        d_feed_forward: 12,
        n_heads: 2,
        n_layers: 2,
        mixer: Mixers::from(mixer),
        reads_source,
        positions: PositionConfig::None {},
        ..DecoderOnlyConfig::default()
    })
}

fn model(config: &ModelConfig) -> Model {
    config.init(Vocabularies { source: 9, target: 9, shared: true }, 3, &flex()).unwrap()
}

/// The factors that a forward pass leaves behind, one head's after the other: `[len, width]` each.
fn factors(model: &Model, written: &Written, name: &str, width: usize) -> Vec<Vec<Vec<f32>>> {
    let source: Vec<u32> = if written.first.is_some() { vec![] } else { [&written.source[..], &[EOS]].concat() };
    let padded = |ids: Vec<u32>| lookback::data::batch::Padded::new(&[ids], 0, &flex());
    let mut trace = Trace::default();
    model.forward(&padded(source), &padded(written.input()), &mut Pass::traced(&mut trace));
    let entry = trace.get(name).unwrap();
    let len = entry.shape[entry.shape.len() - 2];
    entry.values.chunks(len * width).map(|head| head.chunks(width).map(<[f32]>::to_vec).collect()).collect()
}

/// `mean_c prod_k a_k[c]` over the positions `range`.
fn product(factors: &[Vec<f32>], range: std::ops::Range<usize>) -> f64 {
    let width = factors[0].len();
    let of = |c: usize| range.clone().map(|k| f64::from(factors[k][c])).product::<f64>();
    (0..width).map(of).sum::<f64>() / width as f64
}

fn assert_products(map: &AttentionMap, factors: &[Vec<f32>], what: &str) {
    let n = map.n_rows;
    assert_eq!((n, map.n_columns), (factors.len(), factors.len()), "{what}");
    let is_backward = map.part == Part::EncoderMemoryBackward;
    let expected: Vec<f64> = (0..n * n)
        .map(|i| match (i / n, i % n) {
            (t, j) if is_backward && t <= j => product(factors, t..j),
            (t, j) if !is_backward && j <= t => product(factors, j + 1..t + 1),
            _ => 0.0,
        })
        .collect();
    assert_close(what, &map.weights, &expected, TOLERANCE);
    assert!(map.row(n / 2)[n / 2] == 1.0 && expected.iter().any(|share| *share > 0.0 && *share < 1.0), "{what}");
}

#[test]
fn maps_are_products_of_the_factors_of_a_forward_pass() {
    let tokenizers = tokenizers();
    let pair = Written { number: 1, source: vec![4, 5, 6], target: vec![7, 8, EOS], ..Written::default() };
    let text = Written { number: 1, first: Some(EOS), target: vec![4, 5, 6, 7, EOS], ..Written::default() };
    let tags = Written { target: vec![4, 5, 6, EOS], ..pair.clone() };
    for mixer in EXACT {
        let (n_heads, width) = if mixer == MixerKind::GatedLinear { (2, 4) } else { (1, 8) };
        let check = |config: &ModelConfig, written: &Written, part: Part, place: &str, labels: &[&str]| {
            let model = model(config);
            let found = collect(&model, &tokenizers, written).unwrap();
            let maps: Vec<&AttentionMap> = found.part(part).collect();
            assert_eq!(maps.len(), 2 * n_heads, "{mixer:?}, {part:?}");
            assert_eq!(found.rows(part), labels, "{mixer:?}, {part:?}");
            for (i, map) in maps.iter().enumerate() {
                let what = format!("{mixer:?}, {}", map.name());
                let name = place.replace('#', &(i / n_heads).to_string());
                let factors = factors(&model, written, &name, width).swap_remove(i % n_heads);
                assert_eq!(map.head.is_some(), n_heads > 1, "{what}");
                assert_products(map, &factors, &what);
            }
        };
        let forward = "decoder.#.recurrence.forward.kept";
        check(&decoder_only(mixer, false), &text, Part::Memory, forward, &["</s>", "a", "b", "c", "d"]);
        let joined = ["a", "b", "c", "</s>", "<s>", "d", "e"];
        check(&decoder_only(mixer, true), &pair, Part::Memory, forward, &joined);
        let encoder_only = ModelConfig::EncoderOnly(EncoderOnlyConfig {
            d_model: 8,
            d_feed_forward: 12,
            n_heads: 2,
            n_layers: 2,
            mixer: Mixers::from(mixer),
            positions: PositionConfig::None {},
            ..EncoderOnlyConfig::default()
        });
        let (source, place) = (["a", "b", "c", "</s>"], "encoder.#.recurrence.");
        check(&encoder_only, &tags, Part::EncoderMemory, &format!("{place}forward.kept"), &source);
        check(&encoder_only, &tags, Part::EncoderMemoryBackward, &format!("{place}backward.kept"), &source);
        let both = ModelConfig::Transformer(TransformerConfig {
            d_model: 8,
            d_feed_forward: 12,
            n_heads: 2,
            n_encoder_layers: 2,
            n_decoder_layers: 2,
            mixer: Mixers::from(mixer),
            positions: PositionConfig::None {},
            ..TransformerConfig::default()
        });
        check(&both, &pair, Part::EncoderMemory, &format!("{place}forward.kept"), &source);
        check(&both, &pair, Part::Memory, forward, &["<s>", "d", "e"]);
        if mixer.has_vector() {
            let under = |reverse_source| {
                ModelConfig::Rnn(RnnConfig {
                    d_embedding: 6,
                    d_hidden: 8,
                    n_layers: 2,
                    encoder: SideConfig { mixer: Some(mixer.into()) },
                    attention: AttentionConfig::bahdanau(5),
                    reverse_source,
                    ..RnnConfig::default()
                })
            };
            check(&under(false), &pair, Part::EncoderMemory, &format!("{place}forward.kept"), &source);
            check(&under(false), &pair, Part::EncoderMemoryBackward, &format!("{place}backward.kept"), &source);
            // Read in another order than that of the words, a map would have to be read in another way.
            let reversed = collect(&model(&under(true)), &tokenizers, &pair).unwrap();
            assert_eq!(reversed.part(Part::EncoderMemory).count(), 0, "{mixer:?}");
        }
    }
}

#[test]
fn where_nothing_fades_by_a_factor_there_is_no_map() {
    let text = Written { number: 1, first: Some(EOS), target: vec![4, 5, EOS], ..Written::default() };
    for mixer in MixerKind::RECURRENT.into_iter().filter(|mixer| !EXACT.contains(mixer)) {
        let error = collect(&model(&decoder_only(mixer, false)), &tokenizers(), &text).unwrap_err().to_string();
        assert_says(
            &error,
            &["no attention", "gates that see the state", "delta rules", "linear attention forgets nothing"],
        );
    }
}

const TEXT: &str = r#"
backend = "flex"
[data]
hold_out_per_mille = 100
[data.text]
train = ["verse.txt"]
context = 12
[tokenizer]
kind = "char"
[model]
kind = "decoder-only"
reads_source = false
d_model = 8
d_feed_forward = 12
n_heads = 2
n_layers = 2
mixer = { kind = "min-gru" }
positions = { kind = "none" }
[training]
max_updates = 2
batch_tokens = 60
"#;

#[test]
fn what_is_kept_goes_into_every_kind_of_file() {
    let dir = TempDir::new().unwrap();
    std::fs::write(dir.path().join("text.toml"), TEXT).unwrap();
    std::fs::write(dir.path().join("verse.txt"), "abcdef\ngabe\n".repeat(30)).unwrap();
    std::fs::write(dir.path().join("in.txt"), "abcdef\ngabe\n").unwrap();
    succeed(dir.path(), &["train", "text.toml", "--run", "run"]);
    let inspect = |rest: &[&str]| {
        succeed(dir.path(), &[&["inspect", "attention", "--run", "run", "--input", "in.txt"], rest].concat())
    };
    for name in ["m.html", "m.svg", "m.png", "m.csv", "m.safetensors"] {
        let shown = inspect(&["--out", name]);
        assert_says(&shown, &["what is kept", "memory                       1     -"]);
        assert!(!shown.contains("looks at"), "there is no head: {shown}");
    }
    let csv = read(dir.path().join("m.csv"));
    // Two layers over seven tokens of the first line and five of the second.
    assert_eq!(csv.lines().count(), 1 + 2 * (28 + 15));
    assert!(csv.lines().any(|line| line.starts_with("1,memory,2,,6,6,\"f\",\"f\",1,")), "{csv}");
    assert_says(&read(dir.path().join("m.svg")), &["What the state keeps of each token: every layer", "(share)"]);
    assert_says(&read(dir.path().join("m.html")), &["a row does not sum to one", "keeps "]);
    inspect(&["--part", "memory", "--layer", "2", "--out", "one.svg"]);
    assert_says(&read(dir.path().join("one.svg")), &["What the state keeps of each token, layer 2", "state after"]);
    let json: Value = serde_json::from_str(&inspect(&["--json"])).unwrap();
    assert_eq!((json["heads"].as_array().map(Vec::len), json["memories"].as_array().map(Vec::len)), (Some(0), Some(2)));
    let memory = &json["memories"][0];
    assert_eq!((memory["part"].as_str(), memory["left"][3].is_null()), (Some("memory"), true));
    assert!(memory["left"][1].as_f64() < memory["left"][0].as_f64() && memory["tokens"].as_f64() > Some(1.0));
    let refused = fail(
        dir.path(),
        &["inspect", "attention", "--run", "run", "--input", "in.txt", "--part", "decoder", "--out", "x.svg"],
    );
    assert_says(&refused, &["this model has no decoder attention"]);
}
