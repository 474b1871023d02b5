//! Models: against PyTorch forward and backward, and the laws that every model keeps.

mod config;
mod fields;
mod golden;
mod laws;
mod weights;
