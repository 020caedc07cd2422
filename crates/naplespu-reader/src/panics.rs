//! Catches panics of the code under test and turns them into data.
//!
//! The compiler must not panic. The CLIF interpreter panics on unimplemented instructions. A runner
//! reports both and continues. The program owns the panic hook of the process. Without [`hook`],
//! every panic is printed, including caught ones, and the location of a panic is unknown.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::Once;

thread_local! {
    static CAUGHT: Cell<bool> = const { Cell::new(false) };
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// The code that panicked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PanicIn {
    /// Cranelift's reader of CLIF text.
    Reader,
    /// Cranelift's CLIF interpreter.
    Interpreter,
    /// Anything else: compiler, linker, simulator, or the runner itself.
    Target,
}

/// A caught panic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Panic {
    message: String,
    place: Option<String>,
}

impl fmt::Display for Panic {
    /// Prints the message, and the location in parentheses if it is known.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.place {
            Some(place) => write!(f, " ({place})"),
            None => Ok(()),
        }
    }
}

/// Runs `work` and catches a panic.
///
/// # Errors
///
/// The panic.
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, Panic> {
    let outer = CAUGHT.replace(true);
    // After an error, callers use the data borrowed by `work` only for reports.
    let result = panic::catch_unwind(AssertUnwindSafe(work));
    CAUGHT.set(outer);
    result.map_err(|payload| {
        let message = payload
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| payload.downcast_ref::<String>().cloned());
        Panic {
            message: message.unwrap_or_else(|| "panic without a message".to_owned()),
            place: PLACE.take(),
        }
    })
}

/// Installs [`hook`] in the process, once, before the present hook.
pub fn silence_caught() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| panic::set_hook(hook(panic::take_hook())));
}

/// Returns a panic hook that records the locations of panics inside [`caught`] without printing
/// them, and passes other panics to `before`. The program installs it:
/// `std::panic::set_hook(hook(std::panic::take_hook()))`.
pub fn hook(before: PanicHook) -> PanicHook {
    Box::new(move |info| {
        if !CAUGHT.get() {
            return before(info);
        }
        let place = info.location().map(|at| {
            // Only the last parts of the path, because the rest differs between machines.
            let parts: Vec<&str> = at.file().rsplit(['/', '\\']).take(3).collect();
            let parts: Vec<&str> = parts.into_iter().rev().collect();
            format!("{}:{}", parts.join("/"), at.line())
        });
        PLACE.set(place);
    })
}

/// A panic hook as in [`std::panic::set_hook`].
pub type PanicHook = Box<dyn Fn(&PanicHookInfo<'_>) + Send + Sync>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_its_message() {
        assert_eq!(caught(|| 3), Ok(3));
        let panic = caught(|| std::panic::panic_any(format!("number {}", 7))).unwrap_err();
        assert_eq!(panic.message, "number 7");
        let panic = caught(|| std::panic::panic_any("text")).unwrap_err();
        assert_eq!(panic.message, "text");
        let panic = caught(|| std::panic::panic_any(7)).unwrap_err();
        assert_eq!(panic.message, "panic without a message");
        assert_eq!(caught(|| 4), Ok(4));
    }
}
