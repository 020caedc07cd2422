//! Compares compiled functions with the evaluator, without a limit of cases: the body of
//! `crates/naplespu-fuzz/tests/all/differential.rs`. The first byte chooses scalars or vectors.

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
    let Some((first, rest)) = data.split_first() else { return };
    let strategy = if first % 2 == 0 { Strategy::Scalars } else { Strategy::Vectors };
    if let Err(report) = CONFIGS.with(|configs| fuzz::run(strategy, rest, configs, 0)) {
        panic!("{report}");
    }
});
