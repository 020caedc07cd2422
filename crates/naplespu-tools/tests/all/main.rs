//! All tests of the crate except those that need a debugger or a simulation of the hardware.

mod assembly;
mod cache;
mod cli;
mod docs;
mod explain;
mod gdb;
mod html;
mod link;
#[cfg(feature = "jit")]
mod translated;
mod waits;

use naplespu_reader::panics;
use std::sync::Once;

/// Suppresses the output of panics that a test catches. All tests share the panic hook of the
/// process.
fn silence_caught_panics() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| std::panic::set_hook(panics::hook(std::panic::take_hook())));
}
