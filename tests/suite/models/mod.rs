//! Models: against PyTorch forward and backward, and the laws that every model keeps.

mod attending;
mod config;
mod dropped;
pub mod ensemble;
pub mod fields;
mod fused_steps;
mod golden;
mod int8;
mod laws;
mod residual;
mod sampled;
mod values;
mod weights;
