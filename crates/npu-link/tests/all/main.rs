//! All tests of the crate.

mod incremental;
mod layout;
mod reach;
