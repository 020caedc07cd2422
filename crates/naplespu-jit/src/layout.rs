//! The memory layout of the device.
//!
//! Code, data, thread-local storage and stacks have a range each. The scratchpad is a separate
//! memory.

use npu_link::Layout;
use npu_mc::machine::{BOOT_PC, CACHE_LINE, DCACHE_SETS};
use npu_sim::{CORE_LIMIT, THREADS};

/// The range of functions, after the trap vector and the boot address.
const CODE: (u32, u32) = (0x1000, 0x4000_0000);

/// The range of data objects and buffers.
const DATA: (u32, u32) = (0x4000_0000, 0xdf80_0000);

/// The size of the thread-local storage of a thread, in bytes. Like [`STACK_STRIDE`], it is not a
/// multiple of the cache size.
pub(super) const TLS_BYTES: u32 = 0x1_0000 - DCACHE_SETS * CACHE_LINE / THREADS as u32;

/// The thread-local storage of thread 0. That of the other threads follows.
pub(super) const TLS_START: u32 = DATA.1;

/// The top of the stack of thread 0. Memory is sparse, so a single stack can grow down to the data.
/// Results in memory are above the top.
const STACK_TOP: u32 = 0xf000_0000;

/// The lowest address of any stack.
const STACKS: u32 = 0xe000_0000;

/// The distance in bytes between the stacks of two threads. Thread 0 has the uppermost stack. The
/// distance is not a multiple of the cache size: the threads of a core use the same stack depths at
/// the same time and must not conflict in the same cache sets.
const STACK_STRIDE: u32 = 0x20_0000 - DCACHE_SETS * CACHE_LINE / THREADS as u32;

// The stacks of all threads are above the data.
const _: () = assert!((CORE_LIMIT * THREADS) as u32 <= (STACK_TOP - STACKS) / STACK_STRIDE);
const _: () =
    assert!((CORE_LIMIT * THREADS) as u32 <= (STACKS - TLS_START) / TLS_BYTES && TLS_BYTES.is_multiple_of(CACHE_LINE));

/// Returns the address of the thread-local storage of a thread.
pub(super) fn tls_block(thread: usize) -> u32 {
    TLS_START + thread as u32 * TLS_BYTES
}

/// Returns the top of the stack of a thread, which grows down from there.
pub fn stack_top(thread: usize) -> u32 {
    STACK_TOP - thread as u32 * STACK_STRIDE
}

/// Returns the thread whose stack or thread-local storage contains an address, as text. The words
/// above the top of a stack are results in memory. A stack that has grown into the next one counts
/// as that one.
pub(super) fn of_thread(address: u32) -> Option<String> {
    const THREAD_LIMIT: u32 = (CORE_LIMIT * THREADS) as u32;
    let of = |part: &str, thread: u32| (thread < THREAD_LIMIT).then(|| format!("{part} of thread {thread}"));
    match address {
        TLS_START..STACKS => of("thread-local storage", (address - TLS_START) / TLS_BYTES),
        STACKS..STACK_TOP => of("stack", (STACK_TOP - 1 - address) / STACK_STRIDE),
        _ => None,
    }
}

/// The return address of calls.
pub(super) const RETURN_TO: u32 = BOOT_PC;

/// Returns the layout of code and data, with this size of the scratchpad.
pub(super) fn layout(scratchpad_bytes: u32) -> Layout {
    Layout::new(CODE, DATA, scratchpad_bytes).with_thread_local(TLS_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_threads_have_names() {
        for (address, name) in [
            (stack_top(0) - 4, Some("stack of thread 0")),
            (stack_top(9) - 4, Some("stack of thread 9")),
            (stack_top(9) - STACK_STRIDE, Some("stack of thread 9")),
            (tls_block(3), Some("thread-local storage of thread 3")),
            (STACK_TOP, None),
            (DATA.0, None),
        ] {
            assert_eq!(of_thread(address).as_deref(), name, "{address:#x}");
        }
    }
}
