//! Reads arbitrary bytes as an object file, an archive and an executable.

#![no_main]

use npu_link::fuzz::exercise_file;

libfuzzer_sys::fuzz_target!(|data: &[u8]| exercise_file(data).unwrap_or_else(|why| panic!("{why}")));
