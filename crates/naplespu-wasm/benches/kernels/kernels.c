/* Kernels of filetests/corpus in C, written from what their CLIF does: the same function of the same number.

   clang --target=wasm32 -O2 -fno-builtin -fno-unroll-loops -nostdlib -Wl,--no-entry,--strip-debug -o kernels.wasm kernels.c */

#define EXPORT(name) __attribute__((export_name(#name)))

typedef unsigned char byte;
typedef unsigned int word;
typedef unsigned long long wide;

/* The generator that all kernels make their data with. */
static word next(word state) {
    return state * 1664525u + 1013904223u;
}

EXPORT(sieve) word sieve(word limit) {
    byte prime[2048];
    word most = limit < 2048 ? limit : 2048, sum = 0;
    for (word at = 0; at < most; at++)
        prime[at] = 1;
    for (word at = 2; at < most; at++) {
        if (!prime[at])
            continue;
        sum += at;
        for (word multiple = at * at; multiple < most; multiple += at)
            prime[multiple] = 0;
    }
    return sum;
}

static word place(word size, word columns, word left, word right) {
    word all = ~(~0u << size), count = 0;
    if (columns == all)
        return 1;
    for (word free = ~(columns | left | right) & all; free; free &= free - 1) {
        word queen = free & -free;
        count += place(size, columns | queen, (left | queen) << 1, (right | queen) >> 1);
    }
    return count;
}

EXPORT(nqueens) word nqueens(word size) {
    return place(size, 0, 0, 0);
}

EXPORT(fib_rec) word fib_rec(word number) {
    return number < 2 ? number : fib_rec(number - 1) + fib_rec(number - 2);
}

static int find(const byte *text, const byte *wanted, int length) {
    for (int first = 0; first + length <= 400; first++) {
        int at = 0;
        while (at < length && text[first + at] == wanted[at])
            at++;
        if (at == length)
            return first;
    }
    return -1;
}

EXPORT(strsearch) word strsearch(word state) {
    byte text[400], wanted[6];
    word sum = 0;
    for (int at = 0; at < 400; at++) {
        state = next(state);
        text[at] = (byte)('a' + (state >> 8) % 3);
    }
    for (word round = 0; round < 12; round++) {
        word length = round / 4 + 2;
        for (word at = 0; at < length; at++) {
            state = next(state);
            wanted[at] = (byte)('a' + (state >> 8) % 3);
        }
        sum = sum * 401 + (word)find(text, wanted, (int)length);
    }
    return sum;
}

EXPORT(fnv1a64) word fnv1a64(word state) {
    wide hash = 0xcbf29ce484222325u;
    for (int at = 0; at < 256; at++) {
        state = next(state);
        hash = (hash ^ (state >> 8 & 255)) * 1099511628211u;
    }
    return (word)(hash >> 32 ^ hash);
}

EXPORT(bitcount) word bitcount(word state) {
    word sum = 0;
    for (int at = 0; at < 200; at++) {
        word first = next(state);
        state = next(first);
        word bits = state >> 8 ^ (first << 1 & ~511u);
        sum = __builtin_bswap32(bits) + sum * 7 + 3 * (word)__builtin_popcount(bits) + (word)__builtin_clz(bits | 1)
            + 5 * (word)__builtin_ctz(bits | 1u << 31);
    }
    return sum;
}

static void sort(int *list, int first, int last) {
    while (first < last) {
        int middle = list[(first + last) >> 1], up = first, down = last;
        while (up <= down) {
            while (list[up] < middle)
                up++;
            while (list[down] > middle)
                down--;
            if (up <= down) {
                int left = list[up];
                list[up++] = list[down];
                list[down--] = left;
            }
        }
        sort(list, first, down);
        first = up;
    }
}

EXPORT(quicksort) word quicksort(word state) {
    int list[200];
    word sum = 0;
    for (int at = 0; at < 200; at++) {
        state = next(state);
        list[at] = (int)(state >> 8) - 8388608;
    }
    sort(list, 0, 199);
    for (int at = 0; at < 200; at++)
        sum = sum * 31 + (word)list[at];
    return sum;
}

EXPORT(matmul_f32) int matmul_f32(word state) {
    float left[144], right[144], sum = 0;
    for (int at = 0; at < 144; at++) {
        state = next(state);
        left[at] = (float)((int)(state >> 8 & 63) - 32) * 0.25f;
        state = next(state);
        right[at] = (float)((int)(state >> 8 & 63) - 32) * 0.5f;
    }
    for (int row = 0; row < 12; row++)
        for (int column = 0; column < 12; column++) {
            float product = 0;
            for (int at = 0; at < 12; at++)
                product += left[row * 12 + at] * right[at * 12 + column];
            sum += product * (float)(row - column);
        }
    return (int)(sum * 8);
}
