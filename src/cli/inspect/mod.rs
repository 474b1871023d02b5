//! `lookback inspect`: attention maps and the meaning of states.

mod arguments;
mod attention;
mod faithfulness;
mod picture;
mod series;
mod states;
mod tables;
mod text;

pub(super) use states::Report as StatesReport;
pub(super) use tables::Report as AttentionReport;

use super::output::{extension, picture, write};
use crate::error::Result;
use clap::Subcommand;

#[derive(Subcommand, Debug)]
pub(super) enum InspectCommand {
    /// Attention maps: which words each word was made of, for every layer and head.
    Attention(arguments::InspectAttentionArgs),
    /// Sentence vectors, token states and word vectors: which sentences and words the model holds to be alike.
    States(states::InspectStatesArgs),
}

pub(super) fn run(command: InspectCommand) -> Result<()> {
    match command {
        InspectCommand::Attention(args) => attention::run(args),
        InspectCommand::States(args) => states::run(args),
    }
}
