//! The operations of a NaplesPU, for Rust code that is compiled to WebAssembly.
//!
//! # Contract
//!
//! Every function is an import of the module `npu`. `clif-util wasm` and the crate `naplespu-wasm`
//! compile each import to one or a few instructions (`docs/wasm.md`). The functions exist for
//! `wasm32` targets only: this crate is empty for other targets, which lack the hardware.
//!
//! All threads of a call run the same function with the same arguments. They share the memory and
//! have separate stacks. Threads communicate through atomic types; concurrent plain accesses to one
//! location are a data race, as everywhere in Rust. With `-C target-feature=+atomics`, operations
//! on atomic types are atomic instructions. Without it, they are plain loads and stores, which
//! suffice if one thread writes and the others read after a `barrier`.
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
    /// Returns the number of the current hardware thread in its core, from 0.
    pub safe fn thread_id() -> u32;

    /// Returns the number of the current core in its tile, from 0.
    pub safe fn core_id() -> u32;

    /// Returns the number of the current tile, from 0.
    pub safe fn tile_id() -> u32;

    /// Waits until `others` more threads have reached the barrier with this number. After it, all
    /// threads of a core see each other's earlier writes. To make writes visible to other cores,
    /// call [`flush`] before the barrier.
    pub safe fn barrier(number: u32, others: u32);

    /// Returns the cycles since reset; on a simulator without a timing model, the instructions.
    pub safe fn cycles() -> u64;

    /// Returns the control register with this number, which has to be a constant
    /// (`docs/intrinsics.md`).
    pub safe fn read_control_reg(number: u32) -> u32;

    /// Returns the lane mask of the current function: one bit for each of sixteen lanes. All bits
    /// are set when the function starts.
    pub safe fn read_mask_reg() -> u32;

    /// Sets the lane mask of the current function. Bits above the lowest sixteen are ignored.
    pub safe fn write_mask_reg(mask: u32);

    /// Writes the data-cache line with this address back to memory and invalidates it.
    pub safe fn dcache_inv(address: *const u8);

    #[link_name = "flush"]
    safe fn flush_line(address: *const u8);

    safe fn scratchpad_load(address: u32) -> u32;

    safe fn scratchpad_store(address: u32, word: u32);
}

/// Size of a data-cache line in bytes.
const LINE: usize = 64;

/// Writes the cache lines of a value back to memory, which makes it visible to other cores and the
/// host.
pub fn flush<T: ?Sized>(value: &T) {
    let first = core::ptr::from_ref(value).cast::<u8>();
    let bytes = size_of_val(value);
    for offset in (0..bytes).step_by(LINE) {
        flush_line(first.wrapping_add(offset));
    }
    if let Some(last) = bytes.checked_sub(1) {
        // The last byte may be in another line than all step addresses.
        flush_line(first.wrapping_add(last));
    }
}

/// The scratchpad memory of the core. Only the threads of the core can access it.
pub mod scratchpad {
    /// Returns the word at an address, which has to be a multiple of four.
    ///
    /// Any other address, and an address outside of the scratchpad, ends the program with a trap.
    pub fn load(address: u32) -> u32 {
        super::scratchpad_load(address)
    }

    /// Stores a word at an address, which has to be a multiple of four. Other addresses trap as for
    /// [`load`].
    pub fn store(address: u32, word: u32) {
        super::scratchpad_store(address, word);
    }
}

/// Kernels: functions for one work-item.
///
/// A function that calls one of these is executed once for each work-item of a dispatch
/// (`clif-util wasm --dispatch`), several of them on the lanes of a thread. Its parameters are
/// 32-bit integers or pointers, equal for all work-items, and it has no result. Functions that it
/// calls cannot call these, unless the compiler inlines them.
pub mod work_item {
    #[link(wasm_import_module = "npu")]
    unsafe extern "C" {
        /// Returns the number of the work-item in the dispatch, in dimension x.
        pub safe fn global_id_x() -> u32;

        /// Returns the number of the work-item in the dispatch, in dimension y.
        pub safe fn global_id_y() -> u32;

        /// Returns the number of the work-item in the dispatch, in dimension z.
        pub safe fn global_id_z() -> u32;

        /// Returns the number of the work-item in its work-group, in dimension x.
        pub safe fn local_id_x() -> u32;

        /// Returns the number of the work-item in its work-group, in dimension y.
        pub safe fn local_id_y() -> u32;

        /// Returns the number of the work-item in its work-group, in dimension z.
        pub safe fn local_id_z() -> u32;

        /// Returns the number of the work-group, in dimension x.
        pub safe fn workgroup_id_x() -> u32;

        /// Returns the number of the work-group, in dimension y.
        pub safe fn workgroup_id_y() -> u32;

        /// Returns the number of the work-group, in dimension z.
        pub safe fn workgroup_id_z() -> u32;

        /// Returns the number of work-groups of the dispatch, in dimension x.
        pub safe fn workgroup_count_x() -> u32;

        /// Returns the number of work-groups of the dispatch, in dimension y.
        pub safe fn workgroup_count_y() -> u32;

        /// Returns the number of work-groups of the dispatch, in dimension z.
        pub safe fn workgroup_count_z() -> u32;

        /// Returns the number of the work-item in its work-group, over all dimensions.
        pub safe fn local_index() -> u32;

        /// Waits for all work-items of the work-group, which all have to call it.
        pub safe fn workgroup_barrier();

        /// Returns the lane in the subgroup.
        pub safe fn lane_id() -> u32;

        /// Returns the number of the subgroup in the work-group.
        pub safe fn subgroup_id() -> u32;

        /// Returns the number of subgroups of a work-group.
        pub safe fn subgroup_count() -> u32;

        /// Returns the number of lanes of a subgroup.
        pub safe fn subgroup_size() -> u32;

        /// Returns whether the condition holds in an active lane.
        pub safe fn subgroup_any(condition: bool) -> bool;

        /// Returns whether the condition holds in all active lanes.
        pub safe fn subgroup_all(condition: bool) -> bool;

        /// Returns one bit for each of the first 32 lanes: whether the condition holds there.
        pub safe fn subgroup_ballot(condition: bool) -> u32;

        /// Returns whether this is the first active lane.
        pub safe fn subgroup_elect() -> bool;

        /// Returns the value of the first active lane.
        pub safe fn subgroup_broadcast_first_i32(value: i32) -> i32;

        /// Returns the value of another lane, which has to be active.
        pub safe fn subgroup_shuffle_i32(value: i32, lane: u32) -> i32;

        /// Returns the value of the first active lane.
        pub safe fn subgroup_broadcast_first_f32(value: f32) -> f32;

        /// Returns the value of another lane, which has to be active.
        pub safe fn subgroup_shuffle_f32(value: f32, lane: u32) -> f32;

        /// Returns the sum over the active lanes.
        pub safe fn subgroup_add_i32(value: i32) -> i32;

        /// Returns the product over the active lanes.
        pub safe fn subgroup_mul_i32(value: i32) -> i32;

        /// Returns the bitwise and over the active lanes.
        pub safe fn subgroup_and_i32(value: i32) -> i32;

        /// Returns the bitwise or over the active lanes.
        pub safe fn subgroup_or_i32(value: i32) -> i32;

        /// Returns the bitwise exclusive or over the active lanes.
        pub safe fn subgroup_xor_i32(value: i32) -> i32;

        /// Returns the smallest value over the active lanes.
        pub safe fn subgroup_smin_i32(value: i32) -> i32;

        /// Returns the largest value over the active lanes.
        pub safe fn subgroup_smax_i32(value: i32) -> i32;

        /// Returns the smallest value over the active lanes.
        pub safe fn subgroup_umin_i32(value: u32) -> u32;

        /// Returns the largest value over the active lanes.
        pub safe fn subgroup_umax_i32(value: u32) -> u32;

        /// Returns the sum over the active lanes.
        pub safe fn subgroup_add_f32(value: f32) -> f32;

        /// Returns the product over the active lanes.
        pub safe fn subgroup_mul_f32(value: f32) -> f32;

        /// Returns the smallest value over the active lanes.
        pub safe fn subgroup_min_f32(value: f32) -> f32;

        /// Returns the largest value over the active lanes.
        pub safe fn subgroup_max_f32(value: f32) -> f32;

        /// Returns the sum of the active lanes up to this one.
        pub safe fn subgroup_inclusive_add_i32(value: i32) -> i32;

        /// Returns the sum of the active lanes up to this one.
        pub safe fn subgroup_inclusive_add_f32(value: f32) -> f32;

        /// Returns the sum of the active lanes before this one.
        pub safe fn subgroup_exclusive_add_i32(value: i32) -> i32;

        /// Returns the sum of the active lanes before this one.
        pub safe fn subgroup_exclusive_add_f32(value: f32) -> f32;
    }
}
