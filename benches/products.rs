//! Products of matrices on a GPU: ours beside burn's, microseconds each, one launch after the other.
//!
//!     cargo bench --profile release --bench products -- wgpu      # or vulkan, metal, cuda

use burn::tensor::{Device, Distribution, Tensor};
use lookback::backend::{Backend, gpu};
use std::time::Instant;

const LAUNCHES: usize = 20;

/// The best of three rounds; what a round launches is done when one number of its last product has been read.
fn microseconds(multiply: impl Fn() -> Tensor<2>) -> f64 {
    let round = || {
        let start = Instant::now();
        let last = (0..LAUNCHES).map(|_| multiply()).last().expect("there are launches");
        let _ = last.slice([0..1, 0..1]).into_data();
        start.elapsed().as_secs_f64() * 1e6 / LAUNCHES as f64
    };
    round();
    (0..3).map(|_| round()).fold(f64::INFINITY, f64::min)
}

fn main() -> lookback::error::Result<()> {
    // Cargo adds an argument of its own.
    let name = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    let backend: Backend = match name.as_deref().unwrap_or("wgpu") {
        "vulkan" => Backend::Vulkan,
        "metal" => Backend::Metal,
        "cuda" => Backend::Cuda,
        _ => Backend::Wgpu,
    };
    let adapter = backend.open()?;
    println!("{} on {backend}", adapter.name);
    println!("{:>18} {:>10} {:>10}", "rows inner columns", "burn's", "ours");
    let random = |shape: [usize; 2], device: &Device| Tensor::<2>::random(shape, Distribution::Default, device);
    for [m, k, n] in [
        [32, 512, 1536],
        [512, 512, 512],
        [512, 2048, 512],
        [512, 512, 10_000],
        [1024, 1024, 1024],
        [2048, 2048, 2048],
        [4096, 1024, 4096],
    ] {
        let (left, right) = (random([m, k], &adapter.device), random([k, n], &adapter.device));
        let burns = microseconds(|| left.clone().matmul(right.clone()));
        let ours = microseconds(|| gpu::product(&left, &right).expect("a GPU computes it"));
        println!("{:>18} {burns:>10.1} {ours:>10.1}", format!("{m} {k} {n}"));
    }
    Ok(())
}
