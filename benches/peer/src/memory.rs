//! Counts the allocations of a thread.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, with counters.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    /// The bytes in use. Another thread may free blocks of this one.
    static USED: Cell<u64> = const { Cell::new(0) };
    static PEAK: Cell<u64> = const { Cell::new(0) };
}

fn count(more: usize, less: usize) {
    ALLOCATIONS.set(ALLOCATIONS.get() + u64::from(more > 0));
    USED.set((USED.get() + more as u64).saturating_sub(less as u64));
    PEAK.set(PEAK.get().max(USED.get()));
}

// SAFETY: forwards every call to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: the caller's contract is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(0, layout.size());
        // SAFETY: the caller's contract is the same.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size, layout.size());
        // SAFETY: the caller's contract is the same.
        unsafe { System.realloc(block, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Returns the number of allocations of the thread.
pub fn allocations() -> u64 {
    ALLOCATIONS.get()
}

/// Starts measuring the maximum number of bytes in use; returns the current number.
pub fn restart() -> u64 {
    PEAK.set(USED.get());
    USED.get()
}

/// Returns the maximum number of bytes in use since [`restart`].
pub fn peak() -> u64 {
    PEAK.get()
}
