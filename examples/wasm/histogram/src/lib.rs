//! A histogram of the upper four bits of bytes in a pseudo-random sequence, counted by the threads
//! of a core. Each thread has counters in the scratchpad; after a barrier, each sums its share of
//! the buckets.
//!
//!     cargo build --release --target wasm32-unknown-unknown
//!     cp target/wasm32-unknown-unknown/release/histogram.wasm ../histogram.wasm
//!     clif-util wasm histogram.wasm --threads 8 --invoke histogram 4096 8

#![no_std]

use core::sync::atomic::{AtomicU32, Ordering};
use npu::{barrier, scratchpad, thread_id};

const BUCKETS: u32 = 16;
const THREADS: u32 = 8;

static SUMS: [AtomicU32; BUCKETS as usize] = [const { AtomicU32::new(0) }; BUCKETS as usize];

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    core::arch::wasm32::unreachable()
}

/// Returns a byte of the sequence.
fn byte(at: u32) -> u8 {
    let mixed = at.wrapping_mul(0x9e37_79b9);
    let mixed = (mixed ^ (mixed >> 15)).wrapping_mul(0x85eb_ca6b);
    (mixed >> 24) as u8
}

/// Returns the address of a thread's counter.
fn counter(thread: u32, bucket: u32) -> u32 {
    (thread * BUCKETS + bucket) * 4
}

/// Counts the first `length` bytes on this many threads. Returns a number that depends on every
/// counter.
#[unsafe(no_mangle)]
pub extern "C" fn histogram(length: u32, threads: u32) -> u32 {
    let threads = threads.clamp(1, THREADS);
    let own = thread_id();
    for bucket in 0..BUCKETS {
        scratchpad::store(counter(own, bucket), 0);
    }
    for at in (own..length).step_by(threads as usize) {
        let address = counter(own, u32::from(byte(at) >> 4));
        scratchpad::store(address, scratchpad::load(address) + 1);
    }
    barrier(1, threads - 1);
    for bucket in (own..BUCKETS).step_by(threads as usize) {
        let sum = (0..threads)
            .map(|thread| scratchpad::load(counter(thread, bucket)))
            .sum();
        SUMS[bucket as usize].store(sum, Ordering::Relaxed);
    }
    barrier(2, threads - 1);
    SUMS.iter().fold(0, |all, sum| {
        all.wrapping_mul(31).wrapping_add(sum.load(Ordering::Relaxed))
    })
}
