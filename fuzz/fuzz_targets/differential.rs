//! Compares compiled functions with the interpreter, without a limit of cases: the body of
//! `crates/naplespu-fuzz/tests/all/differential.rs`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use naplespu_fuzz::{self as fuzz, Programs};
use std::cell::RefCell;

thread_local! {
    static PROGRAMS: RefCell<Programs> = RefCell::new(match fuzz::configs() {
        Ok(configs) => Programs::new(&configs),
        Err(error) => panic!("{error}"),
    });
}

fuzz_target!(|data: &[u8]| {
    if let Err(report) = PROGRAMS.with_borrow(|programs| fuzz::run(data, programs)) {
        panic!("{report}");
    }
});
