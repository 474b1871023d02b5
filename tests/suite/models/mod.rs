//! Models: against PyTorch forward and backward, and the laws that every model keeps.

mod golden;
mod laws;
