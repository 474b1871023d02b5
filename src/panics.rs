//! Panics of other crates that are no fault of this program's.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// Whether a panic on this thread is caught and says nothing.
    static IS_CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// What `work` returns, or nothing if it panics on this thread, which then is not reported.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let report = take_hook();
        set_hook(Box::new(move |panic| {
            if !IS_CAUGHT.get() {
                report(panic);
            }
        }));
    });
    let before = IS_CAUGHT.replace(true);
    let result = catch_unwind(AssertUnwindSafe(work));
    IS_CAUGHT.set(before);
    result.ok()
}
