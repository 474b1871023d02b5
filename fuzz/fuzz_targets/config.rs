//! A config, and what `--set` makes of it: refused with a reason, or a config that writes itself down and reads itself back.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lookback::experiment::Config;

fuzz_target!(|text: &str| {
    // After a line of its own, settings, a line each.
    let (text, settings) = text.split_once("\n===\n").unwrap_or((text, ""));
    let settings: Vec<String> = settings.lines().map(String::from).collect();
    let Ok(config) = Config::embedded("fuzzed.toml", text, &settings) else { return };
    let written = config.to_toml();
    let again = Config::embedded("again.toml", &written, &[]).expect("what was written is right");
    assert_eq!(again, config);
});
