//! Fuzzes the assembler: half of the inputs are source text, the others select tokens.

#![no_main]

use npu_link::fuzz::{exercise, soup};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let source = match data.split_first() {
        Some((first, rest)) if first % 2 == 0 => String::from_utf8_lossy(rest).into_owned(),
        _ => soup(data),
    };
    exercise(&source).unwrap_or_else(|why| panic!("{why}\n{source}"));
});
