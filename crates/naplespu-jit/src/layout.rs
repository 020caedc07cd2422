//! Where things are in the memory of the device.
//!
//! Code, data, thread-local storage and stacks have a range each, and the scratchpad is a memory of its own.

use npu_link::Layout;
use npu_mc::machine::{BOOT_PC, CACHE_LINE, DCACHE_SETS};
use npu_sim::{CORE_LIMIT, THREADS};

/// Where functions are placed, after the trap vector and the boot address.
const CODE: (u32, u32) = (0x1000, 0x4000_0000);

/// Where data objects and buffers are placed.
const DATA: (u32, u32) = (0x4000_0000, 0xdf80_0000);

/// Bytes of the thread-local storage of a thread. Not a multiple of the cache's size, as [`STACK_STRIDE`].
pub(super) const TLS_BYTES: u32 = 0x1_0000 - DCACHE_SETS * CACHE_LINE / THREADS as u32;

/// Thread-local storage of thread 0. That of the next thread follows.
pub(super) const TLS_START: u32 = DATA.1;

/// Top of the stack of thread 0. Memory is sparse, so a stack that is alone has room to grow down to the data. Results that find
/// no register are written above it.
const STACK_TOP: u32 = 0xf000_0000;

/// Lowest address of any stack.
const STACKS: u32 = 0xe000_0000;

/// Bytes between the stacks of two threads. Thread 0 has the uppermost. Not a multiple of the cache's size: the threads of a core
/// use the same depths of their stacks at the same time, and must not meet in the same sets.
const STACK_STRIDE: u32 = 0x20_0000 - DCACHE_SETS * CACHE_LINE / THREADS as u32;

// The stacks of all threads are above the data.
const _: () = assert!((CORE_LIMIT * THREADS) as u32 <= (STACK_TOP - STACKS) / STACK_STRIDE);
const _: () =
    assert!((CORE_LIMIT * THREADS) as u32 <= (STACKS - TLS_START) / TLS_BYTES && TLS_BYTES.is_multiple_of(CACHE_LINE));

/// Thread-local storage of a thread.
pub(super) fn tls_block(thread: usize) -> u32 {
    TLS_START + thread as u32 * TLS_BYTES
}

/// Top of the stack of a thread, from where calls let it grow down.
pub fn stack_top(thread: usize) -> u32 {
    STACK_TOP - thread as u32 * STACK_STRIDE
}

/// Where calls return to.
pub(super) const RETURN_TO: u32 = BOOT_PC;

/// The layout for code and data, with a scratchpad of this size.
pub(super) fn layout(scratchpad_bytes: u32) -> Layout {
    Layout::new(CODE, DATA, scratchpad_bytes).with_thread_local(TLS_BYTES)
}
