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

/* Kernels: a function that calls one of the following is executed once for each work-item of a
   dispatch (`clif-util wasm --dispatch`), several of them on the lanes of a thread. Its parameters
   are 32-bit integers or pointers, equal for all work-items, and it has no result. Functions that
   it calls cannot call these, unless the compiler inlines them. */

/* The work-item in the dispatch and in its work-group, by dimension. */
NPU_IMPORT(global_id_x) unsigned npu_global_id_x(void);
NPU_IMPORT(global_id_y) unsigned npu_global_id_y(void);
NPU_IMPORT(global_id_z) unsigned npu_global_id_z(void);
NPU_IMPORT(local_id_x) unsigned npu_local_id_x(void);
NPU_IMPORT(local_id_y) unsigned npu_local_id_y(void);
NPU_IMPORT(local_id_z) unsigned npu_local_id_z(void);

/* The work-group in the dispatch, and the number of work-groups of the dispatch. */
NPU_IMPORT(workgroup_id_x) unsigned npu_workgroup_id_x(void);
NPU_IMPORT(workgroup_id_y) unsigned npu_workgroup_id_y(void);
NPU_IMPORT(workgroup_id_z) unsigned npu_workgroup_id_z(void);
NPU_IMPORT(workgroup_count_x) unsigned npu_workgroup_count_x(void);
NPU_IMPORT(workgroup_count_y) unsigned npu_workgroup_count_y(void);
NPU_IMPORT(workgroup_count_z) unsigned npu_workgroup_count_z(void);

/* The work-item in its work-group, over all dimensions. */
NPU_IMPORT(local_index) unsigned npu_local_index(void);

/* Waits for all work-items of the work-group, which all have to call it. */
NPU_IMPORT(workgroup_barrier) void npu_workgroup_barrier(void);

/* The lane in the subgroup, the subgroup in the work-group, the number of subgroups of a
   work-group, and the lanes of a subgroup. */
NPU_IMPORT(lane_id) unsigned npu_lane_id(void);
NPU_IMPORT(subgroup_id) unsigned npu_subgroup_id(void);
NPU_IMPORT(subgroup_count) unsigned npu_subgroup_count(void);
NPU_IMPORT(subgroup_size) unsigned npu_subgroup_size(void);

/* Whether the condition is not zero in any or all active lanes; one bit for each of the first 32
   lanes; whether this is the first active lane. */
NPU_IMPORT(subgroup_any) int npu_subgroup_any(int condition);
NPU_IMPORT(subgroup_all) int npu_subgroup_all(int condition);
NPU_IMPORT(subgroup_ballot) unsigned npu_subgroup_ballot(int condition);
NPU_IMPORT(subgroup_elect) int npu_subgroup_elect(void);

/* The value of the first active lane, and of another lane, which has to be active. */
NPU_IMPORT(subgroup_broadcast_first_i32) int npu_subgroup_broadcast_first_i32(int value);
NPU_IMPORT(subgroup_broadcast_first_f32) float npu_subgroup_broadcast_first_f32(float value);
NPU_IMPORT(subgroup_shuffle_i32) int npu_subgroup_shuffle_i32(int value, unsigned lane);
NPU_IMPORT(subgroup_shuffle_f32) float npu_subgroup_shuffle_f32(float value, unsigned lane);

/* Reductions over the active lanes. */
NPU_IMPORT(subgroup_add_i32) int npu_subgroup_add_i32(int value);
NPU_IMPORT(subgroup_mul_i32) int npu_subgroup_mul_i32(int value);
NPU_IMPORT(subgroup_and_i32) int npu_subgroup_and_i32(int value);
NPU_IMPORT(subgroup_or_i32) int npu_subgroup_or_i32(int value);
NPU_IMPORT(subgroup_xor_i32) int npu_subgroup_xor_i32(int value);
NPU_IMPORT(subgroup_smin_i32) int npu_subgroup_smin_i32(int value);
NPU_IMPORT(subgroup_smax_i32) int npu_subgroup_smax_i32(int value);
NPU_IMPORT(subgroup_umin_i32) unsigned npu_subgroup_umin_i32(unsigned value);
NPU_IMPORT(subgroup_umax_i32) unsigned npu_subgroup_umax_i32(unsigned value);
NPU_IMPORT(subgroup_add_f32) float npu_subgroup_add_f32(float value);
NPU_IMPORT(subgroup_mul_f32) float npu_subgroup_mul_f32(float value);
NPU_IMPORT(subgroup_min_f32) float npu_subgroup_min_f32(float value);
NPU_IMPORT(subgroup_max_f32) float npu_subgroup_max_f32(float value);

/* Sums of the active lanes up to this one, and before this one. */
NPU_IMPORT(subgroup_inclusive_add_i32) int npu_subgroup_inclusive_add_i32(int value);
NPU_IMPORT(subgroup_inclusive_add_f32) float npu_subgroup_inclusive_add_f32(float value);
NPU_IMPORT(subgroup_exclusive_add_i32) int npu_subgroup_exclusive_add_i32(int value);
NPU_IMPORT(subgroup_exclusive_add_f32) float npu_subgroup_exclusive_add_f32(float value);

#undef NPU_IMPORT

#ifdef __cplusplus
}
#endif

#endif
