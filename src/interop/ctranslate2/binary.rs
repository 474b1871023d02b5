//! The file `model.bin`: variables by name.

use crate::models::weights::Weight;
use std::collections::BTreeMap;

/// The version of the format, and that of the description of Transformers in it.
const BINARY_VERSION: u32 = 6;
const REVISION: u32 = 7;

/// A variable of the file.
struct Variable {
    shape: Vec<usize>,
    values: Values,
}

pub(super) enum Values {
    F32(Vec<f32>),
    I8(Vec<i8>),
    I16(i16),
    I32(i32),
}

impl Values {
    /// The number of the kind, in the order of `include/ctranslate2/types.h`.
    fn kind(&self) -> u8 {
        match self {
            Self::F32(_) => 0,
            Self::I8(_) => 1,
            Self::I16(_) => 2,
            Self::I32(_) => 3,
        }
    }

    fn bytes(&self) -> Vec<u8> {
        match self {
            Self::F32(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
            Self::I8(values) => values.iter().map(|value| *value as u8).collect(),
            Self::I16(value) => value.to_le_bytes().to_vec(),
            Self::I32(value) => value.to_le_bytes().to_vec(),
        }
    }
}

/// The variables of a model by name, and names that stand for another.
pub(super) struct Variables {
    all: BTreeMap<String, Variable>,
    aliases: BTreeMap<String, String>,
    /// Whether matrices are written in 8 bits.
    int8: bool,
}

impl Variables {
    pub(super) fn new(int8: bool) -> Self {
        Self { all: BTreeMap::new(), aliases: BTreeMap::new(), int8 }
    }

    pub(super) fn scalar(&mut self, name: String, values: Values) {
        self.all.insert(name, Variable { shape: Vec::new(), values });
    }

    pub(super) fn flag(&mut self, name: String, is_set: bool) {
        self.scalar(name, Values::I8(vec![i8::from(is_set)]));
    }

    pub(super) fn floats(&mut self, name: String, weight: Weight) {
        self.all.insert(name, Variable { shape: weight.shape, values: Values::F32(weight.values) });
    }

    /// A matrix `[n_output, n_input]`, or a table with a row for each word. In 8 bits each row has a scale, by which the numbers were
    /// multiplied.
    pub(super) fn matrix(&mut self, name: String, weight: Weight) {
        if !self.int8 {
            return self.floats(name, weight);
        }
        let n_columns = weight.shape[1];
        let mut scales = Vec::with_capacity(weight.shape[0]);
        let mut values = Vec::with_capacity(weight.values.len());
        for row in weight.values.chunks(n_columns) {
            let largest = row.iter().fold(0.0f32, |largest, value| largest.max(value.abs()));
            let scale = if largest == 0.0 { 1.0 } else { 127.0 / largest };
            scales.push(scale);
            values.extend(row.iter().map(|value| (value * scale).round_ties_even() as i8));
        }
        let n = scales.len();
        self.all.insert(format!("{name}_scale"), Variable { shape: vec![n], values: Values::F32(scales) });
        self.all.insert(name, Variable { shape: weight.shape, values: Values::I8(values) });
    }

    /// Lets a name stand for the variable of another.
    pub(super) fn alias(&mut self, alias: &str, name: &str) {
        self.aliases.insert(alias.to_owned(), name.to_owned());
    }

    /// The file `model.bin`.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut file = Vec::new();
        let number = |file: &mut Vec<u8>, n: usize| {
            file.extend(u32::try_from(n).expect("fewer than 4 billion numbers and bytes").to_le_bytes());
        };
        let text = |file: &mut Vec<u8>, text: &str| {
            file.extend((text.len() as u16 + 1).to_le_bytes());
            file.extend(text.as_bytes());
            file.push(0);
        };
        number(&mut file, BINARY_VERSION as usize);
        text(&mut file, "TransformerSpec");
        number(&mut file, REVISION as usize);
        number(&mut file, self.all.len());
        for (name, variable) in &self.all {
            text(&mut file, name);
            file.push(variable.shape.len() as u8);
            variable.shape.iter().for_each(|n| number(&mut file, *n));
            file.push(variable.values.kind());
            let bytes = variable.values.bytes();
            number(&mut file, bytes.len());
            file.extend(bytes);
        }
        number(&mut file, self.aliases.len());
        for (alias, name) in &self.aliases {
            text(&mut file, alias);
            text(&mut file, name);
        }
        file
    }
}
