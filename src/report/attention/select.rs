//! Choosing maps: one head, every head, or an average.

use super::{AttentionMap, Part, SentenceMaps};
use crate::error::{Error, Result};
use std::collections::BTreeSet;
use std::str::FromStr;

/// Which layers or heads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// Each for itself.
    #[default]
    All,
    /// Their mean.
    Average,
    /// One, counted from 1.
    One(usize),
}

impl FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.parse()) {
            ("all", _) => Ok(Self::All),
            ("average", _) => Ok(Self::Average),
            (_, Ok(number)) if number > 0 => Ok(Self::One(number)),
            _ => Err(format!("\"{text}\" is no number from 1 on, \"all\" or \"average\"")),
        }
    }
}

impl FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|part| part.name() == text)
            .ok_or_else(|| format!("unknown part \"{text}\"; there are {}", Self::ALL.map(Self::name).join(", ")))
    }
}

/// The maps that are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Who looks at whom; every part if none is named.
    pub part: Option<Part>,
    /// Which layers.
    pub layer: Choice,
    /// Which heads.
    pub head: Choice,
}

impl Selection {
    /// The chosen maps of a sentence, averaged if requested.
    ///
    /// # Errors
    /// If the model has no such part, layer or head.
    pub fn apply(&self, sentence: &SentenceMaps) -> Result<Vec<AttentionMap>> {
        let of_part: Vec<&AttentionMap> =
            sentence.maps.iter().filter(|map| self.part.is_none_or(|part| part == map.part)).collect();
        if let (true, Some(part)) = (of_part.is_empty(), self.part) {
            let name = part.name();
            let what = if part.is_memory() {
                "no recurrence with a factor by which its state fades".to_owned()
            } else {
                format!("no {name} attention")
            };
            return Err(Error::message(format!("this model has {what}; leave --part {name} out")));
        }
        let of_layer = narrow(of_part.iter().map(|map| (*map).clone()).collect(), self.layer, Axis::Layer)?;
        let mut chosen = narrow(of_layer, self.head, Axis::Head)?;
        chosen.sort_by_key(|map| (map.part, map.layer, map.head));
        Ok(chosen)
    }
}

/// What a [`Choice`] chooses among.
#[derive(Clone, Copy)]
enum Axis {
    Layer,
    Head,
}

impl Axis {
    fn of(self, map: &AttentionMap) -> Option<usize> {
        match self {
            Self::Layer => map.layer,
            Self::Head => map.head,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Layer => "layer",
            Self::Head => "head",
        }
    }

    /// Whether two maps belong to one average along this axis.
    fn together(self, a: &AttentionMap, b: &AttentionMap) -> bool {
        let others = |map: &AttentionMap| match self {
            Self::Layer => map.head,
            Self::Head => map.layer,
        };
        a.part == b.part && others(a) == others(b)
    }
}

/// `layers 1 to 3`, or `layers 2 and 4` where some between have none.
pub(in crate::report) fn listed(what: &str, numbers: &BTreeSet<usize>) -> String {
    let all: Vec<String> = numbers.iter().map(usize::to_string).collect();
    let is_whole = numbers.iter().zip(numbers.iter().skip(1)).all(|(one, next)| one + 1 == *next);
    match all.as_slice() {
        [] => format!("no {what}"),
        [one] => format!("one {what}, {one}"),
        [first, .., last] if is_whole => format!("{what}s {first} to {last}"),
        [first @ .., last] => format!("{what}s {} and {last}", first.join(", ")),
    }
}

fn narrow(maps: Vec<AttentionMap>, choice: Choice, axis: Axis) -> Result<Vec<AttentionMap>> {
    match choice {
        Choice::All => Ok(maps),
        Choice::One(number) => {
            let there: BTreeSet<usize> = maps.iter().filter_map(|map| axis.of(map)).collect();
            let found: Vec<AttentionMap> = maps.into_iter().filter(|map| axis.of(map) == Some(number)).collect();
            let name = axis.name();
            match (found.is_empty(), there.is_empty()) {
                (false, _) => Ok(found),
                (true, false) => {
                    let message = format!("--{name} {number}: there are maps of {}", listed(name, &there));
                    Err(Error::message(message))
                }
                (true, true) => {
                    Err(Error::message(format!("this model's attention has no {name}s; leave --{name} out")))
                }
            }
        }
        Choice::Average => {
            let mut groups: Vec<Vec<&AttentionMap>> = Vec::new();
            for map in &maps {
                match groups.iter_mut().find(|group| axis.together(group[0], map)) {
                    Some(group) => group.push(map),
                    None => groups.push(vec![map]),
                }
            }
            Ok(groups.iter().filter_map(|group| average(group)).collect())
        }
    }
}

/// The mean of maps of one shape; it keeps the layer or head that they have in common.
pub fn average(maps: &[&AttentionMap]) -> Option<AttentionMap> {
    let first = maps.first()?;
    let mut weights = vec![0.0; first.weights.len()];
    for map in maps {
        weights.iter_mut().zip(&map.weights).for_each(|(sum, weight)| *sum += weight);
    }
    weights.iter_mut().for_each(|weight| *weight /= maps.len() as f32);
    let common = |axis: Axis| axis.of(first).filter(|number| maps.iter().all(|map| axis.of(map) == Some(*number)));
    Some(AttentionMap { layer: common(Axis::Layer), head: common(Axis::Head), weights, ..(*first).clone() })
}
