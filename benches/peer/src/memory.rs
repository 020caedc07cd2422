//! What the thread allocates.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, which counts what it is asked for.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    /// Bytes in use. Blocks may be freed by another thread than that which allocated them.
    static USED: Cell<u64> = const { Cell::new(0) };
    static PEAK: Cell<u64> = const { Cell::new(0) };
}

fn count(more: usize, less: usize) {
    ALLOCATIONS.set(ALLOCATIONS.get() + u64::from(more > 0));
    USED.set((USED.get() + more as u64).saturating_sub(less as u64));
    PEAK.set(PEAK.get().max(USED.get()));
}

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: as the caller's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(0, layout.size());
        // SAFETY: as the caller's.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size, layout.size());
        // SAFETY: as the caller's.
        unsafe { System.realloc(block, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations of the thread so far.
pub fn allocations() -> u64 {
    ALLOCATIONS.get()
}

/// Begins to look for the most bytes that are in use at once; gives those that are now.
pub fn restart() -> u64 {
    PEAK.set(USED.get());
    USED.get()
}

/// The most bytes that were in use at once since then.
pub fn peak() -> u64 {
    PEAK.get()
}
