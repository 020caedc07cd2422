/* Kernels for one work-item: each function is executed for all work-items of a dispatch.

   clang --target=wasm32 -O2 -matomics -mbulk-memory -I ../../include -nostdlib \
     -Wl,--no-entry,--strip-debug,--shared-memory,--max-memory=131072 -o kernels.wasm kernels.c
   clif-util wasm kernels.wasm --dispatch 16 --workgroup-size 64 --threads 8 \
     --before fill 1024 --invoke saxpy 1024 --then digest 5184 1024 */

#include "npu.h"

enum { MOST = 1024, BINS = 256 };

#define KERNEL(name) __attribute__((export_name(#name))) void name
#define CHECK(name) __attribute__((export_name(#name))) int name

static float x[MOST] __attribute__((aligned(64)));
static float y[MOST] __attribute__((aligned(64)));
static int steps[MOST] __attribute__((aligned(64)));
static unsigned counts[BINS];

/* An ordinary function, for `--before`. */
CHECK(fill)(int count) {
    for (int i = 0; i < count; i++) {
        x[i] = (float)((i & 15) - 8);
        y[i] = (float)i;
    }
    return count;
}

KERNEL(saxpy)(unsigned count) {
    unsigned i = npu_global_id_x();
    if (i < count)
        y[i] = 2 * x[i] + y[i];
}

/* The buffers are arguments. */
KERNEL(relu)(const float *from, float *to, unsigned count) {
    unsigned i = npu_global_id_x();
    if (i < count)
        to[i] = from[i] > 0 ? from[i] : 0;
}

KERNEL(mandelbrot)(unsigned width, unsigned most) {
    unsigned i = npu_global_id_x();
    float re = (float)(int)(i % width) * (3.0f / 64) - 2.25f;
    float im = (float)(int)(i / width) * (2.0f / 16) - 1;
    float a = 0, b = 0;
    unsigned count = 0;
    while (count < most && a * a + b * b <= 4) {
        float next = a * a - b * b + re;
        b = 2 * a * b + im;
        a = next;
        count++;
    }
    steps[i] = (int)count;
}

KERNEL(histogram)(const unsigned *words, unsigned count) {
    unsigned i = npu_global_id_x();
    if (i < count)
        __atomic_fetch_add(&counts[words[i] >> 20 & (BINS - 1)], 1, __ATOMIC_RELAXED);
}

/* The sum of each work-group: in the subgroups, then by its first work-item in the scratchpad. */
KERNEL(sums)(const int *from, int *to) {
    int sum = npu_subgroup_add_i32(from[npu_global_id_x()]);
    if (npu_subgroup_elect())
        npu_scratchpad_store((int)npu_subgroup_id() * 4, sum);
    npu_workgroup_barrier();
    if (npu_local_index() == 0) {
        int all = 0;
        for (unsigned i = 0; i < npu_subgroup_count(); i++)
            all += npu_scratchpad_load((int)i * 4);
        to[npu_workgroup_id_x()] = all;
    }
}

/* The buffers are at 1088, 5184, 9280 and 13376. */
CHECK(address_of)(int which) {
    const void *all[] = {x, y, steps, counts};
    return (int)all[which & 3];
}

CHECK(word)(const int *from, int at) { return from[at]; }

/* A number that depends on all words of a buffer and on their order. */
CHECK(digest)(const unsigned *from, int words) {
    unsigned digest = 0;
    for (int i = 0; i < words; i++)
        digest = digest * 31 + from[i];
    return (int)digest;
}
