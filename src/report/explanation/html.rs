//! An explanation as a self-contained page to step through.

use super::{Explanation, Selection};
use crate::report::page::Page;

/// The page.
pub fn page(explanation: &Explanation, _selection: &Selection) -> String {
    Page { title: explanation.source_text.clone(), ..Page::default() }.render()
}
