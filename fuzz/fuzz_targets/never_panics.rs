//! Checks that every valid function is compiled or refused, without a limit of cases: the body of
//! `crates/naplespu-fuzz/tests/all/never_panics.rs`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use naplespu_fuzz::{self as fuzz, compiles};
use std::sync::LazyLock;

static CONFIGS: LazyLock<Vec<fuzz::Config>> = LazyLock::new(|| match compiles::configs() {
    Ok(configs) => configs,
    Err(error) => panic!("{error}"),
});

fuzz_target!(|data: &[u8]| {
    if let Err(report) = compiles::run(data, &CONFIGS) {
        panic!("{report}");
    }
});
