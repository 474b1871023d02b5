//! Bridge: registers an operation on slices as a node of burn's autodiff graph.
//!
//! Only this file and `backend` name backends. `burn::backend::backend_extension` routes a call to the backend of its tensors; an
//! operation with several outputs is one node that computes, with a node for each output on top, which hands its gradient down.

use super::named::{AnyArray, AnyView, Gradient};
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, NodeGuard, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn::backend::{
    Autodiff, AutodiffBackend, Backend, BackendTensor, Dispatch, DispatchAutodiffContext, DispatchTensor,
    DispatchTensorKind, ExtensionType, TensorMetadata, backend_extension,
};
use burn::tensor::{DType, TensorData};
use std::any::Any;
use std::borrow::Cow;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

/// An operation without its types.
pub(super) trait Erased: Debug + Send + Sync {
    /// The inputs and the outputs whose elements the backward pass reads.
    fn kept(&self) -> [Vec<bool>; 2];

    /// The outputs, and what the backward pass needs beside them.
    fn forward(&self, inputs: Vec<Option<AnyView>>) -> (Vec<Option<AnyArray>>, Box<dyn Any + Send>);

    /// The outputs alone.
    fn answer(&self, inputs: Vec<Option<AnyView>>) -> Vec<Option<AnyArray>>;

    /// The gradients of the inputs.
    fn backward(&self, of: AnyBackward) -> Vec<Option<Gradient>>;
}

/// What a backward pass starts from; see [`Backward`](super::operation::Backward).
pub(super) struct AnyBackward<'a> {
    pub inputs: Vec<Option<AnyView<'a>>>,
    pub outputs: Vec<Option<AnyView<'a>>>,
    pub kept: Box<dyn Any + Send>,
    pub gradients: Vec<Option<AnyView<'a>>>,
    pub needed: Vec<Option<bool>>,
}

/// Whether a tensor is one of 32-bit floats in this process's memory.
pub(super) fn is_on_host(tensor: &DispatchTensor) -> bool {
    fn is_host(kind: &DispatchTensorKind) -> bool {
        match kind {
            DispatchTensorKind::Autodiff(inner) => is_host(inner),
            #[cfg(feature = "flex")]
            DispatchTensorKind::Flex(_) => true,
            #[cfg(feature = "ndarray")]
            DispatchTensorKind::NdArray(_) => true,
            #[allow(unreachable_patterns)]
            _ => false,
        }
    }
    is_host(&tensor.kind) && tensor.dtype() == DType::F32
}

/// Runs `operation` on tensors for which [`is_on_host`].
pub(super) fn run(operation: Arc<dyn Erased>, inputs: Vec<Option<DispatchTensor>>) -> Vec<Option<DispatchTensor>> {
    Dispatch::run_operation(List(inputs), operation).0
}

/// Tensors, some of which may be missing.
pub struct List<B: Backend>(Vec<Option<FloatTensor<B>>>);

impl<B: Backend> List<B> {
    fn each<T>(self, change: impl Fn(FloatTensor<B>) -> T) -> Vec<Option<T>> {
        self.0.into_iter().map(|tensor| tensor.map(&change)).collect()
    }
}

// burn's derive takes structs and enums with a field for each tensor, no lists.
impl<B: Backend> ExtensionType<B> for List<B> {
    type Target = List<Dispatch>;

    fn map_to_dispatch<F>(self, map_kind: F, autodiff: DispatchAutodiffContext) -> Self::Target
    where
        F: Fn(BackendTensor<B>) -> DispatchTensorKind,
    {
        List(self.each(|tensor| DispatchTensor { kind: map_kind(BackendTensor::Float(tensor)), autodiff }))
    }

    fn map_from_dispatch<F>(target: Self::Target, unwrap_kind: F) -> Self
    where
        F: Fn(DispatchTensor) -> BackendTensor<B>,
    {
        Self(target.each(|tensor| unwrap_kind(tensor).float()))
    }

    fn routing_tensor(target: &Self::Target) -> Option<&DispatchTensor> {
        target.0.iter().flatten().next()
    }

    fn routing_float_tensor(target: &Self::Target) -> Option<&DispatchTensor> {
        Self::routing_tensor(target)
    }

    fn autodiff_context(target: &Self::Target) -> DispatchAutodiffContext {
        let contexts = target.0.iter().flatten().map(|tensor| tensor.autodiff);
        contexts.fold(DispatchAutodiffContext::Disabled, DispatchAutodiffContext::merge)
    }
}

/// Backends on which operations run on slices.
#[backend_extension(Flex: cfg(feature = "flex"), NdArray: cfg(feature = "ndarray"), Autodiff)]
pub trait OperationBackend: Backend {
    /// Runs `operation`.
    fn run_operation(#[extension_type] inputs: List<Self>, operation: Arc<dyn Erased>) -> List<Self>;
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
    data.try_into_vec().expect("`is_on_host` has looked at the type of the elements")
}

fn tensor_of<B: Backend>(values: Vec<f32>, shape: Vec<usize>, device: &B::Device) -> FloatTensor<B> {
    B::float_from_data(TensorData::new(values, shape), device)
}

#[cfg(feature = "flex")]
impl OperationBackend for burn::backend::Flex {
    fn run_operation(inputs: List<Self>, operation: Arc<dyn Erased>) -> List<Self> {
        answer::<Self>(&inputs, &*operation)
    }
}

#[cfg(feature = "ndarray")]
impl OperationBackend for burn_ndarray::NdArray {
    fn run_operation(inputs: List<Self>, operation: Arc<dyn Erased>) -> List<Self> {
        answer::<Self>(&inputs, &*operation)
    }
}

fn device_of<B: Backend>(tensors: &List<B>) -> B::Device {
    tensors.0.iter().flatten().next().expect("an operation has an input").device()
}

fn forward<B: HostBackend>(inputs: &List<B>, operation: &dyn Erased) -> (List<B>, Box<dyn Any + Send>) {
    on_views(inputs, |views| operation.forward(views))
}

fn answer<B: HostBackend>(inputs: &List<B>, operation: &dyn Erased) -> List<B> {
    on_views(inputs, |views| (operation.answer(views), ())).0
}

/// The outputs of `run` as tensors, and what comes with them.
fn on_views<B: HostBackend, T>(
    inputs: &List<B>,
    run: impl FnOnce(Vec<Option<AnyView>>) -> (Vec<Option<AnyArray>>, T),
) -> (List<B>, T) {
    let held: Vec<Option<Held<B>>> = inputs.0.iter().map(|tensor| tensor.as_ref().map(Held::whole)).collect();
    let elements = elements_of(&held);
    let (outputs, rest) = run(views(&held, &elements));
    let device = device_of(inputs);
    let tensor = |array: AnyArray| tensor_of::<B>(array.values, array.shape, &device);
    (List(outputs.into_iter().map(|array| array.map(tensor)).collect()), rest)
}

/// A tensor, or what is left of it when its elements are not kept.
#[derive(Debug)]
struct Held<B: Backend> {
    shape: Vec<usize>,
    tensor: Option<FloatTensor<B>>,
}

impl<B: Backend> Held<B> {
    fn whole(tensor: &FloatTensor<B>) -> Self {
        Self::new(tensor, true)
    }

    fn new(tensor: &FloatTensor<B>, is_kept: bool) -> Self {
        Self { shape: tensor.shape().to_vec(), tensor: is_kept.then(|| tensor.clone()) }
    }

    /// Those of a list, with the elements of those that are kept.
    fn list(tensors: &List<B>, kept: &[bool]) -> Vec<Option<Self>> {
        let each = tensors.0.iter().zip(kept);
        each.map(|(tensor, is_kept)| tensor.as_ref().map(|tensor| Self::new(tensor, *is_kept))).collect()
    }
}

/// The elements of each tensor; none where they are not kept.
fn elements_of<B: HostBackend>(held: &[Option<Held<B>>]) -> Vec<Cow<'_, [f32]>> {
    held.iter().map(|held| held.as_ref().and_then(|held| elements_of_one(held)).unwrap_or_default()).collect()
}

fn elements_of_one<B: HostBackend>(held: &Held<B>) -> Option<Cow<'_, [f32]>> {
    held.tensor.as_ref().map(B::values)
}

fn views<'a, B: Backend>(held: &'a [Option<Held<B>>], elements: &'a [Cow<[f32]>]) -> Vec<Option<AnyView<'a>>> {
    let each = held.iter().zip(elements);
    each.map(|(held, values)| held.as_ref().map(|held| AnyView { shape: &held.shape, values })).collect()
}

/// What the graph keeps of an operation for its backward pass.
#[derive(Debug)]
struct State<B: Backend> {
    operation: Arc<dyn Erased>,
    device: B::Device,
    inputs: Vec<Option<Held<B>>>,
    outputs: Vec<Option<Held<B>>>,
    /// Taken out by the one backward pass that a graph sees.
    kept: Mutex<Option<Box<dyn Any + Send>>>,
    /// Of an operation with several outputs, the gradients that have arrived.
    arrived: Mutex<Vec<Option<FloatTensor<B>>>>,
}

/// The node that computes, with `N` inputs.
#[derive(Debug)]
struct Computing;

impl<B: HostBackend, const N: usize> Backward<B, N> for Computing {
    type State = Arc<State<B>>;

    fn backward(self, ops: Ops<Self::State, N>, grads: &mut Gradients, _: &mut Checkpointer) {
        let own = grads.consume::<B>(&ops.node);
        let state = ops.state;
        let kept = lock(&state.kept).take().expect("a graph sees one backward pass");
        let arrived = std::mem::take(&mut *lock(&state.arrived));
        let gradients = match state.outputs.iter().flatten().count() {
            1 => state.outputs.iter().map(|output| output.as_ref().map(|_| own.clone())).collect(),
            _ => with_zeros(&state, arrived),
        };
        let mut is_needed = ops.parents.iter().map(Option::is_some);
        let needed = state.inputs.iter().map(|input| input.as_ref().and_then(|_| is_needed.next())).collect();
        let new = {
            let gradients: Vec<_> = gradients.iter().map(|gradient| gradient.as_ref().map(Held::whole)).collect();
            let elements = [&state.inputs, &state.outputs, &gradients].map(|held| elements_of(held));
            state.operation.backward(AnyBackward {
                inputs: views(&state.inputs, &elements[0]),
                outputs: views(&state.outputs, &elements[1]),
                gradients: views(&gradients, &elements[2]),
                kept,
                needed,
            })
        };
        let present = state.inputs.iter().zip(new).filter_map(|(input, new)| input.as_ref().zip(new));
        for (parent, (input, new)) in ops.parents.into_iter().zip(present) {
            let Some(parent) = parent else { continue };
            match new {
                Gradient::None => {}
                Gradient::OfOutput => grads.register::<B>(parent.id, own.clone()),
                Gradient::New(values) => {
                    grads.register::<B>(parent.id, tensor_of::<B>(values, input.shape.clone(), &state.device));
                }
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // What is inside is taken out whole: a panic elsewhere cannot have left half of it.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The gradients of all outputs: zero for those that the loss does not depend on.
fn with_zeros<B: Backend>(state: &State<B>, arrived: Vec<Option<FloatTensor<B>>>) -> Vec<Option<FloatTensor<B>>> {
    let zeros = |output: &Held<B>| {
        let values = vec![0.0; output.shape.iter().product()];
        tensor_of::<B>(values, output.shape.clone(), &state.device)
    };
    let each = state.outputs.iter().zip(arrived);
    each.map(|(output, arrived)| output.as_ref().map(|output| arrived.unwrap_or_else(|| zeros(output)))).collect()
}

/// One of several outputs of an operation, whose node that computes is its only parent.
#[derive(Debug)]
struct HandingDown;

impl<B: HostBackend> Backward<B, 1> for HandingDown {
    type State = (Arc<State<B>>, usize);

    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let gradient = grads.consume::<B>(&ops.node);
        let [Some(computing)] = ops.parents else { return };
        let (state, output) = ops.state;
        lock(&state.arrived)[output] = Some(gradient);
        // The node below is visited when something has arrived for it; what, it finds in its state.
        grads.register::<B>(computing.id, nothing::<B>(&state.device));
    }
}

/// A tensor that stands for several.
fn nothing<B: Backend>(device: &B::Device) -> FloatTensor<B> {
    tensor_of::<B>(vec![0.0], vec![1], device)
}

impl<B: HostBackend, C: CheckpointStrategy> OperationBackend for Autodiff<B, C> {
    fn run_operation(inputs: List<Self>, operation: Arc<dyn Erased>) -> List<Self> {
        macro_rules! by_number_of_inputs {
            ($($n:literal)+) => {
                match inputs.0.iter().flatten().count() {
                    $($n => nodes::<B, C, $n>(inputs, operation),)+
                    n => unreachable!("no operation has {n} inputs"),
                }
            };
        }
        by_number_of_inputs!(1 2 3 4 5 6 7 8 9 10 11 12)
    }
}

fn nodes<B: HostBackend, C: CheckpointStrategy, const N: usize>(
    inputs: List<Autodiff<B, C>>,
    operation: Arc<dyn Erased>,
) -> List<Autodiff<B, C>> {
    let mut guards: Vec<NodeGuard> = Vec::with_capacity(N);
    let inputs = inputs.0.into_iter().map(|input| {
        let (inner, guard) = input?.into_parts();
        guards.push(guard);
        Some(inner)
    });
    let inputs = List::<B>(inputs.collect());
    let guards: [NodeGuard; N] = guards.try_into().unwrap_or_else(|_| unreachable!("the caller has counted"));
    let (outputs, kept) = forward::<B>(&inputs, &*operation);
    let device = device_of(&inputs);
    let is_single = outputs.0.iter().flatten().count() == 1;
    let own = match is_single {
        true => outputs.0.iter().flatten().next().expect("there is one").clone(),
        false => nothing::<B>(&device),
    };
    let prepared = match Backward::<B, N>::prepare::<C>(Computing, guards).compute_bound().stateful() {
        OpsKind::Tracked(prepared) => prepared,
        OpsKind::UnTracked(_) => return List(outputs.each(<Autodiff<B, C> as AutodiffBackend>::from_inner)),
    };
    let [keeps_inputs, keeps_outputs] = operation.kept();
    let state = Arc::new(State {
        device,
        inputs: Held::list(&inputs, &keeps_inputs),
        outputs: Held::list(&outputs, &keeps_outputs),
        kept: Mutex::new(Some(kept)),
        arrived: Mutex::new(outputs.0.iter().map(|_| None).collect()),
        operation,
    });
    let computing = prepared.finish(state.clone(), own);
    if is_single {
        let mut computing = Some(computing);
        return List(outputs.0.into_iter().map(|output| output.and_then(|_| computing.take())).collect());
    }
    let on_top = |(i, output): (usize, Option<FloatTensor<B>>)| {
        let output = output?;
        match Backward::<B, 1>::prepare::<C>(HandingDown, [computing.node()]).compute_bound().stateful() {
            OpsKind::Tracked(prepared) => Some(prepared.finish((state.clone(), i), output)),
            OpsKind::UnTracked(prepared) => Some(prepared.finish(output)),
        }
    };
    List(outputs.0.into_iter().enumerate().map(on_top).collect())
}
