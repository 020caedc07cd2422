//! Panics of the code under test, caught and turned into messages.
//!
//! The compiler must not panic, the CLIF interpreter does for what it does not implement. A runner reports both and goes on.

use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
    static MESSAGE: RefCell<String> = const { RefCell::new(String::new()) };
}

static HOOK: Once = Once::new();

/// Runs `work`; a panic in it gives its message and place instead of a result, and prints nothing. Other threads, and code
/// outside of `work`, panic as ever.
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if QUIET.get() {
                let what = info.payload_as_str().unwrap_or("panic without a message").to_owned();
                let place = info.location().map(|at| {
                    // Only the last parts of the path: the rest differs from machine to machine.
                    let parts: Vec<&str> = at.file().rsplit(['/', '\\']).take(3).collect();
                    let parts: Vec<&str> = parts.into_iter().rev().collect();
                    format!(" ({}:{})", parts.join("/"), at.line())
                });
                let text = what + &place.unwrap_or_default();
                MESSAGE.with(|message| *message.borrow_mut() = text);
            } else {
                before(info);
            }
        }));
    });
    let outer = QUIET.replace(true);
    // What `work` borrowed is not looked at again by callers after an error, except for reports.
    let result = panic::catch_unwind(AssertUnwindSafe(work));
    QUIET.set(outer);
    result.map_err(|_| MESSAGE.with(|message| std::mem::take(&mut *message.borrow_mut())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_its_message() {
        assert_eq!(caught(|| 3), Ok(3));
        let message = caught(|| panic!("number {}", 7)).unwrap_err();
        assert!(message.starts_with("number 7 ("), "{message}");
        assert_eq!(caught(|| 4), Ok(4));
    }
}
