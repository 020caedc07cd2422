//! Counts the primes below a number, on a given number of threads.
//!
//!     rustc --target wasm32-unknown-unknown --crate-type cdylib -C opt-level=2 -C panic=abort -C strip=debuginfo -o count.wasm count.rs
//!     clif-util wasm count.wasm --threads 8 --invoke primes 1000 8

#![no_std]

use core::sync::atomic::{AtomicU32, Ordering};

#[link(wasm_import_module = "npu")]
unsafe extern "C" {
    safe fn thread_id() -> u32;
    safe fn barrier(number: u32, others: u32);
}

static FOUND: [AtomicU32; 8] = [const { AtomicU32::new(0) }; 8];

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    core::arch::wasm32::unreachable()
}

fn is_prime(number: u32) -> bool {
    number >= 2 && (2..).take_while(|divisor| divisor * divisor <= number).all(|divisor| !number.is_multiple_of(divisor))
}

#[unsafe(no_mangle)]
pub extern "C" fn primes(limit: u32, threads: u32) -> u32 {
    let own = thread_id();
    let numbers = (own..limit).step_by(threads.max(1) as usize);
    FOUND[own as usize].store(numbers.filter(|&number| is_prime(number)).count() as u32, Ordering::Relaxed);
    barrier(1, threads - 1);
    FOUND.iter().take(threads as usize).map(|found| found.load(Ordering::Relaxed)).sum()
}
