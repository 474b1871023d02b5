//! `results.json` of a comparison: whatever it says, the words, the charts and the page about it can be written.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lookback::report::comparison::{Comparison, files, html, measures, words};

fuzz_target!(|json: &[u8]| {
    let Ok(comparison) = serde_json::from_slice::<Comparison>(json) else { return };
    let _ = (words::findings(&comparison), words::summary(&comparison), files::overview(&comparison));
    for chart in measures::charts(&comparison) {
        let _ = chart.svg();
    }
    let page = html::page(&comparison).render();
    assert!(!page.contains("<script>alert"), "text is never a script");
});
