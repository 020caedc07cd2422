//! Panics of the code under test, caught and turned into data.
//!
//! The compiler must not panic, the CLIF interpreter does for what it does not implement. A runner reports both and goes on.
//! The panic hook of the process belongs to the program. Without one of its own it prints every panic, also those that are caught
//! here, and the place of a panic is not known; a program that wants both otherwise installs [`hook`].

use std::cell::{Cell, RefCell};
use std::fmt;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};

thread_local! {
    static CAUGHT: Cell<bool> = const { Cell::new(false) };
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Whose code panicked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PanicIn {
    /// The reader of CLIF text, which is Cranelift's.
    Reader,
    /// The CLIF interpreter, which is Cranelift's.
    Interpreter,
    /// Everything else: compiler, linker, simulator, the runner itself.
    Target,
}

/// A panic that was caught.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Panic {
    message: String,
    place: Option<String>,
}

impl fmt::Display for Panic {
    /// The message, and the place in parentheses if it is known.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.place {
            Some(place) => write!(f, " ({place})"),
            None => Ok(()),
        }
    }
}

/// Runs `work`; a panic in it is an error.
///
/// # Errors
///
/// The panic.
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, Panic> {
    let outer = CAUGHT.replace(true);
    // What `work` borrowed is not looked at again by callers after an error, except for reports.
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

/// A panic hook that is silent about panics that [`caught`] reports, and notes their places; others go to `before`. Installing
/// it is up to the program: `std::panic::set_hook(hook(std::panic::take_hook()))`.
pub fn hook(before: PanicHook) -> PanicHook {
    Box::new(move |info| {
        if !CAUGHT.get() {
            return before(info);
        }
        let place = info.location().map(|at| {
            // Only the last parts of the path: the rest differs from machine to machine.
            let parts: Vec<&str> = at.file().rsplit(['/', '\\']).take(3).collect();
            let parts: Vec<&str> = parts.into_iter().rev().collect();
            format!("{}:{}", parts.join("/"), at.line())
        });
        PLACE.set(place);
    })
}

/// A hook as [`std::panic::set_hook`] takes it.
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
