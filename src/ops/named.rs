//! Tensors by name: what an operation takes and gives, as tensors, as slices, or as whatever else there is one of for each.

use burn::backend::DispatchTensor;
use burn::tensor::Tensor;
use std::marker::PhantomData;

/// What there is for each tensor of an operation: the tensor itself, a view of its elements, whether its gradient is needed.
pub trait Kind {
    /// That of a tensor with `D` axes.
    type Of<const D: usize>;
    /// The same, whatever the number of axes.
    type Any;

    /// Forgets the number of axes.
    fn any<const D: usize>(of: Self::Of<D>) -> Self::Any;

    /// Remembers it.
    ///
    /// # Panics
    /// If it is another.
    fn of<const D: usize>(any: Self::Any) -> Self::Of<D>;
}

/// Tensors of burn.
pub enum Tensors {}

impl Kind for Tensors {
    type Of<const D: usize> = Tensor<D>;
    type Any = DispatchTensor;

    fn any<const D: usize>(of: Tensor<D>) -> DispatchTensor {
        of.into_dispatch()
    }

    fn of<const D: usize>(any: DispatchTensor) -> Tensor<D> {
        Tensor::from_dispatch(any)
    }
}

/// The elements of a tensor.
#[derive(Clone, Copy, Debug)]
pub struct View<'a, const D: usize> {
    /// The sizes of its axes.
    pub shape: [usize; D],
    /// Its elements, row-major; none in a backward pass if the operation does not keep them.
    pub values: &'a [f32],
}

/// The elements of tensors.
pub struct Views<'a>(std::marker::PhantomData<&'a ()>);

/// A [`View`] with any number of axes.
#[derive(Clone, Copy, Debug)]
pub struct AnyView<'a> {
    pub(super) shape: &'a [usize],
    pub(super) values: &'a [f32],
}

impl<'a> Kind for Views<'a> {
    type Of<const D: usize> = View<'a, D>;
    type Any = AnyView<'a>;

    fn any<const D: usize>(_: View<'a, D>) -> AnyView<'a> {
        unreachable!("views are made for an operation and never taken back")
    }

    fn of<const D: usize>(any: AnyView<'a>) -> View<'a, D> {
        View { shape: axes(any.shape), values: any.values }
    }
}

fn axes<const D: usize>(shape: &[usize]) -> [usize; D] {
    shape.try_into().unwrap_or_else(|_| panic!("a tensor has {} axes, not {D}", shape.len()))
}

/// New elements.
#[derive(Debug)]
pub struct Array<const D: usize> {
    /// The sizes of the axes.
    pub shape: [usize; D],
    /// The elements, row-major.
    pub values: Vec<f32>,
}

/// New elements for each tensor.
pub enum Arrays {}

/// An [`Array`] with any number of axes.
#[derive(Debug)]
pub struct AnyArray {
    pub(super) shape: Vec<usize>,
    pub(super) values: Vec<f32>,
}

impl Kind for Arrays {
    type Of<const D: usize> = Array<D>;
    type Any = AnyArray;

    fn any<const D: usize>(of: Array<D>) -> AnyArray {
        AnyArray { shape: of.shape.to_vec(), values: of.values }
    }

    fn of<const D: usize>(any: AnyArray) -> Array<D> {
        Array { shape: axes(&any.shape), values: any.values }
    }
}

/// One value of a type for each tensor, whatever its rank.
pub struct Each<T>(PhantomData<T>);

impl<T> Kind for Each<T> {
    type Of<const D: usize> = T;
    type Any = T;

    fn any<const D: usize>(of: T) -> T {
        of
    }

    fn of<const D: usize>(any: T) -> T {
        any
    }
}

/// Yes or no for each tensor.
pub type Flags = Each<bool>;

/// The gradient of the loss with respect to one input.
#[derive(Debug)]
pub enum Gradient {
    /// Not needed.
    None,
    /// That of the only output, as it is.
    OfOutput,
    /// These elements, in the shape of the input.
    New(Vec<f32>),
}

impl Gradient {
    /// `values()` if the gradient is needed.
    pub fn when(is_needed: bool, values: impl FnOnce() -> Vec<f32>) -> Self {
        if is_needed { Self::New(values()) } else { Self::None }
    }
}

/// A gradient for each tensor.
pub type Gradients = Each<Gradient>;

/// A struct of tensors by name, made by `named!`.
pub trait Named {
    /// The same names with something else of each.
    type Of<K: Kind>;

    /// The names, in the order of the lists.
    const NAMES: &'static [&'static str];

    /// One entry for each name, nothing for optional tensors that are not there.
    fn to_list<K: Kind>(of: Self::Of<K>) -> Vec<Option<K::Any>>;

    /// The inverse of [`to_list`](Named::to_list).
    fn from_list<K: Kind>(list: Vec<Option<K::Any>>) -> Self::Of<K>;
}

/// What `N` has of each name in `K`.
pub type Of<N, K> = <N as Named>::Of<K>;

/// Defines a struct of tensors by name. `input: one 3` is a tensor of three axes, `bias: maybe 1` one of one axis that may be missing;
/// `Inputs[D]` has a number of axes as a parameter.
macro_rules! named {
    (
        $(#[$meta:meta])*
        $name:ident $([$($d:ident),+])? {
            $($(#[$field_meta:meta])* $field:ident: $need:ident $rank:tt),+ $(,)?
        }
    ) => {
        $(#[$meta])*
        pub struct $name<$($(const $d: usize,)+)? K: $crate::ops::named::Kind> {
            $($(#[$field_meta])* pub $field: $crate::ops::named::named!(@type $need K $rank),)+
        }

        impl$(<$(const $d: usize),+>)? $crate::ops::named::Named for $name<$($($d,)+)? $crate::ops::named::Tensors> {
            type Of<K: $crate::ops::named::Kind> = $name<$($($d,)+)? K>;

            const NAMES: &'static [&'static str] = &[$(stringify!($field)),+];

            fn to_list<K: $crate::ops::named::Kind>(of: Self::Of<K>) -> Vec<Option<K::Any>> {
                vec![$($crate::ops::named::named!(@any $need K $rank of.$field)),+]
            }

            fn from_list<K: $crate::ops::named::Kind>(list: Vec<Option<K::Any>>) -> Self::Of<K> {
                let mut list = list.into_iter();
                $(let $field = list.next().expect("an entry for each name");)+
                $name { $($field: $crate::ops::named::named!(@of $need K $rank $field)),+ }
            }
        }

        impl$(<$(const $d: usize),+>)? $name<$($($d,)+)? $crate::ops::named::Flags> {
            /// No for each.
            #[allow(dead_code)]
            pub fn none() -> Self {
                $name { $($field: $crate::ops::named::named!(@no $need)),+ }
            }
        }
    };
    (@type one $K:ident $rank:tt) => { <$K as $crate::ops::named::Kind>::Of<$rank> };
    (@type maybe $K:ident $rank:tt) => { Option<<$K as $crate::ops::named::Kind>::Of<$rank>> };
    (@any one $K:ident $rank:tt $value:expr) => { Some($K::any::<$rank>($value)) };
    (@any maybe $K:ident $rank:tt $value:expr) => { $value.map($K::any::<$rank>) };
    (@of one $K:ident $rank:tt $value:expr) => { $K::of::<$rank>($value.expect("a tensor that is always there")) };
    (@of maybe $K:ident $rank:tt $value:expr) => { $value.map($K::of::<$rank>) };
    (@no one) => { false };
    (@no maybe) => { None };
}
pub(crate) use named;

named! {
    /// The one output of an operation.
    Output[D] {
        /// The output.
        output: one D,
    }
}

impl<const D: usize> Output<D, Arrays> {
    /// Elements in a shape.
    pub fn new(shape: [usize; D], values: Vec<f32>) -> Self {
        Self { output: Array { shape, values } }
    }
}
