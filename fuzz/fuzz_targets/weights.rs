//! `model.safetensors`, also with matrices in 8 bits: refused, or tensors as large as they say.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lookback::models::weights::from_safetensors;
use std::path::Path;

fuzz_target!(|bytes: &[u8]| {
    let Ok(weights) = from_safetensors(bytes, Path::new("fuzzed.safetensors")) else { return };
    for weight in weights.values() {
        assert_eq!(weight.shape.iter().product::<usize>(), weight.values.len());
    }
});
