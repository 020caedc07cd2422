/* The machine's own operations, for C and C++ compiled to WebAssembly: imports of the module `npu`. */

#ifndef NPU_H
#define NPU_H

#ifdef __cplusplus
extern "C" {
#endif

#define NPU_IMPORT(name) __attribute__((import_module("npu"), import_name(#name)))

/* Number of the thread in its core, of its core, and of its tile, where each core is one. */
NPU_IMPORT(thread_id) int npu_thread_id(void);
NPU_IMPORT(core_id) int npu_core_id(void);
NPU_IMPORT(tile_id) int npu_tile_id(void);

/* Waits until `others` more threads are at the barrier of this number. */
NPU_IMPORT(barrier) void npu_barrier(int number, int others);

/* Writes the line of this address back to memory. */
NPU_IMPORT(flush) void npu_flush(const void *address);

/* Writes the line of this address back to memory and drops it from the data cache. */
NPU_IMPORT(dcache_inv) void npu_dcache_inv(const void *address);

/* The control register of this number, a constant. */
NPU_IMPORT(read_control_reg) int npu_read_control_reg(int number);

/* The lane mask of this function, one bit for each of sixteen lanes; all lanes at its start. What obeys it are the machine's own masked operations. */
NPU_IMPORT(read_mask_reg) int npu_read_mask_reg(void);
NPU_IMPORT(write_mask_reg) void npu_write_mask_reg(int mask);

/* Cycles since reset; without a timing model, instructions. */
NPU_IMPORT(cycles) long long npu_cycles(void);

/* A word of the scratchpad of the core, by its address there, a multiple of 4. */
NPU_IMPORT(scratchpad_load) int npu_scratchpad_load(int address);
NPU_IMPORT(scratchpad_store) void npu_scratchpad_store(int address, int word);

#undef NPU_IMPORT

#ifdef __cplusplus
}
#endif

#endif
