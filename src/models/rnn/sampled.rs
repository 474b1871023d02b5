//! Scheduled sampling: in training, some of the previous words are the model's own.

use super::{RnnModel, RnnState};
use crate::data::batch::Padded;
use crate::layers::Pass;
use crate::models::{Autoregressive, Seq2Seq};
use burn::tensor::{Bool, Int, Tensor, TensorData};

impl RnnModel {
    /// As [`Seq2Seq::forward`], but where the pass says so a step reads the likeliest word of the step before instead of the
    /// true one. No gradient flows through the choice of a word.
    ///
    /// # Reference
    /// Bengio et al., Scheduled Sampling for Sequence Prediction with Recurrent Neural Networks, 2015, section 2.4. As in the
    /// paper, with the likeliest word, one of the two ways of choosing that it names.
    pub(super) fn forward_sampled(&self, source: &Padded, target_input: &Padded, pass: &mut Pass) -> Tensor<3> {
        let memory = self.encode(source, pass);
        let [batch, len] = target_input.ids.dims();
        let mut state: RnnState = self.start(&memory, 1);
        let mut logits: Vec<Tensor<2>> = Vec::with_capacity(len);
        for step in 0..len {
            let mut previous: Tensor<1, Int> = target_input.ids.clone().narrow(1, step, 1).squeeze_dim(1);
            if let Some(last) = logits.last() {
                let own = last.clone().detach().argmax(1).squeeze_dim(1);
                let replaced = pass.replaced_inputs(step, batch);
                let replaced = Tensor::<1, Bool>::from_data(TensorData::new(replaced, [batch]), &own.device());
                previous = previous.mask_where(replaced, own);
            }
            let (step_logits, next) = self.step(previous, state, &memory, pass);
            logits.push(step_logits);
            state = next;
        }
        Tensor::stack(logits, 1)
    }
}
