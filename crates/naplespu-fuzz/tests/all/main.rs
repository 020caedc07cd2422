//! All tests of the crate: random programs against models and interpreters, and what the generators make.

mod differential;
mod differential_arrays;
mod differential_lanes;
mod differential_loops;
mod differential_model;
mod differential_vectors;
mod never_panics;
mod vector_filetests;

use naplespu_reader::panics;
use std::sync::Once;

/// Lets panics that a test catches print nothing. The hook is that of the process, which all tests share.
fn silence_caught_panics() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| std::panic::set_hook(panics::hook(std::panic::take_hook())));
}
