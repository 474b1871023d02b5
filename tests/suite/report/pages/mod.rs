//! The pages in Chromium: every control and key, both schemes, three widths, print, zoom, awkward texts.

mod attention;
mod explain;
mod states;
