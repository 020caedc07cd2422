//! Compiled and simulated functions against the interpreter: the body of `tests/differential.rs`, without end.

#![no_main]

use cranelift_naplespu::fuzz;
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

static CONFIGS: LazyLock<Vec<fuzz::Config>> = LazyLock::new(|| match fuzz::configs() {
    Ok(configs) => configs,
    Err(error) => panic!("{error}"),
});

fuzz_target!(|data: &[u8]| {
    if let Err(report) = fuzz::run(data, &CONFIGS) {
        panic!("{report}");
    }
});
