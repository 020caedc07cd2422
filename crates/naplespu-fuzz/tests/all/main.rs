//! All tests of the crate: random programs against models and interpreters, and tests of the
//! generators.

mod differential;
mod never_panics;
mod vector_filetests;

use naplespu_reader::panics;
use std::sync::Once;

/// Suppresses the output of panics that a test catches. All tests share the panic hook of the
/// process.
fn silence_caught_panics() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| std::panic::set_hook(panics::hook(std::panic::take_hook())));
}
