//! All tests of the crate.

mod compiled;
mod lock;
mod machine_lock;
