/* Kernels of filetests/corpus on sixteen lanes, in C. Each computes the same function of the same
   number as its CLIF. LLVM splits each vector into four 128-bit vectors.

   clang --target=wasm32 -msimd128 -O2 -fno-builtin -fno-unroll-loops -nostdlib -Wl,--no-entry,--strip-debug -o vectors.wasm vectors.c */

#define EXPORT(name) __attribute__((export_name(#name)))
#define LANES 16

typedef unsigned int word;
typedef int ints __attribute__((vector_size(4 * LANES)));
typedef float floats __attribute__((vector_size(4 * LANES)));

/* The random number generator for the data of all kernels. */
static word next(word state) {
    return state * 1664525u + 1013904223u;
}

EXPORT(dot_v16) word dot_v16(word state) {
    word seed = state, total = 0;
    union {
        int numbers[256];
        ints lanes[256 / LANES];
    } left, right;
    for (int at = 0; at < 256; at++) {
        state = next(state);
        left.numbers[at] = (int)(state >> 12);
        state = next(state);
        right.numbers[at] = (int)(state >> 14);
    }
    ints sum = {0};
    for (int at = 0; at < 256 / LANES; at++) {
        ints a = left.lanes[at], b = right.lanes[at];
        sum += a * b ^ a >> 3 ^ b << 2;
    }
    for (int lane = 0; lane < LANES; lane++)
        total += (word)sum[lane];
    sum[5] = (int)total;
    sum[11] = (int)seed;
    sum *= 3;
    return (word)(sum[5] ^ sum[11] ^ sum[0]);
}

EXPORT(mandelbrot_v16) word mandelbrot_v16(word size) {
    ints total = {0};
    floats x;
    word hash = 0;
    for (int lane = 0; lane < LANES; lane++)
        x[lane] = (float)lane * 0.1875f - 2;
    for (word row = 0; row < size; row++) {
        float y = (float)row * 2 / (float)size - 1;
        ints rounds = {0};
        floats real = {0}, imaginary = {0};
        for (int round = 0; round < 40; round++) {
            floats squares = real * real, others = imaginary * imaginary;
            ints inside = squares + others < 4;
            floats up = y + real * 2 * imaginary, right = squares - others + x;
            rounds -= inside;
            imaginary = (floats)((inside & (ints)up) | (~inside & (ints)imaginary));
            real = (floats)((inside & (ints)right) | (~inside & (ints)real));
        }
        total = total * 7 + rounds;
    }
    for (int lane = 0; lane < LANES; lane++)
        hash = hash * 31 + (word)total[lane];
    return hash;
}

EXPORT(matmul_v16) word matmul_v16(word state) {
    union {
        int numbers[256];
        ints rows[16];
    } left, right, result;
    word hash = 0;
    for (int at = 0; at < 256; at++) {
        state = next(state);
        left.numbers[at] = (int)(state >> 8 & 255) - 128;
        state = next(state);
        right.numbers[at] = (int)(state >> 8 & 255) - 128;
    }
    for (int row = 0; row < 16; row++) {
        ints sum = {0};
        for (int at = 0; at < 16; at++)
            sum += left.numbers[row * 16 + at] * right.rows[at];
        result.rows[row] = sum;
    }
    for (int at = 0; at < 256; at++)
        hash = hash * 33 ^ (word)result.numbers[at];
    return hash;
}

EXPORT(saxpy_v16) word saxpy_v16(word state) {
    union {
        float numbers[256];
        floats lanes[256 / LANES];
    } x, y;
    word hash = 0;
    for (int at = 0; at < 256; at++) {
        state = next(state);
        x.numbers[at] = (float)(state >> 8 & 255);
        state = next(state);
        y.numbers[at] = (float)(state >> 8 & 255);
    }
    for (int at = 0; at < 256 / LANES; at++)
        y.lanes[at] += x.lanes[at] * 1.5f;
    for (int at = 0; at < 256; at++)
        hash = hash * 31 + (word)(int)(y.numbers[at] * 2);
    return hash;
}
