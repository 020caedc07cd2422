//! Compares loops over memory with the interpreter, without a limit of cases: the body of
//! `crates/naplespu-fuzz/tests/all/differential_loops.rs`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use naplespu_fuzz::counted::{self, Compiler};
use std::cell::RefCell;

thread_local! {
    static COMPILERS: RefCell<Vec<Compiler>> = RefCell::new(match counted::compilers() {
        Ok(compilers) => compilers,
        Err(error) => panic!("{error}"),
    });
}

fuzz_target!(|data: &[u8]| {
    if let Err(report) = COMPILERS.with_borrow(|compilers| counted::run(data, compilers, 0)) {
        panic!("{report}");
    }
});
