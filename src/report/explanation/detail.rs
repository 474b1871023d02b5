//! How much of an explanation is computed.

use super::terminal;

/// How much of an explanation is computed. Numbers that are left out are empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// Every number of every step.
    #[default]
    Everything,
    /// What a page of all steps in the terminal shows: every number of the steps that it shows in full, of the others the
    /// words and what they depend on.
    Overview,
    /// Every number of one step, counted from 1, and no other step.
    Step(usize),
}

/// What is being computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The translation.
    Translation,
    /// The text that is gone on with.
    Writing,
    /// The decoder's steps.
    Steps,
    /// Gradients of the written words.
    Gradients,
}

impl Detail {
    /// Whether step `step` of `n_steps` is in the explanation.
    pub(super) fn has(self, step: usize) -> bool {
        !matches!(self, Self::Step(chosen) if chosen != step)
    }

    /// Whether every number of step `step` of `n_steps` is computed.
    pub(super) fn is_full(self, step: usize, n_steps: usize) -> bool {
        match self {
            Self::Everything => true,
            Self::Overview => step <= terminal::n_boards(n_steps),
            Self::Step(chosen) => step == chosen,
        }
    }
}
