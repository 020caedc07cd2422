//! Disables single lowering rules for the compiling thread, to find rules that do not affect the
//! code.
//!
//! This module requires the feature `rule-switches`. It treats a pattern of td and a rule in
//! `isle/` the same way.

use std::cell::{Cell, RefCell};

include!(concat!(env!("OUT_DIR"), "/switches.rs"));

thread_local! {
    /// The disabled rule.
    static OFF: Cell<Option<usize>> = const { Cell::new(None) };
    /// For each rule, whether its pattern has matched.
    static MATCHED: RefCell<Vec<bool>> = const { RefCell::new(Vec::new()) };
}

/// Disables a rule by its number in [`RULES`] and enables the previous one again.
pub fn turn_off(rule: Option<usize>) {
    OFF.set(rule);
}

/// Returns the numbers of the rules whose patterns have matched since the last call, in ascending
/// order. A matched rule may not have been applied: another rule may have had priority, or another
/// condition may have failed.
pub fn take_matched() -> Vec<usize> {
    let matched = MATCHED.take();
    let numbered = matched.into_iter().enumerate();
    numbered.filter_map(|(rule, matched)| matched.then_some(rule)).collect()
}

/// Returns whether a rule is enabled, and records that its pattern has matched.
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
