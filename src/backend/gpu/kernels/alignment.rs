//! The network that compares a recurrent decoder's query with its keys, on a GPU: one launch, and three for its gradients. The sums of
//! every pair, of which burn's operations keep two copies, are never stored.

use super::cube::{UNITS_OF_ROW, cube_for_each, sum_of_cube, unit_for_each};
use super::node::{Kept, node};
use super::product::{ProductKernels, flat};
use super::{computed, new_like};
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, TensorMetadata, backend_extension};
use burn::tensor::Tensor;
use burn_cubecl::CubeBackend;
use burn_cubecl::cubecl::{self, prelude::*};
use burn_cubecl::kernel::into_contiguous;

/// Backends with kernels for both passes.
///
/// # Shapes
/// - query: `[batch, query_len, d]`; keys: `[batch, source_len, d]`; vector: `[d, 1]`
/// - scores: `[batch, query_len, source_len]`
#[backend_extension(Cube, Fusion: cfg(feature = "fusion"))]
pub trait AlignmentKernels: Backend {
    /// `v^T tanh(q + k)` for every pair.
    #[fusion(meta = |query, keys, _vector| {
        let shape = [query.shape[0], query.shape[1], keys.shape[1]].into();
        burn::backend::fusion::custom::TensorSpec::new(shape, query.dtype)
    })]
    fn network_scores(
        query: FloatTensor<Self>,
        keys: FloatTensor<Self>,
        vector: FloatTensor<Self>,
    ) -> FloatTensor<Self>;

    /// The gradient of the queries, and what each query adds to that of the vector: both `[batch, query_len, d]`.
    #[fusion(meta = |query, _keys, _vector, _gradient| (query.clone(), query.clone()))]
    fn gradients_by_query(
        query: FloatTensor<Self>,
        keys: FloatTensor<Self>,
        vector: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>);

    /// The gradient of the keys.
    #[fusion(meta = |_query, keys, _vector, _gradient| keys.clone())]
    fn gradient_of_keys(
        query: FloatTensor<Self>,
        keys: FloatTensor<Self>,
        vector: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
    ) -> FloatTensor<Self>;
}

/// Backends on which that is an operation with gradients.
#[backend_extension(Cube, Fusion: cfg(feature = "fusion"), Autodiff)]
pub trait AlignmentBackend: Backend {
    /// `v^T tanh(q + k)` for every pair.
    #[fusion(meta = |query, keys, _vector| {
        let shape = [query.shape[0], query.shape[1], keys.shape[1]].into();
        burn::backend::fusion::custom::TensorSpec::new(shape, query.dtype)
    })]
    fn scores_of_network(
        query: FloatTensor<Self>,
        keys: FloatTensor<Self>,
        vector: FloatTensor<Self>,
    ) -> FloatTensor<Self>;
}

/// [`alignment_network`](crate::ops::alignment_network) by these kernels. None where the tensors are not ones of 32-bit floats on a device
/// that has them.
pub fn alignment_network(query: &Tensor<3>, keys: &Tensor<3>, vector: &Tensor<2>) -> Option<Tensor<3>> {
    let ([batch, _, d], [sentences, _, width], [last, _]) = (query.dims(), keys.dims(), vector.dims());
    assert!(batch == sentences && d == width && d == last, "queries, keys and vector of one width, for each sentence");
    let scores = Dispatch::scores_of_network(computed(query)?, computed(keys)?, computed(vector)?);
    Some(Tensor::from_dispatch(scores))
}

#[derive(Clone, Debug)]
struct Network<B: Backend> {
    query: FloatTensor<B>,
    keys: FloatTensor<B>,
    vector: FloatTensor<B>,
}

impl<B: AlignmentKernels + ProductKernels> Kept<B, 3> for Network<B> {
    fn gradients(self, gradient: FloatTensor<B>, needed: [bool; 3]) -> [Option<FloatTensor<B>>; 3] {
        let Self { query, keys, vector } = self;
        let (of_query, parts) = B::gradients_by_query(query.clone(), keys.clone(), vector.clone(), gradient.clone());
        let of_vector = needed[2].then(|| B::float_reshape(B::summed_rows(flat::<B>(parts)), vector.shape()));
        let of_keys = needed[1].then(|| B::gradient_of_keys(query, keys, vector, gradient));
        [Some(of_query), of_keys, of_vector]
    }
}

impl<B: AlignmentKernels + ProductKernels, C: CheckpointStrategy> AlignmentBackend for Autodiff<B, C> {
    fn scores_of_network(
        query: FloatTensor<Self>,
        keys: FloatTensor<Self>,
        vector: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        let [(query, of_query), (keys, of_keys), (vector, of_vector)] = [query, keys, vector].map(|it| it.into_parts());
        let scores = B::network_scores(query.clone(), keys.clone(), vector.clone());
        node::<B, C, _, 3>([of_query, of_keys, of_vector], scores, Network { query, keys, vector })
    }
}

impl AlignmentBackend for CubeBackend {
    fn scores_of_network(
        query: FloatTensor<Self>,
        keys: FloatTensor<Self>,
        vector: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        Self::network_scores(query, keys, vector)
    }
}

impl AlignmentKernels for CubeBackend {
    fn network_scores(
        query: FloatTensor<Self>,
        keys: FloatTensor<Self>,
        vector: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        let [query, keys, vector] = [query, keys, vector].map(into_contiguous);
        let [batch, query_len, d] = [0, 1, 2].map(|axis| query.meta.shape()[axis]);
        let source_len = keys.meta.shape()[1];
        let scores = new_like(&query, [batch, query_len, source_len].into());
        let n = batch * query_len * source_len;
        compare::launch(
            &query.client.clone(),
            cube_for_each(n),
            CubeDim::new_1d(UNITS_OF_ROW),
            query.into_buffer_arg(),
            keys.into_buffer_arg(),
            vector.into_buffer_arg(),
            scores.clone().into_buffer_arg(),
            n,
            query_len,
            source_len,
            d,
        );
        scores
    }

    fn gradients_by_query(
        query: FloatTensor<Self>,
        keys: FloatTensor<Self>,
        vector: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let [query, keys, vector, gradient] = [query, keys, vector, gradient].map(into_contiguous);
        let shape = query.meta.shape().clone();
        let (query_len, d, source_len) = (shape[1], shape[2], keys.meta.shape()[1]);
        let n = shape.num_elements();
        let [of_query, of_vector] = [new_like(&query, shape.clone()), new_like(&query, shape)];
        let client = query.client.clone();
        let (cube_count, cube_dim) = unit_for_each(n, &client);
        back_to_query::launch(
            &client,
            cube_count,
            cube_dim,
            query.into_buffer_arg(),
            keys.into_buffer_arg(),
            vector.into_buffer_arg(),
            gradient.into_buffer_arg(),
            of_query.clone().into_buffer_arg(),
            of_vector.clone().into_buffer_arg(),
            n,
            query_len,
            source_len,
            d,
        );
        (of_query, of_vector)
    }

    fn gradient_of_keys(
        query: FloatTensor<Self>,
        keys: FloatTensor<Self>,
        vector: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        let [query, keys, vector, gradient] = [query, keys, vector, gradient].map(into_contiguous);
        let shape = keys.meta.shape().clone();
        let (source_len, d, query_len) = (shape[1], shape[2], query.meta.shape()[1]);
        let n = shape.num_elements();
        let of_keys = new_like(&keys, shape);
        let client = keys.client.clone();
        let (cube_count, cube_dim) = unit_for_each(n, &client);
        back_to_keys::launch(
            &client,
            cube_count,
            cube_dim,
            query.into_buffer_arg(),
            keys.into_buffer_arg(),
            vector.into_buffer_arg(),
            gradient.into_buffer_arg(),
            of_keys.clone().into_buffer_arg(),
            n,
            query_len,
            source_len,
            d,
        );
        of_keys
    }
}

/// Each cube a pair; each unit every so-many-th element of its sum.
#[allow(clippy::too_many_arguments)]
#[cube(launch)]
fn compare(
    query: &[f32],
    keys: &[f32],
    vector: &[f32],
    scores: &mut [f32],
    n: usize,
    query_len: usize,
    source_len: usize,
    d: usize,
) {
    let pair = CUBE_POS;
    if pair < n {
        let of_query = (pair / source_len) * d;
        let of_key = (pair / (source_len * query_len) * source_len + pair % source_len) * d;
        let mut own = 0.0f32;
        let mut i = UNIT_POS as usize;
        while i < d {
            own += vector[i] * (query[of_query + i] + keys[of_key + i]).tanh();
            i += comptime!(UNITS_OF_ROW as usize).runtime();
        }
        let score = sum_of_cube(own, UNITS_OF_ROW);
        if UNIT_POS == 0 {
            scores[pair] = score;
        }
    }
}

/// Each unit an element of a query, over all keys.
#[allow(clippy::too_many_arguments)]
#[cube(launch)]
fn back_to_query(
    query: &[f32],
    keys: &[f32],
    vector: &[f32],
    gradient: &[f32],
    of_query: &mut [f32],
    of_vector: &mut [f32],
    n: usize,
    query_len: usize,
    source_len: usize,
    d: usize,
) {
    let at = ABSOLUTE_POS;
    if at < n {
        let i = at % d;
        let row = at / d;
        let of_sentence = row / query_len * source_len;
        let mut to_query = 0.0f32;
        let mut to_vector = 0.0f32;
        let mut key = 0usize;
        while key < source_len {
            let bent = (query[at] + keys[(of_sentence + key) * d + i]).tanh();
            let of_score = gradient[row * source_len + key];
            to_query += of_score * (1.0f32 - bent * bent);
            to_vector += of_score * bent;
            key += 1usize;
        }
        of_query[at] = to_query * vector[i];
        of_vector[at] = to_vector;
    }
}

/// Each unit an element of a key, over all queries.
#[allow(clippy::too_many_arguments)]
#[cube(launch)]
fn back_to_keys(
    query: &[f32],
    keys: &[f32],
    vector: &[f32],
    gradient: &[f32],
    of_keys: &mut [f32],
    n: usize,
    query_len: usize,
    source_len: usize,
    d: usize,
) {
    let at = ABSOLUTE_POS;
    if at < n {
        let i = at % d;
        let key = at / d % source_len;
        let of_sentence = at / d / source_len * query_len;
        let mut to_key = 0.0f32;
        let mut row = of_sentence;
        while row < of_sentence + query_len {
            let bent = (query[row * d + i] + keys[at]).tanh();
            to_key += gradient[row * source_len + key] * (1.0f32 - bent * bent);
            row += 1usize;
        }
        of_keys[at] = to_key * vector[i];
    }
}
