//! The door: an operation on slices that takes part in burn's graph.

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, DispatchTensor, ExtensionType, TensorMetadata, backend_extension};
use burn::tensor::{Tensor, TensorData};
use std::borrow::Cow;
use std::fmt::Debug;
use std::sync::Arc;

/// A tensor as a function sees it.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// The sizes of its axes.
    pub shape: &'a [usize],
    /// Its elements, row-major.
    pub values: &'a [f32],
}

/// What a function computes.
#[derive(Debug)]
pub struct Output {
    /// The sizes of the axes.
    pub shape: Vec<usize>,
    /// The elements, row-major.
    pub values: Vec<f32>,
    /// What the backward pass wants to find again.
    pub saved: Vec<Vec<f32>>,
}

/// What a backward pass starts from.
pub struct Backprop<'a> {
    /// The inputs of the forward pass.
    pub inputs: &'a [Input<'a>],
    /// Its output.
    pub output: &'a [f32],
    /// What it has saved.
    pub saved: Vec<Vec<f32>>,
    /// The gradient of the loss with respect to the output.
    pub gradient: &'a [f32],
    /// For each input whether anybody wants its gradient.
    pub wanted: &'a [bool],
}

/// The gradient of the loss with respect to one input.
#[derive(Debug)]
pub enum Gradient {
    /// Nobody asked.
    None,
    /// That of the output, as it is.
    Same,
    /// These elements, in the shape of the input.
    New(Vec<f32>),
}

impl Gradient {
    /// `values()` if somebody wants them.
    pub fn when(wanted: bool, values: impl FnOnce() -> Vec<f32>) -> Self {
        if wanted { Self::New(values()) } else { Self::None }
    }
}

/// An operation on the elements of tensors, with its own backward pass.
pub trait Function: Debug + Send + Sync + 'static {
    /// The output.
    fn forward(&self, inputs: &[Input]) -> Output;

    /// The gradients, one for each input.
    fn backward(&self, of: Backprop) -> Vec<Gradient>;
}

macro_rules! inputs {
    ($($variant:ident($($tensor:ident: $type:ident),+)),+) => {
        /// The tensors that a function takes. Burn's door lets enums through, but no vectors.
        #[derive(ExtensionType)]
        pub enum Inputs<B: Backend> {
            $(
                #[allow(missing_docs)]
                $variant($($type<B>),+),
            )+
        }

        impl<B: Backend> Inputs<B> {
            fn into_vec(self) -> Vec<FloatTensor<B>> {
                match self {
                    $(Self::$variant($($tensor),+) => vec![$($tensor),+],)+
                }
            }

            fn from_vec(tensors: Vec<FloatTensor<B>>) -> Self {
                let n = tensors.len();
                let mut tensors = tensors.into_iter();
                $(
                    if n == [$(stringify!($tensor)),+].len() {
                        $(let $tensor = tensors.next().expect("they have been counted");)+
                        return Self::$variant($($tensor),+);
                    }
                )+
                unreachable!("no function takes {n} tensors")
            }
        }
    };
}

inputs!(
    One(a: FloatTensor),
    Two(a: FloatTensor, b: FloatTensor),
    Three(a: FloatTensor, b: FloatTensor, c: FloatTensor),
    Four(a: FloatTensor, b: FloatTensor, c: FloatTensor, d: FloatTensor),
    Five(a: FloatTensor, b: FloatTensor, c: FloatTensor, d: FloatTensor, e: FloatTensor),
    Six(a: FloatTensor, b: FloatTensor, c: FloatTensor, d: FloatTensor, e: FloatTensor, f: FloatTensor),
    Seven(a: FloatTensor, b: FloatTensor, c: FloatTensor, d: FloatTensor, e: FloatTensor, f: FloatTensor, g: FloatTensor),
    Eight(a: FloatTensor, b: FloatTensor, c: FloatTensor, d: FloatTensor, e: FloatTensor, f: FloatTensor, g: FloatTensor, h: FloatTensor),
    Nine(a: FloatTensor, b: FloatTensor, c: FloatTensor, d: FloatTensor, e: FloatTensor, f: FloatTensor, g: FloatTensor, h: FloatTensor, i: FloatTensor),
    Ten(a: FloatTensor, b: FloatTensor, c: FloatTensor, d: FloatTensor, e: FloatTensor, f: FloatTensor, g: FloatTensor, h: FloatTensor, i: FloatTensor, j: FloatTensor),
    Eleven(a: FloatTensor, b: FloatTensor, c: FloatTensor, d: FloatTensor, e: FloatTensor, f: FloatTensor, g: FloatTensor, h: FloatTensor, i: FloatTensor, j: FloatTensor, k: FloatTensor),
    Twelve(a: FloatTensor, b: FloatTensor, c: FloatTensor, d: FloatTensor, e: FloatTensor, f: FloatTensor, g: FloatTensor, h: FloatTensor, i: FloatTensor, j: FloatTensor, k: FloatTensor, l: FloatTensor)
);

/// Backends on which a [`Function`] can run.
#[backend_extension(Flex: cfg(feature = "flex"), NdArray: cfg(feature = "ndarray"), Autodiff)]
pub trait FunctionBackend: Backend {
    /// Runs `function`.
    fn run_function(#[extension_type] inputs: Inputs<Self>, function: Arc<dyn Function>) -> FloatTensor<Self>;
}

/// A backend whose tensors lie in the memory of this process.
pub trait HostBackend: Backend {
    /// The elements, row-major.
    fn values(tensor: &FloatTensor<Self>) -> Cow<'_, [f32]>;
}

#[cfg(feature = "flex")]
impl HostBackend for burn::backend::Flex {
    fn values(tensor: &FloatTensor<Self>) -> Cow<'_, [f32]> {
        match tensor.as_slice::<f32>() {
            Some(values) => Cow::Borrowed(values),
            None => Cow::Owned(owned_values::<Self>(tensor)),
        }
    }
}

#[cfg(feature = "ndarray")]
impl HostBackend for burn_ndarray::NdArray {
    fn values(tensor: &FloatTensor<Self>) -> Cow<'_, [f32]> {
        // burn's own way out copies element by element.
        if let burn_ndarray::NdArrayTensor::F32(storage) = tensor
            && let Some(values) = storage.view().to_slice()
        {
            return Cow::Borrowed(values);
        }
        Cow::Owned(owned_values::<Self>(tensor))
    }
}

fn owned_values<B: Backend>(tensor: &FloatTensor<B>) -> Vec<f32> {
    let data = burn::backend::try_read_sync(B::float_into_data(tensor.clone()));
    let data = data.expect("a host backend answers at once").expect("a tensor in memory can be read");
    data.try_into_vec().expect("a function takes tensors of 32-bit floats")
}

fn from_values<B: Backend>(values: Vec<f32>, shape: Vec<usize>, device: &B::Device) -> FloatTensor<B> {
    B::float_from_data(TensorData::new(values, shape), device)
}

/// Calls `use_inputs` with the tensors as slices.
fn with_inputs<B: HostBackend, T>(tensors: &[FloatTensor<B>], use_inputs: impl FnOnce(&[Input]) -> T) -> T {
    let shapes: Vec<Vec<usize>> = tensors.iter().map(|tensor| tensor.shape().to_vec()).collect();
    let values: Vec<Cow<[f32]>> = tensors.iter().map(B::values).collect();
    let inputs: Vec<Input> = shapes.iter().zip(&values).map(|(shape, values)| Input { shape, values }).collect();
    use_inputs(&inputs)
}

#[cfg(feature = "flex")]
impl FunctionBackend for burn::backend::Flex {
    fn run_function(inputs: Inputs<Self>, function: Arc<dyn Function>) -> FloatTensor<Self> {
        run::<Self>(&inputs.into_vec(), &*function).0
    }
}

#[cfg(feature = "ndarray")]
impl FunctionBackend for burn_ndarray::NdArray {
    fn run_function(inputs: Inputs<Self>, function: Arc<dyn Function>) -> FloatTensor<Self> {
        run::<Self>(&inputs.into_vec(), &*function).0
    }
}

fn run<B: HostBackend>(inputs: &[FloatTensor<B>], function: &dyn Function) -> (FloatTensor<B>, Vec<Vec<f32>>) {
    let output = with_inputs::<B, _>(inputs, |inputs| function.forward(inputs));
    (from_values::<B>(output.values, output.shape, &inputs[0].device()), output.saved)
}

/// What the graph keeps for the backward pass.
#[derive(Debug)]
struct Saved<B: Backend> {
    inputs: Vec<FloatTensor<B>>,
    output: FloatTensor<B>,
    /// Taken out by the one backward pass that a graph sees.
    saved: std::sync::Mutex<Vec<Vec<f32>>>,
    function: Arc<dyn Function>,
}

/// A [`Function`] of `N` tensors in the graph.
#[derive(Debug)]
struct Node;

impl<B: HostBackend, const N: usize> Backward<B, N> for Node {
    type State = Arc<Saved<B>>;

    fn backward(self, ops: Ops<Self::State, N>, grads: &mut Gradients, _: &mut Checkpointer) {
        let gradient = grads.consume::<B>(&ops.node);
        let state = ops.state;
        let saved = std::mem::take(&mut *state.saved.lock().expect("no thread panics with the lock"));
        let wanted = ops.parents.each_ref().map(Option::is_some);
        let gradients = with_inputs::<B, _>(&state.inputs, |inputs| {
            let (output, gradient) = (B::values(&state.output), B::values(&gradient));
            let of = Backprop { inputs, output: &output, saved, gradient: &gradient, wanted: &wanted };
            state.function.backward(of)
        });
        for ((parent, input), new) in ops.parents.into_iter().zip(&state.inputs).zip(gradients) {
            let Some(parent) = parent else { continue };
            match new {
                Gradient::None => {}
                Gradient::Same => grads.register::<B>(parent.id, gradient.clone()),
                Gradient::New(values) => {
                    let new = from_values::<B>(values, input.shape().to_vec(), &input.device());
                    grads.register::<B>(parent.id, new);
                }
            }
        }
    }
}

impl<B: HostBackend, C: CheckpointStrategy> FunctionBackend for Autodiff<B, C> {
    fn run_function(inputs: Inputs<Self>, function: Arc<dyn Function>) -> FloatTensor<Self> {
        let inputs = inputs.into_vec();
        match inputs.len() {
            1 => node::<B, C, 1>(inputs, function),
            2 => node::<B, C, 2>(inputs, function),
            3 => node::<B, C, 3>(inputs, function),
            4 => node::<B, C, 4>(inputs, function),
            5 => node::<B, C, 5>(inputs, function),
            6 => node::<B, C, 6>(inputs, function),
            7 => node::<B, C, 7>(inputs, function),
            8 => node::<B, C, 8>(inputs, function),
            9 => node::<B, C, 9>(inputs, function),
            10 => node::<B, C, 10>(inputs, function),
            11 => node::<B, C, 11>(inputs, function),
            12 => node::<B, C, 12>(inputs, function),
            n => unreachable!("no function takes {n} tensors"),
        }
    }
}

fn node<B: HostBackend, C: CheckpointStrategy, const N: usize>(
    inputs: Vec<FloatTensor<Autodiff<B, C>>>,
    function: Arc<dyn Function>,
) -> FloatTensor<Autodiff<B, C>> {
    let (inputs, guards): (Vec<_>, Vec<_>) = inputs.into_iter().map(|input| input.into_parts()).unzip();
    let guards = guards.try_into().unwrap_or_else(|_| unreachable!("the caller has counted"));
    let (output, saved) = run::<B>(&inputs, &*function);
    match Backward::<B, N>::prepare::<C>(Node, guards).compute_bound().stateful() {
        OpsKind::Tracked(prep) => {
            let saved = Saved { inputs, output: output.clone(), saved: saved.into(), function };
            prep.finish(Arc::new(saved), output)
        }
        OpsKind::UnTracked(prep) => prep.finish(output),
    }
}

/// Runs `function` on tensors of any rank.
pub fn apply<const D: usize>(function: impl Function, inputs: Vec<DispatchTensor>) -> Tensor<D> {
    Tensor::from_dispatch(Dispatch::run_function(Inputs::from_vec(inputs), Arc::new(function)))
}
