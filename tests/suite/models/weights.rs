//! Parameters by path: collected, applied, averaged, saved and loaded.

use crate::support::{flex, golden, golden_models, host_backends};
use lookback::data::batch::Padded;
use lookback::layers::Pass;
use lookback::models::weights::{Mean, Weight, Weights, apply, collect, from_safetensors, to_safetensors, to_vec};
use lookback::models::{Model, Seq2Seq};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// A golden model with other initial weights.
fn fresh(case: &crate::support::ModelCase) -> Model {
    case.config.init(case.vocabularies(), 9, &flex()).expect("a golden config is valid")
}

fn fault(model: Model, weights: &Weights) -> String {
    match apply(model, weights, Path::new("run/weights.safetensors")) {
        Ok(_) => panic!("these weights were taken"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn weights_that_were_saved_and_loaded_are_the_same_to_the_bit() {
    for adapter in host_backends() {
        for case in &golden().models {
            let what = format!("{} on {}", case.name, adapter.backend);
            let model = case.model(&adapter.device);
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("weights.safetensors");
            let metadata = HashMap::from([("updates".to_string(), "7".to_string())]);
            let bytes = to_safetensors(&collect(&model), &BTreeMap::new(), metadata).expect("weights can be written");
            std::fs::write(&path, bytes).expect("the folder can be written");

            let bytes = std::fs::read(&path).expect("it was written");
            let loaded = from_safetensors(&bytes, &path).expect("it was written whole");
            assert_eq!(loaded, collect(&model), "{what}");
            let other = case.config.init(case.vocabularies(), 9, &adapter.device).expect("a golden config is valid");
            assert_ne!(collect(&other), loaded, "{what}: another seed");
            let restored = apply(other, &loaded, &path).expect("the same model");
            let logits = |model: &Model| {
                let source = Padded::new(&case.source, 0, &adapter.device);
                let target = Padded::new(&case.target_input, 0, &adapter.device);
                to_vec(model.forward(&source, &target, &mut Pass::inference()))
            };
            assert_eq!(logits(&restored), logits(&model), "{what}");
        }
    }
}

#[test]
fn the_seed_decides_the_initial_weights_on_every_backend() {
    for case in &golden().models {
        let all: Vec<Weights> = host_backends()
            .iter()
            .map(|adapter| {
                let model =
                    case.config.init(case.vocabularies(), 9, &adapter.device).expect("a golden config is valid");
                collect(&model)
            })
            .collect();
        assert!(all.iter().all(|weights| *weights == all[0]), "{}", case.name);
    }
}

#[test]
fn weights_of_another_model_are_refused_with_the_reason() {
    let case = golden_models("transformer/")[0];
    let right = collect(&fresh(case));

    let mut weights = right.clone();
    weights.remove("decoder_norm.beta");
    let message = fault(fresh(case), &weights);
    assert_eq!(message, "run/weights.safetensors: has no parameter decoder_norm.beta; it belongs to another model");

    let mut weights = right.clone();
    weights.get_mut("decoder_norm.beta").expect("a pre-norm model").shape = vec![5, 2];
    let message = fault(fresh(case), &weights);
    assert_eq!(message, "run/weights.safetensors: has decoder_norm.beta of shape [5, 2] where the model needs [10]");

    for broken in [f32::NAN, f32::INFINITY] {
        let mut weights = right.clone();
        weights.get_mut("decoder_norm.beta").expect("a pre-norm model").values[3] = broken;
        let message = fault(fresh(case), &weights);
        assert_eq!(message, "run/weights.safetensors: has a value in decoder_norm.beta that is not finite");
    }

    let mut weights = right.clone();
    weights.insert("decoder_norm.delta".to_string(), right["decoder_norm.beta"].clone());
    let message = fault(fresh(case), &weights);
    let n = right.len();
    assert_eq!(message, format!("run/weights.safetensors: has {} parameters where the model has {n}", n + 1));
}

#[test]
fn a_file_that_was_cut_short_is_refused() {
    let weights = collect(&fresh(golden_models("rnn/")[0]));
    let bytes = to_safetensors(&weights, &BTreeMap::new(), HashMap::new()).expect("weights can be written");
    for len in [0, 7, bytes.len() / 2, bytes.len() - 1] {
        let message = from_safetensors(&bytes[..len], Path::new("w")).expect_err("it is cut").to_string();
        assert!(message.starts_with("w: is not a whole safetensors file"), "{len} bytes: {message}");
    }
}

#[test]
fn floats_of_every_size_are_read_and_other_numbers_refused() {
    let file = |kind: &str, number: &[u8]| {
        let n = number.len();
        let header = format!(r#"{{"a.weight":{{"dtype":"{kind}","shape":[1],"data_offsets":[0,{n}]}}}}"#);
        [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), number].concat()
    };
    // -1.5: sign, exponent and the first bit behind the point.
    for (kind, number) in [
        ("F64", &(-1.5f64).to_le_bytes()[..]),
        ("F32", &(-1.5f32).to_le_bytes()),
        ("F16", &0xbe00u16.to_le_bytes()),
        ("BF16", &0xbfc0u16.to_le_bytes()),
    ] {
        let weights = from_safetensors(&file(kind, number), Path::new("w")).unwrap();
        assert_eq!(weights["a.weight"], Weight { shape: vec![1], values: vec![-1.5] }, "{kind}");
    }
    let message = from_safetensors(&file("I64", &[0; 8]), Path::new("w")).expect_err("whole numbers").to_string();
    assert_eq!(message, "w: has a.weight as I64; only F64, F32, F16, BF16 and I8 are read");
}

#[test]
fn matrices_in_8_bits_need_scales_that_fit() {
    let weights =
        BTreeMap::from([("a".to_string(), Weight { shape: vec![2, 3], values: vec![1.0, -2.0, 3.0, 4.0, 5.0, -6.0] })]);
    let scales = |shape: Vec<usize>, values: Vec<f32>| BTreeMap::from([("a".to_string(), Weight { shape, values })]);
    let read = |scales: &BTreeMap<String, Weight>| {
        let bytes = to_safetensors(&weights, scales, HashMap::new()).unwrap();
        from_safetensors(&bytes, Path::new("w"))
    };
    // Whole multiples of the scales come back as they were, by column and by row.
    for scales in [scales(vec![1, 3], vec![1.0, 1.0, 3.0]), scales(vec![2, 1], vec![1.0, 1.0])] {
        assert_eq!(read(&scales).unwrap(), weights);
    }
    let rounded = &read(&scales(vec![1, 3], vec![4.0, 1.0, 1.0])).unwrap()["a"];
    assert_eq!(rounded.values, [0.0, -2.0, 3.0, 4.0, 5.0, -6.0], "a quarter of the scale is rounded to none of it");
    let message = read(&scales(vec![1, 6], vec![1.0; 6])).unwrap_err().to_string();
    assert_eq!(message, "w: has a in 8 bits without scales that fit its shape [2, 3]");
}

fn mean_of(sets: &[Weights]) -> Weights {
    let mut mean = Mean::default();
    sets.iter().for_each(|set| mean.add(set.clone()));
    assert_eq!(mean.n(), sets.len());
    mean.finish()
}

#[test]
fn an_average_is_the_mean_of_every_element() {
    let case = golden_models("rnn/")[0];
    let sets: Vec<Weights> = [1, 2, 3]
        .map(|seed| collect(&case.config.init(case.vocabularies(), seed, &flex()).expect("a golden config is valid")))
        .to_vec();
    let mean = mean_of(&sets);
    assert_eq!(mean.len(), sets[0].len());
    for (path, weight) in &mean {
        for (i, value) in weight.values.iter().enumerate() {
            let expected = sets.iter().map(|set| set[path].values[i] as f64).sum::<f64>() / 3.0;
            assert_eq!(*value, expected as f32, "{path}[{i}]");
        }
    }
    assert_eq!(mean_of(&sets[..1]), sets[0]);
}
