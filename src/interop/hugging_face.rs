//! Folders of Hugging Face's transformers: `config.json`, `model.safetensors` or `pytorch_model.bin`, and a tokenizer.

use crate::error::{Error, Result};
use crate::layers::feed_forward::Activation;
use crate::models::weights::{Weight, Weights, floats};
use pytorch_reader::{DType, PytorchReader};
use safetensors::Dtype;
use safetensors::tensor::{SafeTensors, TensorView};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

const SAFETENSORS: &str = "model.safetensors";
const PYTORCH: &str = "pytorch_model.bin";

/// A folder with a model.
pub(super) struct Folder {
    path: PathBuf,
}

/// The tokens of a byte-level BPE by id, and its merges.
pub(super) struct BytePairs {
    /// Those that were added too.
    pub(super) tokens: HashMap<usize, String>,
    pub(super) merges: Vec<(String, String)>,
    pub(super) added: Vec<AddedToken>,
}

/// A token that is found whole in a text, before the rest is cut.
#[derive(Deserialize)]
pub(super) struct AddedToken {
    pub(super) id: usize,
    pub(super) content: String,
    #[serde(default)]
    single_word: bool,
    #[serde(default)]
    lstrip: bool,
    #[serde(default)]
    rstrip: bool,
}

impl AddedToken {
    /// The setting by which it is found in other places than those where it stands, or takes the spaces around it.
    pub(super) fn special_rule(&self) -> Option<&'static str> {
        let rules = [(self.single_word, "single_word"), (self.lstrip, "lstrip"), (self.rstrip, "rstrip")];
        rules.into_iter().find(|(is_set, _)| *is_set).map(|(_, name)| name)
    }
}

/// A merge in either form in which files have it.
#[derive(Deserialize)]
#[serde(untagged)]
enum Merge {
    Text(String),
    Pair(String, String),
}

impl Merge {
    fn pair(self) -> Option<(String, String)> {
        match self {
            Self::Pair(left, right) => Some((left, right)),
            Self::Text(text) => text.split_once(' ').map(|(left, right)| (left.into(), right.into())),
        }
    }
}

impl Folder {
    pub(super) fn open(path: &Path) -> Result<Self> {
        if !path.is_dir() {
            return Err(Error::file(path, "is no folder; give the one with config.json"));
        }
        Ok(Self { path: path.to_path_buf() })
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// A file of JSON.
    pub(super) fn json(&self, name: &str) -> Result<serde_json::Value> {
        let fault = |error| Error::file(self.file(name), format!("is no JSON: {error}"));
        serde_json::from_slice(&self.read(name)?).map_err(fault)
    }

    fn read(&self, name: &str) -> Result<Vec<u8>> {
        let path = self.file(name);
        std::fs::read(&path).map_err(Error::io(&path))
    }

    /// The config, if it is one of a `model_type`.
    pub(super) fn config<T: DeserializeOwned>(&self, model_type: &str) -> Result<T> {
        let file = self.file("config.json");
        let fault = |error: serde_json::Error| Error::file(&file, format!("is no config of such a model: {error}"));
        let value: serde_json::Value = serde_json::from_slice(&self.read("config.json")?).map_err(fault)?;
        match value["model_type"].as_str() {
            Some(found) if found == model_type => serde_json::from_value(value).map_err(fault),
            found => {
                let found = found.unwrap_or("nothing");
                Err(Error::file(&file, format!("says model_type = \"{found}\", and this reads \"{model_type}\"")))
            }
        }
    }

    /// The parameters by name.
    pub(super) fn weights(&self) -> Result<Weights> {
        let file = self.weights_file();
        let is_in_parts = |name: &str| self.file(&format!("{name}.index.json")).is_file();
        if !file.is_file() && (is_in_parts(SAFETENSORS) || is_in_parts(PYTORCH)) {
            let message = "has its parameters in several files; save_pretrained(max_shard_size=\"100GB\") writes one";
            return Err(Error::file(&self.path, message));
        }
        match file.ends_with(PYTORCH) {
            true => of_pytorch(&file),
            false => of_safetensors(&self.read(SAFETENSORS)?, &file),
        }
    }

    /// Where the parameters are: model.safetensors, or pytorch_model.bin where there is nothing else.
    pub(super) fn weights_file(&self) -> PathBuf {
        let file = self.file(SAFETENSORS);
        match !file.is_file() && self.file(PYTORCH).is_file() {
            true => self.file(PYTORCH),
            false => file,
        }
    }

    /// The added tokens of a `tokenizer.json`.
    pub(super) fn added_tokens_of(&self, tokenizer: &serde_json::Value) -> Result<Vec<AddedToken>> {
        let fault = |error| {
            let message = format!("has added_tokens that are not as the library tokenizers writes them: {error}");
            Error::file(self.file("tokenizer.json"), message)
        };
        match &tokenizer["added_tokens"] {
            serde_json::Value::Null => Ok(Vec::new()),
            added => Vec::<AddedToken>::deserialize(added).map_err(fault),
        }
    }

    /// The added tokens beside a vocabulary that is a file of its own: `added_tokens.json`, if it is there.
    pub(super) fn added_tokens(&self) -> Result<Vec<AddedToken>> {
        const NAME: &str = "added_tokens.json";
        if !self.file(NAME).is_file() {
            return Ok(Vec::new());
        }
        let fault = |error| Error::file(self.file(NAME), format!("is no table of ids by token: {error}"));
        let ids: HashMap<String, usize> = serde_json::from_value(self.json(NAME)?).map_err(fault)?;
        let plain = |(content, id)| AddedToken { id, content, single_word: false, lstrip: false, rstrip: false };
        Ok(ids.into_iter().map(plain).collect())
    }

    /// The tokenizer, from `tokenizer.json`, or from `vocab.json`, `merges.txt` and `added_tokens.json`.
    pub(super) fn byte_pairs(&self) -> Result<BytePairs> {
        let by_id =
            |vocabulary: HashMap<String, usize>| vocabulary.into_iter().map(|(token, id)| (id, token)).collect();
        let file = self.file("tokenizer.json");
        if file.is_file() {
            let fault = |fault: &str| Error::file(&file, format!("is no byte-level BPE, as GPT-2 has: {fault}"));
            let mut whole: serde_json::Value =
                serde_json::from_slice(&self.read("tokenizer.json")?).map_err(|error| fault(&error.to_string()))?;
            if whole["model"]["type"] != "BPE" || whole["decoder"]["type"] != "ByteLevel" {
                return Err(fault("model.type or decoder.type is another"));
            }
            let cutter = &whole["pre_tokenizer"];
            if cutter["type"] != "ByteLevel" || cutter["add_prefix_space"] == true || cutter["use_regex"] == false {
                return Err(fault("pre_tokenizer cuts words in another way"));
            }
            if !whole["normalizer"].is_null() {
                return Err(fault("it has a normalizer"));
            }
            let mut tokens: HashMap<usize, String> = by_id(
                serde_json::from_value(whole["model"]["vocab"].take()).map_err(|error| fault(&error.to_string()))?,
            );
            let added = self.added_tokens_of(&whole)?;
            tokens.extend(added.iter().map(|added| (added.id, added.content.clone())));
            let merges: Vec<Merge> =
                serde_json::from_value(whole["model"]["merges"].take()).map_err(|error| fault(&error.to_string()))?;
            let merges = merges.into_iter().map(Merge::pair).collect::<Option<Vec<_>>>();
            return Ok(BytePairs { tokens, merges: merges.ok_or_else(|| fault("a merge is no pair"))?, added });
        }
        let fault = |file: &Path, error: &dyn std::fmt::Display| Error::file(file, format!("cannot be read: {error}"));
        let vocabulary = serde_json::from_slice(&self.read("vocab.json")?)
            .map_err(|error| fault(&self.file("vocab.json"), &error))?;
        let mut tokens: HashMap<usize, String> = by_id(vocabulary);
        let added = self.added_tokens()?;
        tokens.extend(added.iter().map(|added| (added.id, added.content.clone())));
        let file = self.file("merges.txt");
        let text = String::from_utf8(self.read("merges.txt")?).map_err(|error| fault(&file, &error))?;
        let lines = text.lines().filter(|line| !line.starts_with("#version") && !line.trim().is_empty());
        let merges = lines.map(|line| Merge::Text(line.to_string()).pair()).collect::<Option<Vec<_>>>();
        Ok(BytePairs { tokens, merges: merges.ok_or_else(|| fault(&file, &"a line is no pair"))?, added })
    }
}

/// The parameters of a file. Whole numbers and truth values, which are masks and positions, are left out.
fn of_safetensors(bytes: &[u8], file: &Path) -> Result<Weights> {
    let fault = |error| Error::file(file, format!("is not a whole safetensors file: {error}"));
    let tensors = SafeTensors::deserialize(bytes).map_err(fault)?;
    let floats_of = |(name, view): (String, TensorView)| {
        Some((name, Weight { shape: view.shape().to_vec(), values: floats(view.data(), view.dtype())? }))
    };
    Ok(tensors.tensors().into_iter().filter_map(floats_of).collect())
}

/// The same of a file of `torch.save`.
fn of_pytorch(file: &Path) -> Result<Weights> {
    let fault = |error: &dyn std::fmt::Display| Error::file(file, format!("is no file of torch.save: {error}"));
    let reader = PytorchReader::new(file).map_err(|error| fault(&error))?;
    let mut weights = Weights::new();
    for (name, tensor) in reader.tensors() {
        let kind = match tensor.dtype() {
            DType::F64 => Dtype::F64,
            DType::F32 => Dtype::F32,
            DType::F16 => Dtype::F16,
            DType::BF16 => Dtype::BF16,
            _ => continue,
        };
        let bytes = tensor.read().map_err(|error| fault(&error))?;
        let values = floats(&bytes, kind).expect("a kind of floats");
        weights.insert(name.clone(), Weight { shape: tensor.shape().to_vec(), values });
    }
    Ok(weights)
}

/// What a file of settings means where it leaves one out that is usually true.
pub(super) fn yes() -> bool {
    true
}

/// Activations by the names that configs have; those that are written stand first.
const ACTIVATIONS: [(&str, Activation); 6] = [
    ("relu", Activation::Relu),
    ("gelu", Activation::Gelu),
    ("gelu_pytorch_tanh", Activation::GeluTanh),
    ("gelu_new", Activation::GeluTanh),
    ("silu", Activation::Silu),
    ("swish", Activation::Silu),
];

/// The activation with a name.
pub(super) fn activation(name: &str) -> Option<Activation> {
    ACTIVATIONS.iter().find(|(own, _)| *own == name).map(|(_, activation)| *activation)
}

/// The name of an activation, if it has one there: those with a gate have not.
pub(super) fn activation_name(activation: Activation) -> Option<&'static str> {
    ACTIVATIONS.iter().find(|(_, own)| *own == activation).map(|(name, _)| *name)
}

/// A file of JSON, for people too.
pub(super) fn json_file(value: &serde_json::Value) -> Vec<u8> {
    (serde_json::to_string_pretty(value).expect("plain data") + "\n").into_bytes()
}

/// Takes a parameter of a shape out of `weights`.
///
/// # Errors
/// If it is not there, or has another shape.
pub(super) fn take(weights: &mut Weights, name: &str, shape: &[usize], origin: &Path) -> Result<Weight> {
    match weights.remove(name) {
        Some(weight) if weight.shape == shape => Ok(weight),
        Some(weight) => {
            Err(Error::file(origin, format!("has {name} of shape {:?} where config.json says {shape:?}", weight.shape)))
        }
        None => Err(Error::file(origin, format!("has no parameter {name}"))),
    }
}

/// Refuses a table whose axis `axis` has another length than `config.json` says under a key. A config may say any
/// number: this comes before lists of that length are made.
///
/// # Errors
/// If it is not there, or has another shape.
pub(super) fn check_len(
    weights: &Weights,
    name: &str,
    axis: usize,
    (key, len): (&str, usize),
    origin: &Path,
) -> Result<()> {
    match weights.get(name) {
        Some(table) if table.shape.get(axis) == Some(&len) => Ok(()),
        Some(table) => {
            let message = format!("has {name} of shape {:?} where config.json says {key} = {len}", table.shape);
            Err(Error::file(origin, message))
        }
        None => Err(Error::file(origin, format!("has no parameter {name}"))),
    }
}

/// A matrix with its rows as columns.
pub(super) fn transposed(matrix: &Weight) -> Weight {
    let [rows, columns] = [matrix.shape[0], matrix.shape[1]];
    let values = (0..rows * columns).map(|i| matrix.values[i % rows * columns + i / rows]).collect();
    Weight { shape: vec![columns, rows], values }
}

/// A table, or one number for each word, in our order: `order` has their number of each word.
pub(super) fn in_our_order(theirs: &Weight, order: &[usize]) -> Weight {
    let width = theirs.values.len() / theirs.shape[0];
    let values = order.iter().flat_map(|id| &theirs.values[id * width..(id + 1) * width]).copied().collect();
    Weight { shape: [&[order.len()], &theirs.shape[1..]].concat(), values }
}
