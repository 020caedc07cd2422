//! Compares loops over memory with the evaluator, without a limit of cases: the body of
//! `crates/naplespu-fuzz/tests/all/differential.rs`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use naplespu_fuzz::{self as fuzz, Strategy};
use std::cell::LazyCell;

thread_local! {
    static CONFIGS: LazyCell<Vec<fuzz::Config>> = LazyCell::new(|| match fuzz::configs() {
        Ok(configs) => configs,
        Err(error) => panic!("{error}"),
    });
}

fuzz_target!(|data: &[u8]| {
    if let Err(report) = CONFIGS.with(|configs| fuzz::run(Strategy::Loops, data, configs, 0)) {
        panic!("{report}");
    }
});
