//! All tests of the crate, but for the one that counts what the process allocates.

mod bounds;
mod differential;
mod dispatch;
mod exceptions;
mod limits;
mod simd;
mod spec;
mod threads;
mod translate;
