//! Turns rules of lowering off, one at a time and for the thread that compiles: shows which rules decide something.
//!
//! Only with the feature `rule-switches`. A pattern of td and a rule in `isle/` are the same here.

use std::cell::{Cell, RefCell};

include!(concat!(env!("OUT_DIR"), "/switches.rs"));

thread_local! {
    /// The rule that is off.
    static OFF: Cell<Option<usize>> = const { Cell::new(None) };
    /// The rules whose patterns matched.
    static MATCHED: RefCell<Vec<bool>> = const { RefCell::new(Vec::new()) };
}

/// Turns a rule off, by its number in [`RULES`]; the one before is on again.
pub fn turn_off(rule: Option<usize>) {
    OFF.set(rule);
}

/// The numbers of the rules whose patterns matched since the last call, in order. Not all of them made something: another rule may have had priority, or
/// another condition may not have held.
pub fn take_matched() -> Vec<usize> {
    let matched = MATCHED.take();
    let numbered = matched.into_iter().enumerate();
    numbered.filter_map(|(rule, matched)| matched.then_some(rule)).collect()
}

/// Whether a rule is on; its pattern has matched.
pub(crate) fn is_on(rule: usize) -> bool {
    MATCHED.with_borrow_mut(|matched| {
        if matched.is_empty() {
            matched.resize(RULES.len(), false);
        }
        if let Some(matched) = matched.get_mut(rule) {
            *matched = true;
        }
    });
    OFF.get() != Some(rule)
}
