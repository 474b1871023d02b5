//! The building blocks: masks, positions, attention, recurrence, norms, feed-forward.
//!
//! | layer | from |
//! | --- | --- |
//! | [`attention`] | Bahdanau 2015, Vaswani 2017, Shazeer 2019, Ainslie 2023 |
//! | [`recurrent`] | Elman 1990, Hochreiter 1997, Cho 2014 |
//! | [`mixer`] | Katharopoulos 2020, Kim 2019, Feng 2024, De 2024, Yang 2023 to 2025 |
//! | [`position`] | Vaswani 2017, Gehring 2017, Shaw 2018, Raffel 2020, Su 2021, Press 2022 |
//! | [`norm`] | Ba 2016, Zhang 2019 |
//! | [`feed_forward`] | Vaswani 2017, Hendrycks 2016, Shazeer 2020 |
//! | [`mask`] | the one definition of which positions are hidden |
//!
//! Every layer is a burn `Module` that calls [`ops`](crate::ops). What a layer needs to know of the pass it takes part in, dropout and tracing, comes in
//! through a [`Pass`].

pub mod attention;
pub mod feed_forward;
pub mod init;
pub mod linear;
pub mod mixer;
pub mod norm;
pub mod pass;
pub mod position;
pub mod recurrent;

use burn::tensor::{Device, Int, Tensor, TensorData};

/// Numbers of rows or words as a tensor: `[n]`.
pub(crate) fn indices(values: impl IntoIterator<Item = usize>, device: &Device) -> Tensor<1, Int> {
    let values: Vec<i32> = values.into_iter().map(|value| value as i32).collect();
    let len = values.len();
    Tensor::from_data(TensorData::new(values, [len]), device)
}

pub use crate::ops::mask::{self, Mask};
pub use init::Init;
pub use pass::{Pass, Trace, TraceEntry, Watch};
