/* Operations of the machine for C and C++ compiled to WebAssembly: imports from the module `npu`. */

#ifndef NPU_H
#define NPU_H

#ifdef __cplusplus
extern "C" {
#endif

#define NPU_IMPORT(name) __attribute__((import_module("npu"), import_name(#name)))

/* The number of the thread in its core, of the core, and of the tile. Each core is a tile. */
NPU_IMPORT(thread_id) int npu_thread_id(void);
NPU_IMPORT(core_id) int npu_core_id(void);
NPU_IMPORT(tile_id) int npu_tile_id(void);

/* Waits until `others` more threads have arrived at the barrier with this number. */
NPU_IMPORT(barrier) void npu_barrier(int number, int others);

/* Writes the cache line of this address back to memory. */
NPU_IMPORT(flush) void npu_flush(const void *address);

/* Writes the cache line of this address back to memory and invalidates it in the data cache. */
NPU_IMPORT(dcache_inv) void npu_dcache_inv(const void *address);

/* Returns the control register with this number, which must be a constant. */
NPU_IMPORT(read_control_reg) int npu_read_control_reg(int number);

/* Reads or writes the lane mask: one bit for each of sixteen lanes, all set at the start of a
   function. It affects only the masked operations of the machine. */
NPU_IMPORT(read_mask_reg) int npu_read_mask_reg(void);
NPU_IMPORT(write_mask_reg) void npu_write_mask_reg(int mask);

/* Returns the cycles since reset; without a timing model, the instructions. */
NPU_IMPORT(cycles) long long npu_cycles(void);

/* Loads or stores a word of the core's scratchpad. The scratchpad address is a multiple of 4. */
NPU_IMPORT(scratchpad_load) int npu_scratchpad_load(int address);
NPU_IMPORT(scratchpad_store) void npu_scratchpad_store(int address, int word);

#undef NPU_IMPORT

#ifdef __cplusplus
}
#endif

#endif
