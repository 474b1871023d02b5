//! Everything that a formula may name: what was computed before it, and the model's parameters.

use super::super::examples::softmax;
use super::evaluate::{Matrix, Reader, Scope, Value, dot};
use lookback::layers::feed_forward::Activation;
use lookback::layers::position::{PositionConfig, Side, alibi, sinusoids, t5};
use lookback::models::weights::Weights;
use lookback::models::{ModelConfig, RnnConfig, TransformerConfig};
use lookback::report::explanation::{Explanation, Part};
use std::collections::HashMap;

pub fn floats(values: &[f32]) -> Vec<f64> {
    values.iter().map(|value| f64::from(*value)).collect()
}

fn product(matrix: &Matrix, vector: &[f64]) -> Vec<f64> {
    matrix.rows.iter().map(|row| dot(row, vector)).collect()
}

/// Turns the pairs `(i, i + d/2)` by angles that grow with the position, which is the matrix's only number.
fn turn(position: &Matrix, vector: &[f64]) -> Vec<f64> {
    let (m, half) = (position.rows[0][0], vector.len() / 2);
    let angle = |i: usize| m * 10_000f64.powf(-((2 * i) as f64) / vector.len() as f64);
    let first = (0..half).map(|i| vector[i] * angle(i).cos() - vector[i + half] * angle(i).sin());
    let second = (0..half).map(|i| vector[i] * angle(i).sin() + vector[i + half] * angle(i).cos());
    first.chain(second).collect()
}

/// Everything that a formula may name.
pub struct Board<'a> {
    pub config: &'a ModelConfig,
    pub weights: &'a Weights,
    pub explanation: &'a Explanation,
    /// What was computed or is given, by name.
    pub known: HashMap<String, Value>,
    /// Where the line stands: step, layer and head, from 1, and its part.
    pub place: (usize, usize, usize, Part),
    /// The positions that a sum runs over.
    pub range: Vec<usize>,
}

impl Board<'_> {
    pub fn transformer(&self) -> Option<&TransformerConfig> {
        match self.config {
            ModelConfig::Transformer(config) => Some(config),
            ModelConfig::Rnn(_) | ModelConfig::DecoderOnly(_) | ModelConfig::EncoderOnly(_) => None,
        }
    }

    fn raw(&self, name: &str) -> Vec<f64> {
        let weight = self.weights.get(name);
        floats(&weight.unwrap_or_else(|| panic!("no {name} in {:?}", self.weights.keys())).values)
    }

    /// A parameter as a matrix whose rows are its outputs; burn's linear layers have them as columns.
    fn matrix(&self, name: &str) -> Vec<Vec<f64>> {
        let (values, n_out) = (self.raw(name), self.weights[name].shape[1]);
        (0..n_out).map(|o| values.iter().skip(o).step_by(n_out).copied().collect()).collect()
    }

    fn map(rows: Vec<Vec<f64>>) -> Value {
        Value::Map(product, Matrix { rows })
    }

    /// A row of a table.
    pub fn row(&self, name: &str, row: usize) -> Vec<f64> {
        let width = self.weights[name].shape[1];
        self.raw(name)[row * width..][..width].to_vec()
    }

    /// The attention of a Transformer's layer, and the norm of its sublayer.
    fn sublayer(&self) -> (String, String) {
        let (_, layer, _, part) = self.place;
        match part {
            Part::SelfAttention => {
                (format!("decoder.{}.self_attention", layer - 1), format!("decoder.{}.self_residual.norm", layer - 1))
            }
            Part::CrossAttention => {
                (format!("decoder.{}.cross_attention", layer - 1), format!("decoder.{}.cross_residual.norm", layer - 1))
            }
            Part::Model => (String::new(), format!("decoder.{}.feed_forward_residual.norm", layer - 1)),
        }
    }

    /// `W^Q`, `b^K` and the like: the head's part of a packed projection.
    fn projection(&self, is_bias: bool, which: char) -> Value {
        let config = self.transformer().unwrap();
        let (d, d_head, n_pairs) = (config.d_model, config.d_model / config.n_heads, config.n_key_value_heads());
        let (_, _, head, part) = self.place;
        let pair = (head - 1) * n_pairs / config.n_heads;
        let name = self.sublayer().0;
        let (layer, first) = match (which, part) {
            ('O', _) => ("output", 0),
            ('Q', Part::SelfAttention) => ("query_key_value", (head - 1) * d_head),
            ('Q', _) => ("query", (head - 1) * d_head),
            ('K', Part::SelfAttention) => ("query_key_value", d + pair * d_head),
            ('V', Part::SelfAttention) => ("query_key_value", d + (n_pairs + pair) * d_head),
            ('K', _) => ("key_value", pair * d_head),
            ('V', _) => ("key_value", (n_pairs + pair) * d_head),
            _ => panic!("no projection {which}"),
        };
        let n = if which == 'O' { d } else { d_head };
        match is_bias {
            true => Value::Vector(self.raw(&format!("{name}.{layer}.bias"))[first..first + n].to_vec()),
            false => Self::map(self.matrix(&format!("{name}.{layer}.weight"))[first..first + n].to_vec()),
        }
    }

    /// The parameters of a recurrent decoder. `U_r`, `V_r` and `C_r` stand side by side in one matrix, as do the two of concat.
    fn recurrent(&self, name: &str, config: &RnnConfig) -> Option<Value> {
        let score = |what: &str| format!("attention.alignment.score.{what}");
        let vector = |name: &str| Some(Value::Vector(self.raw(name)));
        let matrix = |name: &str| Some(Self::map(self.matrix(name)));
        let columns = |first: usize, n: usize| {
            let rows = self.matrix("readout.deep.weight");
            Some(Self::map(rows.iter().map(|row| row[first..first + n].to_vec()).collect()))
        };
        let (d, e) = (config.d_hidden, config.d_embedding);
        let first_of = |names: [String; 3]| names.into_iter().find(|name| self.weights.contains_key(name));
        match name {
            "v" => vector(&score("vector")),
            "U" => matrix(&score("key.weight")),
            "b" => vector(&score("key.bias")),
            "W" if self.weights.contains_key(&score("query.weight")) => matrix(&score("query.weight")),
            "W" => matrix(&first_of(["key.weight", "position.weight", "weight"].map(score)).unwrap()),
            "g" => Some(Value::Number(self.raw(&score("log_sharpness"))[0])),
            "W_p" => matrix("attention.alignment.window.predictor.projection.weight"),
            "v_p" => vector("attention.alignment.window.predictor.vector"),
            "W_c" => matrix("attention.attentional.weight"),
            "b_c" => vector("attention.attentional.bias"),
            "W_s" => matrix("bridge.0.hidden.weight"),
            "b_s" => vector("bridge.0.hidden.bias"),
            "U_r" => columns(0, d),
            "V_r" => columns(d, e),
            "C_r" => columns(d + e, self.matrix("readout.deep.weight")[0].len() - d - e),
            "b_r" => vector("readout.deep.bias"),
            _ => None,
        }
    }

    fn normalized(&self, vector: &[f64]) -> Vec<f64> {
        let name = match self.place.1 {
            _ if self.known.contains_key("norm of") => "encoder_norm".into(),
            0 => "decoder_norm".into(),
            _ => self.sublayer().1,
        };
        let n = vector.len() as f64;
        let mean = vector.iter().sum::<f64>() / n;
        let variance = vector.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
        let (gamma, beta) = (self.raw(&format!("{name}.gamma")), self.raw(&format!("{name}.beta")));
        let value = |i: usize| (vector[i] - mean) / (variance + 1e-5).sqrt() * gamma[i] + beta[i];
        (0..vector.len()).map(value).collect()
    }

    fn feed_forward(&self, vector: &[f64]) -> Vec<f64> {
        let name = format!("decoder.{}.feed_forward", self.place.1 - 1);
        let linear = |layer: &str, x: &[f64]| -> Vec<f64> {
            let rows = self.matrix(&format!("{name}.{layer}.weight"));
            let bias = self.raw(&format!("{name}.{layer}.bias"));
            rows.iter().zip(bias).map(|(row, bias)| dot(row, x) + bias).collect()
        };
        assert_eq!(self.transformer().unwrap().activation, Activation::Relu);
        let inner: Vec<f64> = linear("inner", vector).into_iter().map(|x| x.max(0.0)).collect();
        linear("outer", &inner)
    }

    /// The decoder's cell over `[word; what follows]` and the last state.
    fn gru(&self, input: &[f64], state: &[f64]) -> Vec<f64> {
        let ModelConfig::Rnn(config) = self.config else { panic!("a GRU in a Transformer") };
        let (word, more) = input.split_at(config.d_embedding);
        let gates = |name: &str, x: &[f64]| -> Vec<f64> { self.matrix(name).iter().map(|row| dot(row, x)).collect() };
        let mut read: Vec<f64> = gates("decoder.0.input.weight", word);
        let add = |read: &mut Vec<f64>, more: Vec<f64>| read.iter_mut().zip(more).for_each(|(sum, x)| *sum += x);
        add(&mut read, self.raw("decoder.0.input.bias"));
        if !more.is_empty() {
            let names = ["context_input.weight", "attention.context_input.weight", "attention.feeding_input.weight"];
            let name = names.iter().find(|name| self.weights.contains_key(**name)).expect("a second input");
            add(&mut read, gates(name, more));
        }
        let kept = gates("decoder.0.recurrent", state);
        let (d, bias) = (config.d_hidden, self.raw("decoder.0.candidate_bias"));
        let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
        let element = |k: usize| {
            let (r, z) = (sigmoid(read[k] + kept[k]), sigmoid(read[d + k] + kept[d + k]));
            let candidate = (read[2 * d + k] + r * (kept[2 * d + k] + bias[k])).tanh();
            (1.0 - z) * candidate + z * state[k]
        };
        (0..d).map(element).collect()
    }

    /// Computes the right-hand side of `text`.
    pub fn compute(&self, text: &str, i: usize) -> Value {
        let (t, n, _, _) = self.place;
        let indices = HashMap::from([('t', t as i64), ('i', i as i64), ('n', n as i64)]);
        Reader::new(text, self, &indices).value()
    }
}

impl Scope for Board<'_> {
    fn name(&self, name: &str) -> Value {
        let (t, _, head, _) = self.place;
        if let Some(value) = self.known.get(name) {
            return value.clone();
        }
        let (letters, index) = name.split_once('_').unwrap_or((name, ""));
        if name == "E" {
            let table = "target_embedding.weight";
            let rows = self.raw(table).chunks(self.weights[table].shape[1]).map(<[f64]>::to_vec).collect();
            return Self::map(rows);
        }
        if ["W_o", "b_o"].contains(&name) {
            let key = if self.weights.contains_key("output_projection.weight") {
                "output_projection"
            } else {
                "output.projection"
            };
            return match name {
                "W_o" => Self::map(self.matrix(&format!("{key}.weight"))),
                _ => Value::Vector(self.raw(&format!("{key}.bias"))),
            };
        }
        match self.config {
            ModelConfig::DecoderOnly(_) | ModelConfig::EncoderOnly(_) => panic!("no formulas of it are computed"),
            ModelConfig::Rnn(config) => self.recurrent(name, config).unwrap_or_else(|| panic!("what is {name}?")),
            ModelConfig::Transformer(config) => {
                let relative = |what: &str| {
                    let PositionConfig::Shaw { max_distance } = config.decoder_positions() else { panic!("no Shaw") };
                    let k = *max_distance as i64;
                    let row = index.parse::<i64>().unwrap().clamp(-k, k) + k;
                    Value::Vector(self.row(&format!("{}.relative.{what}", self.sublayer().0), row as usize))
                };
                match letters {
                    "W^Q" | "W^K" | "W^V" | "W^O" => self.projection(false, name.chars().last().unwrap()),
                    "b^Q" | "b^K" | "b^V" | "b^O" => self.projection(true, name.chars().last().unwrap()),
                    "R" => Value::Map(turn, Matrix { rows: vec![vec![index.parse::<f64>().unwrap() - 1.0]] }),
                    "m" => Value::Number(alibi::slopes(config.n_heads)[head - 1]),
                    "r" => relative("key"),
                    "r'" => relative("value"),
                    "b" => {
                        let PositionConfig::T5 { n_buckets, max_distance } = *config.decoder_positions() else {
                            panic!("what is {name}?")
                        };
                        let buckets = t5::Buckets { n_buckets, max_distance, side: Side::Decoder };
                        let row = self.row("decoder_position.table", buckets.bucket(index.parse().unwrap()));
                        Value::Number(row[head - 1])
                    }
                    "p" => Value::Vector(match config.decoder_positions() {
                        PositionConfig::Learned { .. } => self.row("position.learned.weight", t - 1),
                        _ => floats(&sinusoids(t - 1, 1, config.d_model)),
                    }),
                    _ => panic!("what is {name}?"),
                }
            }
        }
    }

    fn call(&self, name: &str, arguments: &[Value]) -> Value {
        let each = |f: fn(f64) -> f64| match &arguments[0] {
            Value::Number(x) => Value::Number(f(*x)),
            other => Value::Vector(other.vector().iter().map(|x| f(*x)).collect()),
        };
        match name {
            "exp" => each(f64::exp),
            "tanh" => each(f64::tanh),
            "sqrt" => each(f64::sqrt),
            "sigmoid" => each(|x| 1.0 / (1.0 + (-x).exp())),
            "min" => Value::Number(arguments[0].number().min(arguments[1].number())),
            "cos" => {
                let (a, b) = (arguments[0].vector(), arguments[1].vector());
                Value::Number(dot(a, b) / (dot(a, a) * dot(b, b)).sqrt())
            }
            "softmax" => Value::Vector(softmax(arguments[0].vector().iter().copied())),
            "maxout" => {
                let (a, b) = arguments[0].vector().split_at(arguments[0].vector().len() / 2);
                Value::Vector(a.iter().zip(b).map(|(a, b)| a.max(*b)).collect())
            }
            "norm" => Value::Vector(self.normalized(arguments[0].vector())),
            "FFN" => Value::Vector(self.feed_forward(arguments[0].vector())),
            "GRU" => Value::Vector(self.gru(arguments[0].vector(), arguments[1].vector())),
            _ => panic!("what is {name}()?"),
        }
    }

    fn range(&self) -> Vec<usize> {
        self.range.clone()
    }
}
