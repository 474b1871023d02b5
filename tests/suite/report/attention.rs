//! Attention maps: what is collected of a model, what is measured, chosen and written.

use super::{map, sentence};
use crate::support::{flex, golden, host_backends};
use lookback::data::batch::Padded;
use lookback::data::tokenizer::{TokenizerConfig, WordConfig};
use lookback::data::{EOS, Pair, Tokenizers};
use lookback::layers::position::PositionConfig;
use lookback::layers::{Pass, Trace};
use lookback::models::weights::{from_safetensors, to_vec};
use lookback::models::{EncoderOnlyConfig, Model, ModelConfig, Seq2Seq, TransformerConfig, Vocabularies};
use lookback::report::attention::collect::{Written, collect};
use lookback::report::attention::measure::{Measures, coverage, summarize};
use lookback::report::attention::select::{Choice, Selection};
use lookback::report::attention::{AttentionMap, Part, files, html};
use std::path::Path;

/// Tokenizers with at least as many words as any golden model.
fn tokenizers() -> Tokenizers {
    let words: Vec<String> = (0..60).map(|i| format!("w{i:02}")).collect();
    let pairs = [Pair::new(words.join(" "), words.join(" "))];
    Tokenizers::train(&pairs, &TokenizerConfig::Word(WordConfig::default())).unwrap()
}

fn written(source: &[u32], target: &[u32]) -> Written {
    let target = target.iter().copied().chain([EOS]).collect();
    Written { number: 1, source_text: String::new(), source: source.to_vec(), first: None, target }
}

#[test]
fn an_answer_as_long_as_the_model_can_number_is_looked_at_without_an_end_symbol() {
    let positions = PositionConfig::Learned { max_len: 5 };
    let config = TransformerConfig { d_model: 8, d_feed_forward: 8, n_heads: 2, positions, ..Default::default() };
    let vocabularies = Vocabularies { source: 64, target: 64, shared: true };
    let model = ModelConfig::Transformer(config).init(vocabularies, 1, &flex()).unwrap();
    let maps = collect(&model, &tokenizers(), &written(&[4, 5, 6], &[4, 5, 6, 7, 8])).unwrap();
    assert_eq!(maps.target, ["w00", "w01", "w02", "w03", "w04"]);
}

#[test]
fn a_traced_pass_gives_the_same_logits_to_the_last_bit() {
    for adapter in host_backends() {
        for case in &golden().models {
            let model: Model = case.model(&adapter.device);
            let source = Padded::new(&case.source, 0, &adapter.device);
            let input = Padded::new(&case.target_input, 0, &adapter.device);
            let plain = to_vec(model.forward(&source, &input, &mut Pass::inference()));
            let mut trace = Trace::default();
            let traced = to_vec(model.forward(&source, &input, &mut Pass::traced(&mut trace)));
            let same = plain.iter().zip(&traced).all(|(a, b)| a.to_bits() == b.to_bits());
            assert!(same && plain.len() == traced.len(), "{} on {}", case.name, adapter.backend);
            assert!(!trace.entries.is_empty(), "{} records nothing", case.name);
        }
    }
}

/// Golden models without anything that could be drawn, beside those with a fixed context.
const WITHOUT_ATTENTION: [&str; 8] = [
    "mixers/under-gru-rg-lru",
    "decoder-only/gru",
    "decoder-only/lstm",
    "decoder-only/gated-delta",
    "decoder-only/linear",
    "encoder-only/lstm",
    "encoder-only/lstm-causal-class",
    "encoder-only/gru-forward",
];

#[test]
fn rows_of_every_model_sum_to_one_and_nothing_looks_at_padding_or_the_future() {
    let (device, tokenizers) = (crate::support::flex(), tokenizers());
    let mut without: Vec<&str> = Vec::new();
    for case in &golden().models {
        let model = case.model(&device);
        let Ok(found) = collect(&model, &tokenizers, &written(&[4, 5, 6, 4, 7], &[5, 6, 4])) else {
            without.push(&case.name);
            continue;
        };
        assert_eq!((found.source.len(), found.target.len()), (6, 4), "{}", case.name);
        assert!(found.probabilities.iter().all(|p| *p > 0.0 && *p < 1.0), "{}", case.name);
        for map in found.maps.iter().filter(|map| map.part.is_memory()) {
            for i in 0..map.n_rows {
                let seen = map.part.seen(i, map.n_columns);
                let is_share =
                    |(j, share): (usize, &f32)| if seen.contains(&j) { *share <= 1.0 } else { *share == 0.0 };
                assert!(map.row(i).iter().enumerate().all(is_share), "{} {}", case.name, map.name());
                assert_eq!(map.row(i)[i], 1.0, "{} {}: nothing has faded yet", case.name, map.name());
            }
        }
        for map in found.maps.iter().filter(|map| !map.part.is_memory()) {
            let (rows, columns) = (found.rows(map.part).len(), found.columns(map.part).len());
            assert_eq!((map.n_rows, map.n_columns), (rows, columns), "{} {}", case.name, map.name());
            for i in 0..map.n_rows {
                let mut sum: f32 = map.row(i).iter().sum();
                if case.name.starts_with("decoder-only") {
                    // One softmax over source and target, shown in two maps.
                    let other = if map.part == Part::Cross { Part::Decoder } else { Part::Cross };
                    let is_rest =
                        |rest: &&AttentionMap| (rest.part, rest.layer, rest.head) == (other, map.layer, map.head);
                    let rest = found.maps.iter().find(is_rest).expect("the other part of the head");
                    sum += rest.row(i).iter().sum::<f32>();
                }
                // The Gaussian of local-p multiplies what the softmax has normalized.
                let is_whole = if case.name.contains("local-p") { sum < 1.0 + 1e-5 } else { (sum - 1.0).abs() < 1e-5 };
                assert!(is_whole, "{} {} row {i} sums to {sum}", case.name, map.name());
                if map.part == Part::Decoder {
                    assert!(map.row(i)[i + 1..].iter().all(|weight| *weight == 0.0), "{} sees its future", case.name);
                }
            }
        }
    }
    let has_none = |name: &&str| name.contains("fixed") || WITHOUT_ATTENTION.contains(name);
    let expected: Vec<&str> = golden().models.iter().map(|case| case.name.as_str()).filter(has_none).collect();
    assert_eq!(without, expected);
}

#[test]
fn a_trace_keeps_only_what_was_asked_for() {
    let case = &golden().models[0];
    let model = case.model(&crate::support::flex());
    let mut trace = Trace::of(|name| name == "encoder.output");
    model.encode(&Padded::new(&case.source, 0, &crate::support::flex()), &mut Pass::traced(&mut trace));
    let names: Vec<&str> = trace.entries.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, ["encoder.output"]);
}

#[test]
fn numbers_of_a_head_by_hand() {
    // Rows look at the position before; the first at itself.
    let previous = Measures::of(&map(Part::Decoder, [1, 1], 3, &[1., 0., 0., 1., 0., 0., 0., 1., 0.]));
    assert_eq!((previous.entropy, previous.previous, previous.same), (0.0, 1.0, 1.0 / 3.0));
    assert!((previous.distance - 2.0 / 3.0).abs() < 1e-9);
    assert_eq!(previous.looks_at(Part::Decoder, true), "previous token");

    let uniform = Measures::of(&map(Part::Encoder, [1, 1], 2, &[0.5; 4]));
    assert!((uniform.entropy - 2f64.ln()).abs() < 1e-7 && (uniform.relative_entropy - 1.0).abs() < 1e-7);
    assert_eq!((uniform.diagonality, uniform.distance, uniform.next), (0.0, 0.5, 0.5));

    let diagonal = Measures::of(&map(Part::Cross, [1, 1], 3, &[1., 0., 0., 0., 1., 0., 0., 0., 1.]));
    assert!((diagonal.diagonality - 1.0).abs() < 1e-9 && diagonal.distance == 0.0);
    assert_eq!(diagonal.looks_at(Part::Cross, true), "diagonal");
    let mirrored = Measures::of(&map(Part::Cross, [1, 1], 3, &[0., 0., 1., 0., 1., 0., 1., 0., 0.]));
    assert!((mirrored.diagonality + 1.0).abs() < 1e-9);
    assert_eq!(mirrored.looks_at(Part::Cross, true), "anti-diagonal");

    assert_eq!(coverage(&sentence().maps[0]), [0.25, 0.75, 1.0]);
    let heads = summarize(&[sentence(), sentence()]);
    assert_eq!(heads.len(), 3);
    assert_eq!(heads[0].measures, Measures::of(&sentence().maps[0]), "the mean of two equal sentences");
}

#[test]
fn an_encoder_that_sees_no_future_is_measured_by_what_it_sees() {
    // Each row looks at all that it may see alike.
    let n = 12;
    let weight = |i: usize, j: usize| if j <= i { 1.0 / (i + 1) as f32 } else { 0.0 };
    let weights: Vec<f32> = (0..n * n).map(|place| weight(place / n, place % n)).collect();
    let causal = AttentionMap { is_causal: true, ..map(Part::Encoder, [1, 1], n, &weights) };
    let measures = Measures::of(&causal);
    // The first row has no choice.
    assert!((measures.relative_entropy - 11.0 / 12.0).abs() < 1e-6, "{measures:?}");
    assert_eq!(measures.looks_at(Part::Encoder, true), "broadly");
    assert_eq!((causal.seen(2), map(Part::Encoder, [1, 1], n, &weights).seen(2)), (0..3, 0..n));
    for is_causal in [false, true] {
        let config =
            EncoderOnlyConfig { d_model: 8, d_feed_forward: 8, n_heads: 2, is_causal, ..EncoderOnlyConfig::default() };
        let vocabularies = Vocabularies { source: 64, target: 64, shared: false };
        let model = ModelConfig::EncoderOnly(config).init(vocabularies, 1, &flex()).unwrap();
        let found = collect(&model, &tokenizers(), &written(&[4, 5, 6], &[4, 5, 6])).unwrap();
        assert!(!found.maps.is_empty());
        assert!(found.maps.iter().all(|map| map.part == Part::Encoder && map.is_causal == is_causal));
    }
}

#[test]
fn the_entropy_of_a_part_of_a_row_is_that_of_a_whole_one() {
    // Half of the weight falls on the source, and nothing of the second row.
    let part = Measures::of(&map(Part::Cross, [1, 1], 2, &[0.25, 0.25, 0.0, 0.0]));
    assert!((part.entropy - 2f64.ln() / 2.0).abs() < 1e-9, "{part:?}");
    assert!((part.relative_entropy - 0.5).abs() < 1e-9, "{part:?}");
    let whole = Measures::of(&map(Part::Cross, [1, 1], 2, &[0.5, 0.5, 1.0, 0.0]));
    assert_eq!((part.entropy, part.relative_entropy), (whole.entropy, whole.relative_entropy));
}

#[test]
fn layers_and_heads_are_chosen_and_averaged() {
    let sentence = sentence();
    let choose = |part, layer, head| Selection { part, layer, head }.apply(&sentence);
    let average = choose(Some(Part::Cross), Choice::All, Choice::Average).unwrap();
    assert_eq!(average.len(), 1);
    assert_eq!((average[0].layer, average[0].head), (Some(1), None));
    assert_eq!(average[0].weights, [0.5, 0.5, 0.0, 0.25, 0.0, 0.75]);
    assert_eq!(choose(None, Choice::One(1), Choice::One(2)).unwrap().len(), 1);
    assert_eq!(choose(None, Choice::All, Choice::All).unwrap().len(), 3);
    for (found, says) in [
        (choose(None, Choice::One(2), Choice::All), "--layer 2: there are maps of one layer, 1"),
        (choose(Some(Part::Encoder), Choice::All, Choice::All), "this model has no encoder attention"),
    ] {
        assert!(found.unwrap_err().to_string().starts_with(says));
    }
    assert!("0".parse::<Choice>().is_err() && "some".parse::<Choice>().is_err());
}

#[test]
fn csv_has_every_visible_weight_with_its_tokens() {
    let sentence = sentence();
    let text = files::csv(&[(&sentence, sentence.maps.clone())]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "sentence,part,layer,head,row,column,row_token,column_token,weight");
    assert_eq!(lines[2], "3,cross,1,1,0,1,\"dog\",\"<Hund>\",0.75");
    // Two maps of six weights, and three that the decoder can see.
    assert_eq!(lines.len(), 1 + 6 + 6 + 3);
    assert_eq!(lines[15], "3,decoder,1,1,1,1,\"dog\",\"dog\",0.5");
}

#[test]
fn safetensors_have_every_map_by_name_and_the_tokens() {
    let sentence = sentence();
    let bytes = files::safetensors(&[(&sentence, sentence.maps.clone())]).unwrap();
    let tensors = from_safetensors(&bytes, Path::new("maps")).unwrap();
    assert_eq!(tensors.keys().collect::<Vec<_>>(), ["3.cross.1.1", "3.cross.1.2", "3.decoder.1.1"]);
    assert_eq!((tensors["3.cross.1.2"].shape.as_slice(), tensors["3.cross.1.2"].values[3]), (&[2, 3][..], 0.5));
    let (_, header) = safetensors::SafeTensors::read_metadata(&bytes).unwrap();
    let metadata = header.metadata().as_ref().unwrap();
    assert_eq!(metadata["3.cross.columns"], r#"["ein","<Hund>","</s>"]"#);
    assert_eq!(metadata["3.decoder.rows"], r#"["<s>","dog"]"#);
}

#[test]
fn the_page_is_one_file_that_loads_nothing() {
    let sentence = sentence();
    let heads = summarize(std::slice::from_ref(&sentence));
    let page = html::page("Maps & more", "a <model>", &[sentence], &heads, &maud::html! { h2 { "extra" } }).render();
    for part in
        ["<!DOCTYPE html>", "<title>Maps &amp; more</title>", "a &lt;model&gt;", "<h2>extra</h2>", "default-src 'none'"]
    {
        assert!(page.contains(part), "{part} is missing");
    }
    // The name of SVG looks like an address and is none.
    let own = page.replace("http://www.w3.org/2000/svg", "");
    for part in ["http:", "https:", "<link rel=\"stylesheet\"", "src=", "@import", "{{"] {
        assert!(!own.contains(part), "{part} is there");
    }
    for tag in ["html", "head", "body", "main", "style", "title", "table"] {
        let count = |text: &str| page.matches(text).count();
        assert_eq!(
            count(&format!("<{tag}")) - usize::from(tag == "head") * count("<header"),
            count(&format!("</{tag}>")),
            "{tag}"
        );
    }
    // A token cannot end the script that holds the data.
    assert!(page.contains(r"\u003cHund>") && !page.contains("\"<Hund>\""));
}
