//! All tests of the crate.

mod coverage;
mod hostile;
mod suite;
