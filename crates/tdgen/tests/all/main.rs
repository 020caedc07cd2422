//! All tests of the crate.

mod docs;
mod fail;
mod hostile;
mod isle;
