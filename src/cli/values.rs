//! Options with a fixed set of values, so that help, completions and messages list them.

use crate::backend::Backend;
use crate::data::Split;
use crate::report::attention::Part;
use crate::scoring::{BleuTokenizer, Metric};
use crate::training::Dashboard;
use clap::ValueEnum;
use clap::builder::PossibleValue;

macro_rules! values {
    ($($type:ty),*) => {$(
        impl ValueEnum for $type {
            fn value_variants<'a>() -> &'a [Self] {
                &Self::ALL
            }

            fn to_possible_value(&self) -> Option<PossibleValue> {
                Some(PossibleValue::new(self.name()))
            }
        }
    )*};
}

values!(Backend, BleuTokenizer, Dashboard, Metric, Part, Split);
