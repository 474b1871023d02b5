//! Heads of attention switched off: what would the model write without them?
//!
//! A head adds `context_h W^O_h` to the output of its layer, where `W^O_h` are its rows of the output projection. With those
//! rows at zero the head adds nothing, and the others are as they were.
//!
//! # Reference
//! Michel, Levy and Neubig, Are Sixteen Heads Really Better than One?, 2019, equation 1 with `xi_h = 0`; Voita et al., Analyzing
//! Multi-Head Self-Attention, 2019.

use super::Part;
use crate::models::weights::{PathStack, replace};
use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::Tensor;
use std::fmt;
use std::str::FromStr;

/// One head of one layer, both counted from 1.
///
/// Layers that share their parameters are one: its head is switched off in all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Head {
    /// Who looks at whom.
    pub part: Part,
    /// The layer.
    pub layer: usize,
    /// The head.
    pub head: usize,
}

impl fmt::Display for Head {
    /// As [`AttentionMap::name`](super::AttentionMap::name) has it: `cross.2.1`.
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}.{}.{}", self.part.name(), self.layer, self.head)
    }
}

impl FromStr for Head {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let read = || {
            let [part, layer, head] = text.split('.').collect::<Vec<_>>()[..] else { return None };
            let part = Part::ALL.into_iter().find(|known| known.name() == part)?;
            Some(Self { part, layer: layer.parse().ok()?, head: head.parse().ok()? })
        };
        read().ok_or_else(|| format!("{text:?} is no head; write part, layer and head as in cross.2.1"))
    }
}

/// Part and layer of the attention whose output projection has this path.
fn place_of(path: &str) -> Option<(Part, usize)> {
    let attention = path.strip_suffix(".output.weight")?;
    let [stack, layer, name] = attention.split('.').collect::<Vec<_>>()[..] else { return None };
    let part = match (stack, name) {
        ("decoder", "cross_attention") => Part::Cross,
        ("encoder", "attention") => Part::Encoder,
        ("decoder", "self_attention") | ("layers", "attention") => Part::Decoder,
        _ => return None,
    };
    Some((part, layer.parse::<usize>().ok()? + 1))
}

/// The heads of a model with `n_heads` in each attention, ordered by part, layer and head; none of recurrent models, whose one
/// attention has no heads.
pub fn heads<M: Module>(model: &M, n_heads: usize) -> Vec<Head> {
    #[derive(Default)]
    struct Finder {
        path: PathStack,
        found: Vec<(Part, usize)>,
    }
    impl ModuleVisitor for Finder {
        fn enter_module(&mut self, name: &str, container: &str) {
            self.path.enter(name, container);
        }
        fn exit_module(&mut self, _name: &str, _container: &str) {
            self.path.exit();
        }
        fn visit_float<const D: usize>(&mut self, _param: &Param<Tensor<D>>) {
            self.found.extend(place_of(&self.path.path()));
        }
    }
    let mut finder = Finder::default();
    model.visit(&mut finder);
    finder.found.sort_unstable();
    let of_layer = |(part, layer)| (1..=n_heads).map(move |head| Head { part, layer, head });
    finder.found.into_iter().flat_map(of_layer).collect()
}

/// The model with `heads` switched off, of `n_heads` in each attention.
pub fn without<M: Module>(model: M, heads: &[Head], n_heads: usize) -> M {
    struct Silencer<'a> {
        path: PathStack,
        heads: &'a [Head],
        n_heads: usize,
    }
    impl ModuleMapper for Silencer<'_> {
        fn enter_module(&mut self, name: &str, container: &str) {
            self.path.enter(name, container);
        }
        fn exit_module(&mut self, _name: &str, _container: &str) {
            self.path.exit();
        }
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            let Some((part, layer)) = place_of(&self.path.path()) else { return param };
            let here = self.heads.iter().filter(|head| (head.part, head.layer) == (part, layer));
            let off: Vec<usize> = here.map(|head| head.head - 1).collect();
            if off.is_empty() {
                return param;
            }
            let n_heads = self.n_heads;
            replace(param, |weight| {
                let parts = weight.chunk(n_heads, 0).into_iter().enumerate();
                let kept = parts.map(|(head, rows)| if off.contains(&head) { rows.zeros_like() } else { rows });
                Tensor::cat(kept.collect(), 0)
            })
        }
    }
    if heads.is_empty() {
        return model;
    }
    model.map(&mut Silencer { path: PathStack::default(), heads, n_heads })
}
