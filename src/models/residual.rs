//! Residual connections, and what flows around the sublayers of a stack.

use crate::kernels::dropout::Dropout;
use crate::layers::Pass;
use crate::layers::norm::Norm;
use crate::ops::{self, Body};
use burn::module::Module;
use burn::tensor::Tensor;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where normalization stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NormPosition {
    /// `x + f(norm(x))`, and one norm after the last layer (Xiong et al. 2020): trains without a warm-up.
    Pre,
    /// `norm(x + f(x))`, as in Vaswani 2017.
    Post,
}

/// The vectors that go around the sublayers, and what the last one has yet to add to them: the norm before the next one takes both, which
/// on a GPU is one launch.
#[derive(Clone, Debug)]
pub(super) struct ResidualStream {
    around: Tensor<3>,
    /// What has gone through the last sublayer, before its dropout.
    through: Option<(Tensor<3>, Option<Dropout>)>,
}

impl From<Tensor<3>> for ResidualStream {
    fn from(x: Tensor<3>) -> Self {
        Self { around: x, through: None }
    }
}

impl ResidualStream {
    /// `[batch, len, d_model]`.
    pub(super) fn dims(&self) -> [usize; 3] {
        self.around.dims()
    }

    /// The same vectors as another batch.
    pub(super) fn reshape(self, shape: [usize; 3]) -> Self {
        if self.dims() == shape {
            return self;
        }
        // Which elements are dropped is decided by their number, which stays.
        let through = self.through.map(|(through, dropout)| (through.reshape(shape), dropout));
        Self { around: self.around.reshape(shape), through }
    }

    /// The vectors, with all that was to be added.
    pub(super) fn sum(self, body: Body) -> Tensor<3> {
        match self.through {
            Some((through, dropout)) => ops::add_dropped(self.around, through, dropout, body),
            None => self.around,
        }
    }

    /// The sum at the last `n` positions.
    pub(super) fn last(self, n: usize, body: Body) -> Self {
        let len = self.dims()[1];
        self.sum(body).narrow(1, len - n, n).into()
    }

    /// The sum, and the sum normalized.
    fn split(self, norm: &Norm, pass: &Pass) -> [Tensor<3>; 2] {
        match self.through {
            Some((through, dropout)) => norm.with_sum([self.around, through], dropout, pass),
            None => [self.around.clone(), norm.forward(self.around, pass)],
        }
    }

    /// The sum after the norm behind the last layer, if there is one.
    pub(super) fn normalized(self, norm: &Option<Norm>, pass: &Pass) -> Tensor<3> {
        match (norm, self.through) {
            (Some(norm), Some((through, dropout))) => norm.of_sum([self.around, through], dropout, pass),
            (Some(norm), None) => norm.forward(self.around, pass),
            (None, through) => Self { around: self.around, through }.sum(pass.body()),
        }
    }

    /// Writes down what a layer has made of the vectors, where the pass is traced.
    pub(super) fn recorded(self, pass: &mut Pass) -> Self {
        if !pass.is_traced() {
            return self;
        }
        let sum = self.sum(pass.body());
        pass.record("states", || sum.clone());
        sum.into()
    }
}

/// `x + dropout(f(x))` with the norm before or after.
#[derive(Module, Debug)]
pub(super) struct Residual {
    norm: Norm,
    #[module(skip)]
    position: NormPosition,
    #[module(skip)]
    dropout_rate: f64,
}

impl Residual {
    pub(super) fn new(norm: Norm, position: NormPosition, dropout_rate: f64) -> Self {
        Self { norm, position, dropout_rate }
    }

    pub(super) fn around(
        &self,
        stream: ResidualStream,
        pass: &mut Pass,
        sublayer: impl FnOnce(Tensor<3>, &mut Pass) -> Tensor<3>,
    ) -> ResidualStream {
        match self.position {
            NormPosition::Pre => {
                let [around, input] = stream.split(&self.norm, pass);
                let through = sublayer(input, pass);
                ResidualStream { around, through: Some((through, pass.next_dropout(self.dropout_rate))) }
            }
            NormPosition::Post => {
                let around = stream.sum(pass.body());
                let through = sublayer(around.clone(), pass);
                let dropout = pass.next_dropout(self.dropout_rate);
                self.norm.of_sum([around, through], dropout, pass).into()
            }
        }
    }
}
