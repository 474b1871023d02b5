//! The first layer of an encoder-only model: from tokens, or from numbers, to vectors.

use super::Answers;
use crate::data::batch::Padded;
use crate::layers::linear::{embedding, linear_layer};
use crate::layers::{Init, Pass};
use burn::module::Module;
use burn::nn::{Embedding, Linear};
use burn::tensor::{Device, Tensor};

/// How a source becomes vectors. Its parameters have one path, whichever it is.
#[derive(Module, Debug)]
pub(super) enum Reading {
    /// A row of a table for each token.
    Tokens(Embedding),
    /// `W x + b` with the channels `x` of a step: the value embedding of Zhou et al., Informer, 2021, appendix B, with a kernel of
    /// one step, so that a causal model stays causal.
    Values(Linear),
}

impl Reading {
    /// `n_source` is the size of the vocabulary, or the number of channels.
    pub(super) fn new(answers: Answers, n_source: usize, d_model: usize, init: &Init) -> Self {
        match answers {
            Answers::Values => {
                // The bias is drawn like the weight: of `W x` with a single channel, a norm leaves nothing but the sign of x.
                let bound = (n_source as f64).powf(-0.5);
                let weight = init.uniform([n_source, d_model], bound);
                Self::Values(Linear { weight, bias: Some(init.uniform([d_model], bound)) })
            }
            _ => Self::Tokens(init.embedding(n_source, d_model)),
        }
    }

    /// `scale` is what rows of a table are multiplied by, `sqrt(d_model)` in Vaswani 2017, section 3.4.
    ///
    /// # Shapes
    /// - output: `[batch, len, d_model]`
    ///
    /// # Panics
    /// If a model of numbers is given tokens.
    pub(super) fn forward(&self, source: &Padded, scale: f64, pass: &Pass) -> Tensor<3> {
        match self {
            Self::Tokens(table) => embedding(source.ids.clone(), table, scale, pass),
            Self::Values(map) => {
                let values = source.values.clone().expect("a model of numbers is given numbers");
                linear_layer(map, values, pass)
            }
        }
    }

    /// The vectors of the words, where there are words.
    pub(super) fn table(&self) -> Option<&Embedding> {
        match self {
            Self::Tokens(table) => Some(table),
            Self::Values(_) => None,
        }
    }

    pub(super) fn device(&self) -> Device {
        match self {
            Self::Tokens(table) => table.weight.val().device(),
            Self::Values(map) => map.weight.val().device(),
        }
    }
}
