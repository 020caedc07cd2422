//! All tests of the crate: random programs against models and interpreters, and tests of the
//! generators.

mod differential;
mod never_panics;
mod vector_operations;
