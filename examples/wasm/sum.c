/* Sums squares on `threads` threads. Each thread handles every `threads`th number.

   clang --target=wasm32 -O2 -I ../../include -nostdlib -Wl,--no-entry,--strip-debug -o sum.wasm sum.c
   clif-util wasm sum.wasm --threads 8 --invoke sum 1000 8 */

#include "npu.h"

enum { MOST = 64 };
static int parts[MOST];

/* The partial sum is on the thread's own stack. */
static __attribute__((noinline)) void add(volatile int *to, int number) { *to += number * number; }

__attribute__((export_name("sum"))) int sum(int count, int threads) {
    int own = npu_tile_id() * 8 + npu_thread_id();
    volatile int part = 0;
    for (int i = own; i < count; i += threads)
        add(&part, i);
    parts[own] = part;
    npu_scratchpad_store(own * 4, own);
    npu_flush(&parts[own]);
    npu_barrier(1, threads - 1);
    int all = 0;
    for (int i = 0; i < threads; i++)
        all += parts[i];
    return all + npu_scratchpad_load(own * 4) - own;
}
