//! The golden files, whose layout and closed form are described at the top of `tests/golden/models.py`.

use super::closed_form_weights;
use burn::tensor::Device;
use flate2::read::GzDecoder;
use lookback::models::weights::apply;
use lookback::models::{Model, ModelConfig, Vocabularies};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::sync::LazyLock;

/// The golden files of models and layers, as one.
#[derive(Deserialize)]
pub struct Golden {
    pub models: Vec<ModelCase>,
    pub layers: Vec<LayerCase>,
}

/// A model, a batch, and what PyTorch makes of it.
#[derive(Deserialize)]
pub struct ModelCase {
    pub name: String,
    pub config: ModelConfig,
    vocabularies: GoldenVocabularies,
    /// With the end symbol.
    pub source: Vec<Vec<u32>>,
    /// With the start symbol.
    pub target_input: Vec<Vec<u32>>,
    parameter_scale: f32,
    pub parameters: BTreeMap<String, Vec<usize>>,
    pub logits_shape: [usize; 3],
    pub logits: Vec<f64>,
    pub gradients: BTreeMap<String, Vec<f64>>,
}

#[derive(Deserialize)]
struct GoldenVocabularies {
    source: usize,
    target: usize,
    shared: bool,
}

/// A layer, its inputs, and what PyTorch makes of them.
#[derive(Deserialize)]
pub struct LayerCase {
    pub name: String,
    pub layer: String,
    pub config: serde_json::Value,
    pub inputs: BTreeMap<String, GoldenInput>,
    pub parameters: BTreeMap<String, Vec<usize>>,
    pub outputs: Vec<GoldenTensor>,
    pub gradients: BTreeMap<String, Vec<f64>>,
    #[serde(default)]
    pub traced: Vec<GoldenTensor>,
}

#[derive(Deserialize)]
pub struct GoldenInput {
    pub shape: Vec<usize>,
    pub scale: f32,
}

#[derive(Deserialize)]
pub struct GoldenTensor {
    pub name: String,
    pub shape: Vec<usize>,
    pub values: Vec<f64>,
}

/// The files of one layout.
const FILES: [&str; 6] = [
    "models.json.gz",
    "positions.json.gz",
    "recurrent.json.gz",
    "mixers.json.gz",
    "decoder_only.json.gz",
    "encoder_only.json.gz",
];

static GOLDEN: LazyLock<Golden> = LazyLock::new(|| {
    let mut all = Golden { models: Vec::new(), layers: Vec::new() };
    for name in FILES {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
        let file = File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let golden: Golden =
            serde_json::from_reader(GzDecoder::new(file)).expect("a golden file has the layout of its program");
        all.models.extend(golden.models);
        all.layers.extend(golden.layers);
    }
    all
});

/// The golden values.
pub fn golden() -> &'static Golden {
    &GOLDEN
}

/// The models that write a target for a source.
pub fn golden_with_source() -> impl Iterator<Item = &'static ModelCase> {
    GOLDEN.models.iter().filter(|case| case.config.reads_source())
}

/// The model cases whose names begin with `prefix`.
pub fn golden_models(prefix: &str) -> Vec<&'static ModelCase> {
    let cases: Vec<_> = GOLDEN.models.iter().filter(|case| case.name.starts_with(prefix)).collect();
    assert!(!cases.is_empty(), "no golden model begins with {prefix}");
    cases
}

impl ModelCase {
    /// The golden model on `device`, for inference.
    pub fn model(&self, device: &Device) -> Model {
        let model = self.config.init(self.vocabularies(), 1, device).expect("a golden config is valid");
        let weights = closed_form_weights(&self.parameters, self.parameter_scale);
        apply(model, &weights, Path::new("the golden file")).unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    /// The sizes of the vocabularies.
    pub fn vocabularies(&self) -> Vocabularies {
        let GoldenVocabularies { source, target, shared } = self.vocabularies;
        Vocabularies { source, target, shared }
    }

    /// The positions of the logits that stand for real target words, row-major.
    pub fn is_real(&self) -> Vec<bool> {
        let [_, target_len, vocab_size] = self.logits_shape;
        let rows = self.target_input.iter().map(Vec::len);
        rows.flat_map(|len| (0..target_len * vocab_size).map(move |i| i / vocab_size < len)).collect()
    }
}

impl LayerCase {
    /// A number of the layer's config.
    pub fn number(&self, key: &str) -> usize {
        self.config[key].as_u64().unwrap_or_else(|| panic!("{} has no {key}", self.name)) as usize
    }

    /// The lengths of the layer's config, if it has any.
    pub fn lengths(&self) -> Option<Vec<usize>> {
        serde_json::from_value(self.config["lengths"].clone()).expect("lengths are whole numbers or null")
    }

    /// A choice of the layer's config, such as its cell.
    pub fn choice<T: for<'a> Deserialize<'a>>(&self, key: &str) -> T {
        serde_json::from_value(self.config[key].clone()).unwrap_or_else(|error| panic!("{}: {key}: {error}", self.name))
    }
}
