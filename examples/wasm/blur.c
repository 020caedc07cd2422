/* Blurs a picture of 256 by 64 grey bytes: each byte becomes the mean of itself and its neighbours,
   computed with vectors of sixteen bytes. Threads handle lines in turn. The result is the sum of all
   bytes, independent of the number of threads.

   clang --target=wasm32 -O2 -msimd128 -I ../../include -nostdlib -Wl,--no-entry,--strip-debug -o blur.wasm blur.c
   clif-util wasm blur.wasm --threads 8 --invoke blur 8 */

#include "npu.h"
#include <wasm_simd128.h>

#define WIDTH 256
#define HEIGHT 64
#define LANES 16
/* Surrounds the picture, so that every byte has neighbours and its lines are aligned to cache lines. */
#define BORDER 32
#define CACHE_LINE 64

static _Alignas(CACHE_LINE) unsigned char picture[HEIGHT + 2][WIDTH + 2 * BORDER];
static _Alignas(CACHE_LINE) unsigned char result[HEIGHT][WIDTH];
static unsigned sums[HEIGHT];

static void paint(int y) {
    unsigned state = y * 2654435761u + 1;
    for (int x = 0; x < WIDTH; x++) {
        state = state * 1664525 + 1013904223;
        picture[y + 1][x + BORDER] = state >> 24;
    }
    /* Makes the line visible to threads of other cores. */
    for (int x = 0; x < WIDTH + 2 * BORDER; x += CACHE_LINE) npu_flush(&picture[y + 1][x]);
}

static void mean(int y) {
    /* 65536 / 9, rounded up: the upper half of a product with it is a ninth of the other factor. */
    v128_t ninth = wasm_u16x8_splat(7282);
    for (int x = 0; x < WIDTH; x += LANES) {
        v128_t lower = wasm_u16x8_splat(0), upper = lower;
        for (int line = y; line <= y + 2; line++)
            for (int side = -1; side <= 1; side++) {
                v128_t bytes = wasm_v128_load(&picture[line][x + BORDER + side]);
                lower = wasm_i16x8_add(lower, wasm_u16x8_extend_low_u8x16(bytes));
                upper = wasm_i16x8_add(upper, wasm_u16x8_extend_high_u8x16(bytes));
            }
        v128_t parts[2] = {lower, upper};
        for (int half = 0; half < 2; half++) {
            v128_t first = wasm_u32x4_extmul_low_u16x8(parts[half], ninth);
            v128_t second = wasm_u32x4_extmul_high_u16x8(parts[half], ninth);
            parts[half] = wasm_u16x8_narrow_i32x4(wasm_u32x4_shr(first, 16), wasm_u32x4_shr(second, 16));
        }
        wasm_v128_store(&result[y][x], wasm_u8x16_narrow_i16x8(parts[0], parts[1]));
    }
}

static unsigned sum(int y) {
    v128_t sums = wasm_i32x4_splat(0);
    for (int x = 0; x < WIDTH; x += LANES) {
        v128_t pairs = wasm_u16x8_extadd_pairwise_u8x16(wasm_v128_load(&result[y][x]));
        sums = wasm_i32x4_add(sums, wasm_u32x4_extadd_pairwise_u16x8(pairs));
    }
    return wasm_i32x4_extract_lane(sums, 0) + wasm_i32x4_extract_lane(sums, 1) +
           wasm_i32x4_extract_lane(sums, 2) + wasm_i32x4_extract_lane(sums, 3);
}

__attribute__((export_name("blur"))) unsigned blur(int threads) {
    int own = npu_tile_id() * 8 + npu_thread_id();
    for (int y = own; y < HEIGHT; y += threads) paint(y);
    npu_barrier(1, threads - 1);
    for (int y = own; y < HEIGHT; y += threads) {
        mean(y);
        sums[y] = sum(y);
        npu_flush(&sums[y]);
    }
    npu_barrier(2, threads - 1);
    unsigned total = 0;
    for (int y = 0; y < HEIGHT; y++) total += sums[y];
    return total;
}
