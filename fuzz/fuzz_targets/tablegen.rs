//! Fuzzes the TableGen reader: half of the inputs are source text, the others select productions of
//! a grammar.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let text = match data.split_first() {
        Some((first, rest)) if first % 2 == 0 => String::from_utf8_lossy(rest).into_owned(),
        _ => tablegen::fuzz::program(data),
    };
    tablegen::fuzz::exercise(&text);
});
