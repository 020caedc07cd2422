//! All tests of the crate.

mod cli;
mod docs;
mod fail;
mod hostile;
mod isle;
