//! Reads arbitrary bytes as a cache entry of a compiled function.

#![no_main]

use naplespu_cache::fuzz::exercise_entry;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Err(why) = exercise_entry(data) {
        panic!("{why}");
    }
});
