//! Reads arbitrary bytes as a cache entry of a compiled function.

#![no_main]

use naplespu_cache::fuzz::exercise_entry;

libfuzzer_sys::fuzz_target!(|data: &[u8]| exercise_entry(data).unwrap_or_else(|why| panic!("{why}")));
