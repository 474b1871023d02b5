//! Embeddings as one operation.

use super::named::{Arrays, Flags, Gradient, Gradients, Output, Tensors, Views, named};
use super::operation::{Backward, Body, Keeps, Operation, run};
use crate::kernels::embedding::{back, embed};
use burn::tensor::{Int, Tensor, module};

named! {
    /// What `Embedding` takes.
    EmbeddingInputs {
        /// `[n_words, d_embedding]`.
        table: one 2,
    }
}

/// `scale E[id]` for every id.
#[derive(Debug)]
struct Embedding {
    /// `[batch, len]`.
    ids: Tensor<2, Int>,
    scale: f64,
}

/// `scale E[id]` for every id. burn scales in a pass of its own, and clears the gradient of the table, as large as the table, on one
/// core.
///
/// # Shapes
/// - ids: `[batch, len]`
/// - table: `[n_words, d_embedding]`
/// - output: `[batch, len, d_embedding]`
pub fn embedding(ids: Tensor<2, Int>, table: Tensor<2>, scale: f64, body: Body) -> Tensor<3> {
    run(Embedding { ids, scale }, EmbeddingInputs { table }, body).output
}

impl Operation for Embedding {
    type Inputs = EmbeddingInputs<Tensors>;
    type Outputs = Output<3, Tensors>;
    /// The ids.
    type Kept = Vec<usize>;

    fn keeps(&self) -> Keeps<Self> {
        Keeps { inputs: EmbeddingInputs::none(), outputs: Output::<3, Flags>::none() }
    }

    fn forward(&self, inputs: EmbeddingInputs<Views>) -> (Output<3, Arrays>, Vec<usize>) {
        let (table, width) = (inputs.table.values, inputs.table.shape[1]);
        let [batch, len] = self.ids.dims();
        let ids = self.ids.clone().try_into_vec_as::<i64>().expect("ids can be read");
        let ids: Vec<usize> = ids.into_iter().map(|id| id as usize).collect();
        let values = embed(table, width, &ids, self.scale as f32);
        (Output::new([batch, len, width], values), ids)
    }

    fn backward(&self, of: Backward<Self>) -> EmbeddingInputs<Gradients> {
        let of_table = back(of.gradients.output.values, of.inputs.table.shape, &of.kept, self.scale as f32);
        EmbeddingInputs { table: Gradient::New(of_table) }
    }

    fn written(&self, inputs: EmbeddingInputs<Tensors>) -> Output<3, Tensors> {
        let embedded = module::embedding(inputs.table, self.ids.clone());
        Output { output: if self.scale == 1.0 { embedded } else { embedded.mul_scalar(self.scale) } }
    }
}
