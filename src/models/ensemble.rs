//! Several models that write together.

use super::{Autoregressive, LengthLimit, LengthLimits, Rows, Seq2Seq};
use crate::data::batch::Padded;
use crate::layers::Pass;
use crate::ops::PreparedWeights;
use burn::tensor::{Device, Int, Tensor, activation};
use std::sync::Arc;

/// Models with the same vocabularies whose probabilities are averaged at every step; one alone is as it is.
///
/// # Reference
/// Sutskever, Vinyals and Le, Sequence to Sequence Learning with Neural Networks, 2014, section 3.6. The mean is that of
/// probabilities, p = (1/n) sum_k p_k; some programs average their logarithms instead.
#[derive(Debug)]
pub struct Ensemble<M> {
    models: Vec<M>,
    /// The matrices of each in the form that steps multiply with: models that were made from one another have parameters with the same
    /// identity and other numbers.
    weights: Vec<Arc<PreparedWeights>>,
}

impl<M> Ensemble<M> {
    /// The models together.
    ///
    /// # Panics
    /// If there are none.
    pub fn new(models: Vec<M>) -> Self {
        assert!(!models.is_empty(), "an ensemble has at least one model");
        let weights = models.iter().map(|_| Arc::default()).collect();
        Self { models, weights }
    }

    /// Each of them.
    pub fn models(&self) -> &[M] {
        &self.models
    }
}

/// What each model of an ensemble keeps for itself.
#[derive(Clone, Debug)]
pub struct Each<T>(Vec<T>);

impl<T: Rows> Rows for Each<T> {
    fn select(&self, rows: &Tensor<1, Int>) -> Self {
        Self(self.0.iter().map(|one| one.select(rows)).collect())
    }
}

impl<M: Autoregressive> Autoregressive for Ensemble<M> {
    type Memory = Each<M::Memory>;
    type State = Each<M::State>;

    fn start(&self, memory: &Self::Memory, n_beams: usize) -> Self::State {
        Each(self.models.iter().zip(&memory.0).map(|(model, memory)| model.start(memory, n_beams)).collect())
    }

    fn step(
        &self,
        previous: Tensor<1, Int>,
        state: Self::State,
        memory: &Self::Memory,
        pass: &mut Pass,
    ) -> (Tensor<2>, Self::State) {
        let each = self.models.iter().zip(&self.weights).zip(state.0).zip(&memory.0);
        let (logits, states) = each
            .map(|(((model, weights), state), memory)| {
                pass.exchange_prepared(weights);
                model.step(previous.clone(), state, memory, pass)
            })
            .unzip();
        (mean(logits), Each(states))
    }

    fn prefill(
        &self,
        tokens: Tensor<2, Int>,
        state: Self::State,
        memory: &Self::Memory,
        n_scored: usize,
        pass: &mut Pass,
    ) -> (Option<Tensor<3>>, Self::State) {
        let each = self.models.iter().zip(&self.weights).zip(state.0).zip(&memory.0);
        let (logits, states): (Vec<_>, Vec<_>) = each
            .map(|(((model, weights), state), memory)| {
                pass.exchange_prepared(weights);
                model.prefill(tokens.clone(), state, memory, n_scored, pass)
            })
            .unzip();
        (logits.into_iter().collect::<Option<Vec<_>>>().map(mean), Each(states))
    }

    fn fixed_len(&self, source_len: usize) -> Option<usize> {
        self.models[0].fixed_len(source_len)
    }

    fn answer_len(&self, source_len: usize) -> Option<usize> {
        self.models[0].answer_len(source_len)
    }

    fn limits(&self) -> LengthLimits {
        let shortest = |side: fn(LengthLimits) -> Option<LengthLimit>| {
            self.models.iter().filter_map(|model| side(model.limits())).min_by_key(|limit| limit.len)
        };
        LengthLimits { source: shortest(|limits| limits.source), target: shortest(|limits| limits.target) }
    }

    fn device(&self) -> Device {
        self.models[0].device()
    }
}

impl<M: Seq2Seq> Seq2Seq for Ensemble<M> {
    fn encode(&self, source: &Padded, pass: &mut Pass) -> Self::Memory {
        Each(self.models.iter().map(|model| model.encode(source, pass)).collect())
    }

    fn has_causal_encoder(&self) -> bool {
        self.models[0].has_causal_encoder()
    }

    fn forward(&self, source: &Padded, target_input: &Padded, pass: &mut Pass) -> Tensor<3> {
        mean(self.models.iter().map(|model| model.forward(source, target_input, pass)).collect())
    }
}

/// The logarithm of the mean probability; the logits themselves where there is one model.
fn mean<const D: usize>(mut logits: Vec<Tensor<D>>) -> Tensor<D> {
    if logits.len() == 1 {
        return logits.remove(0);
    }
    let n = logits.len() as f64;
    let logarithms = logits.into_iter().map(|logits| activation::log_softmax(logits, D - 1));
    // log(e^a + e^b) = max(a, b) + log(1 + e^-|a - b|)
    let add = |a: Tensor<D>, b: Tensor<D>| {
        let largest = a.clone().max_pair(b.clone());
        largest + (a - b).abs().neg().exp().log1p()
    };
    let sum = logarithms.reduce(add).expect("there is at least one model");
    sum.sub_scalar(n.ln())
}
