//! What each thread allocates, for the tests that count it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Counts what each thread allocates.
struct Counting;

/// Of a thread: how often it allocated, bytes in all, bytes in use, and the most that were.
#[derive(Clone, Copy, Default)]
pub struct Memory {
    pub blocks: usize,
    pub bytes: usize,
    pub used: usize,
    pub peak: usize,
}

thread_local! {
    pub static MEMORY: Cell<Memory> = const { Cell::new(Memory { blocks: 0, bytes: 0, used: 0, peak: 0 }) };
}

fn count(more: usize, less: usize) {
    let mut memory = MEMORY.get();
    memory.blocks += usize::from(more > 0);
    memory.bytes += more;
    memory.used = (memory.used + more).saturating_sub(less);
    memory.peak = memory.peak.max(memory.used);
    MEMORY.set(memory);
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
