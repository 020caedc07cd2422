//! The operations of a NaplesPU, for Rust that is compiled to WebAssembly.
//!
//! # Contract
//!
//! Every function is an import of the module `npu`, which `clif-util wasm` and the crate `naplespu-wasm` make one or a few instructions
//! of (`docs/wasm.md`). They are there for targets `wasm32` alone: for others this crate is empty, since there is nothing that
//! they could do.
//!
//! All threads of a call run the same function with the same arguments, share the memory, and have stacks of their own. What
//! threads tell each other goes through atomic types; plain accesses of one place by two threads are a data race, as in all of Rust. With
//! `-C target-feature=+atomics` operations on atomic types are atomic instructions; without it they are plain loads and stores, which is
//! enough where one thread writes and the others read behind a `barrier`.
//!
//! ```text
//! #[unsafe(no_mangle)]
//! pub extern "C" fn number() -> u32 {
//!     npu::barrier(1, 7);
//!     npu::thread_id()
//! }
//! ```

#![no_std]
#![deny(missing_docs)]
#![cfg(target_arch = "wasm32")]

#[link(wasm_import_module = "npu")]
unsafe extern "C" {
    /// The number of this hardware thread in its core, from 0.
    pub safe fn thread_id() -> u32;

    /// The number of this core in its tile, from 0.
    pub safe fn core_id() -> u32;

    /// The number of this tile, from 0.
    pub safe fn tile_id() -> u32;

    /// Waits until `others` more threads are at the barrier of this number. What any of them wrote before, all of one core see behind it;
    /// between cores, [`flush`] comes before.
    pub safe fn barrier(number: u32, others: u32);

    /// Cycles since reset; instructions on a simulator without a timing model.
    pub safe fn cycles() -> u64;

    /// The control register of this number, a constant (`docs/intrinsics.md`).
    pub safe fn read_control_reg(number: u32) -> u32;

    /// The lane mask of this function: a bit for each of sixteen lanes, all of them at its start.
    pub safe fn read_mask_reg() -> u32;

    /// Sets the lane mask of this function; bits above the sixteenth are cut off.
    pub safe fn write_mask_reg(mask: u32);

    /// Writes the line of the data cache with this address back to memory, and drops it.
    pub safe fn dcache_inv(address: *const u8);

    #[link_name = "flush"]
    safe fn flush_line(address: *const u8);

    safe fn scratchpad_load(address: u32) -> u32;

    safe fn scratchpad_store(address: u32, word: u32);
}

/// Bytes of a line of the data cache.
const LINE: usize = 64;

/// Writes the lines of the cache that hold this value back to memory, where other cores and the host see them.
pub fn flush<T: ?Sized>(value: &T) {
    let first = core::ptr::from_ref(value).cast::<u8>();
    let bytes = size_of_val(value);
    for offset in (0..bytes).step_by(LINE) {
        flush_line(first.wrapping_add(offset));
    }
    if let Some(last) = bytes.checked_sub(1) {
        // The last byte may be in one more line than the steps met.
        flush_line(first.wrapping_add(last));
    }
}

/// The scratchpad memory of the core: its threads share it, and nobody else sees it.
pub mod scratchpad {
    /// The word at this address, which is a multiple of four.
    ///
    /// An address that is not ends the program with a trap, as one outside of the scratchpad does.
    pub fn load(address: u32) -> u32 {
        super::scratchpad_load(address)
    }

    /// Makes the word at this address, which is a multiple of four, this one. For others see [`load`].
    pub fn store(address: u32, word: u32) {
        super::scratchpad_store(address, word);
    }
}
