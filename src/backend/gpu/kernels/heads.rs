//! Heads side by side and heads apart on a GPU: one launch for all that is cut out of a projection, where burn's operations copy each
//! part, and add their gradients up in tensors of the size of all.

use super::cube::unit_for_each;
use super::new_like;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, backend_extension};
use burn_cubecl::CubeBackend;
use burn_cubecl::cubecl::{self, prelude::*};
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;

/// Backends with kernels that take heads apart and put them together.
///
/// # Shapes
/// - side by side: `[batch, len, n_heads d_head]`, of all parts together
/// - apart: `[batch, n_heads, len, d_head]`, of each part
#[backend_extension(Cube, Fusion: cfg(feature = "fusion"))]
pub trait HeadsKernels: Backend {
    /// All heads.
    #[fusion(meta = |packed, d_head| spec::cut(packed, packed.shape[2] / d_head, *d_head))]
    fn cut_one(packed: FloatTensor<Self>, d_head: usize) -> FloatTensor<Self>;

    /// The first half of the heads, and the second.
    #[fusion(meta = |packed, d_head| {
        let half = spec::cut(packed, packed.shape[2] / d_head / 2, *d_head);
        (half.clone(), half)
    })]
    fn cut_two(packed: FloatTensor<Self>, d_head: usize) -> (FloatTensor<Self>, FloatTensor<Self>);

    /// The first heads, and the two halves of the others.
    #[fusion(meta = |packed, n_first, d_head| {
        let half = spec::cut(packed, (packed.shape[2] / d_head - n_first) / 2, *d_head);
        (spec::cut(packed, *n_first, *d_head), half.clone(), half)
    })]
    fn cut_three(
        packed: FloatTensor<Self>,
        n_first: usize,
        d_head: usize,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>);

    /// The inverse of [`Self::cut_one`].
    #[fusion(meta = |a| spec::join(&[a]))]
    fn join_one(a: FloatTensor<Self>) -> FloatTensor<Self>;

    /// The inverse of [`Self::cut_two`].
    #[fusion(meta = |a, b| spec::join(&[a, b]))]
    fn join_two(a: FloatTensor<Self>, b: FloatTensor<Self>) -> FloatTensor<Self>;

    /// The inverse of [`Self::cut_three`].
    #[fusion(meta = |a, b, c| spec::join(&[a, b, c]))]
    fn join_three(a: FloatTensor<Self>, b: FloatTensor<Self>, c: FloatTensor<Self>) -> FloatTensor<Self>;
}

/// Shapes of what has yet to be computed.
#[cfg(feature = "fusion")]
mod spec {
    use burn::backend::fusion::custom::TensorSpec;

    pub(super) fn cut(packed: &TensorSpec, n_heads: usize, d_head: usize) -> TensorSpec {
        TensorSpec::new([packed.shape[0], n_heads, packed.shape[1], d_head].into(), packed.dtype)
    }

    pub(super) fn join(parts: &[&TensorSpec]) -> TensorSpec {
        let first = &parts[0].shape;
        let n_heads: usize = parts.iter().map(|part| part.shape[1]).sum();
        TensorSpec::new([first[0], first[2], n_heads * first[3]].into(), parts[0].dtype)
    }
}

impl HeadsKernels for CubeBackend {
    fn cut_one(packed: FloatTensor<Self>, d_head: usize) -> FloatTensor<Self> {
        let n_heads = packed.meta.shape()[2] / d_head;
        let [heads] = cut(packed, [n_heads], d_head);
        heads
    }

    fn cut_two(packed: FloatTensor<Self>, d_head: usize) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let half = packed.meta.shape()[2] / d_head / 2;
        cut(packed, [half; 2], d_head).into()
    }

    fn cut_three(
        packed: FloatTensor<Self>,
        n_first: usize,
        d_head: usize,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        let half = (packed.meta.shape()[2] / d_head - n_first) / 2;
        cut(packed, [n_first, half, half], d_head).into()
    }

    fn join_one(a: FloatTensor<Self>) -> FloatTensor<Self> {
        join([a])
    }

    fn join_two(a: FloatTensor<Self>, b: FloatTensor<Self>) -> FloatTensor<Self> {
        join([a, b])
    }

    fn join_three(a: FloatTensor<Self>, b: FloatTensor<Self>, c: FloatTensor<Self>) -> FloatTensor<Self> {
        join([a, b, c])
    }
}

fn cut<const N: usize>(packed: CubeTensor, n_heads: [usize; N], d_head: usize) -> [CubeTensor; N] {
    let packed = into_contiguous(packed);
    let [batch, len, width] = [0, 1, 2].map(|axis| packed.meta.shape()[axis]);
    let parts = n_heads.map(|n| new_like(&packed, [batch, n, len, d_head].into()));
    let client = packed.client.clone();
    let n = batch * len * width;
    let (cube_count, cube_dim) = unit_for_each(n, &client);
    let (buffers, sizes) = arguments(&parts, n_heads);
    cut_heads::launch(&client, cube_count, cube_dim, packed.into_buffer_arg(), buffers, sizes, n, len, width, d_head);
    parts
}

fn join<const N: usize>(parts: [CubeTensor; N]) -> CubeTensor {
    let parts = parts.map(into_contiguous);
    let n_heads = parts.each_ref().map(|part| part.meta.shape()[1]);
    let [batch, len, d_head] = [0, 2, 3].map(|axis| parts[0].meta.shape()[axis]);
    let width = n_heads.iter().sum::<usize>() * d_head;
    let packed = new_like(&parts[0], [batch, len, width].into());
    let client = packed.client.clone();
    let n = batch * len * width;
    let (cube_count, cube_dim) = unit_for_each(n, &client);
    let (buffers, sizes) = arguments(&parts, n_heads);
    let out = packed.clone().into_buffer_arg();
    join_heads::launch(&client, cube_count, cube_dim, buffers, out, sizes, n, len, width, d_head);
    packed
}

fn arguments<const N: usize>(
    parts: &[CubeTensor; N],
    n_heads: [usize; N],
) -> (SequenceArg<Box<[f32]>>, SequenceArg<usize>) {
    let (mut buffers, mut sizes) = (SequenceArg::new(), SequenceArg::new());
    for (part, n) in parts.iter().zip(n_heads) {
        buffers.push(part.clone().into_buffer_arg());
        sizes.push(n);
    }
    (buffers, sizes)
}

/// Where an element of heads side by side is when they are apart.
#[derive(CubeType, Clone, Copy)]
struct Place {
    sentence: usize,
    position: usize,
    head: usize,
    /// Of its head.
    element: usize,
}

#[cube]
fn place(at: usize, len: usize, width: usize, d_head: usize) -> Place {
    let column = at % width;
    let token = at / width;
    Place { sentence: token / len, position: token % len, head: column / d_head, element: column % d_head }
}

/// The same as an index into a part that has `n_heads` of the heads, `first` and those behind it.
#[cube]
fn index(place: &Place, first: usize, n_heads: usize, len: usize, d_head: usize) -> usize {
    ((place.sentence * n_heads + place.head - first) * len + place.position) * d_head + place.element
}

/// Each unit an element of what lies side by side.
#[cube(launch)]
fn cut_heads(
    packed: &[f32],
    mut parts: Sequence<Box<[f32]>>,
    n_heads: Sequence<usize>,
    n: usize,
    len: usize,
    width: usize,
    d_head: usize,
) {
    let at = ABSOLUTE_POS;
    if at < n {
        let place = place(at, len, width, d_head);
        let mut first = 0usize;
        #[unroll]
        for i in 0..parts.len() {
            let own = *n_heads.index(i);
            if place.head >= first && place.head < first + own {
                parts.index_mut(i)[index(&place, first, own, len, d_head)] = packed[at];
            }
            first += own;
        }
    }
}

/// Likewise.
#[cube(launch)]
fn join_heads(
    parts: Sequence<Box<[f32]>>,
    packed: &mut [f32],
    n_heads: Sequence<usize>,
    n: usize,
    len: usize,
    width: usize,
    d_head: usize,
) {
    let at = ABSOLUTE_POS;
    if at < n {
        let place = place(at, len, width, d_head);
        let mut first = 0usize;
        #[unroll]
        for i in 0..parts.len() {
            let own = *n_heads.index(i);
            if place.head >= first && place.head < first + own {
                packed[at] = parts.index(i)[index(&place, first, own, len, d_head)];
            }
            first += own;
        }
    }
}
