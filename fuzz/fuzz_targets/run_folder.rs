//! The small files of a run folder: its config with a checksum or without, its manifest, its pointers, its environment, its state.
//! Nothing but what was written is read; what is not is refused with a reason.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lookback::backend::Backend;
use lookback::experiment::Run;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The files that are replaced, below the folder of a run.
const FILES: [&str; 7] = [
    "config.toml",
    "environment.json",
    "best",
    "last",
    "checkpoints/000002/manifest.json",
    "checkpoints/000002/state.json",
    "checkpoints/000002/model.safetensors",
];

/// A run of two updates.
fn trained() -> &'static Path {
    static RUN: OnceLock<PathBuf> = OnceLock::new();
    RUN.get_or_init(|| {
        use lookback::experiment::{Config, TrainOptions, train};
        let text = include_str!("../tiny.toml");
        let config = Config::embedded("tiny.toml", text, &[]).expect("a config");
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a folder").keep();
        let options = TrainOptions::new(folder.join("run"));
        train(&config, &Backend::Flex.open().expect("a CPU"), &options).expect("two updates");
        folder.join("run")
    })
}

fuzz_target!(|data: &[u8]| {
    let Some((choice, bytes)) = data.split_first() else { return };
    let path = trained().join(FILES[*choice as usize % FILES.len()]);
    let before = fs::read(&path).expect("it is there");
    fs::write(&path, bytes).expect("it can be written");
    let adapter = Backend::Flex.open().expect("a CPU");
    let loaded = Run::open(trained()).and_then(|run| run.load_model(&adapter, None, |_| ()));
    if let Ok(loaded) = &loaded {
        // What is outside the checksums says where and when, and changes no answer.
        assert_eq!(loaded.updates, 2);
    }
    fs::write(&path, before).expect("it can be put back");
});
