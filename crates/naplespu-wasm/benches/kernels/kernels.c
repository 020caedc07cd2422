/* Kernels of filetests/corpus in C. Each computes the same function of the same number as its
   CLIF. The vector kernels are in vectors.c.

   clang --target=wasm32 -O2 -fno-builtin -fno-unroll-loops -nostdlib -Wl,--no-entry,--strip-debug -o kernels.wasm kernels.c */

#define EXPORT(name) __attribute__((export_name(#name)))

typedef unsigned char byte;
typedef unsigned int word;
typedef unsigned long long wide;

/* The random number generator for the data of all kernels. */
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

static word base64_digit(word bits) {
    if (bits < 26)
        return 'A' + bits;
    if (bits < 52)
        return 'a' - 26 + bits;
    if (bits < 62)
        return '0' - 52 + bits;
    return bits == 62 ? '+' : '/';
}

EXPORT(base64) word base64(word state) {
    word hash = 5381;
    for (int at = 0; at < 100; at++) {
        state = next(state);
        for (int shift = 26; shift >= 8; shift -= 6)
            hash = hash * 33 + (base64_digit(state >> shift & 63) & 255);
    }
    return hash;
}

EXPORT(bytecode_vm) word bytecode_vm(word state) {
    byte code[256];
    word list[16], value = state, top = 0, at = 0;
    for (int place = 0; place < 256; place++) {
        state = next(state);
        code[place] = (byte)(state >> 8);
    }
    for (word place = 0; place < 16; place++)
        list[place] = place * 0x01010101;
    for (int step = 0; step < 3000; step++) {
        byte operation = code[at++ & 255], operand = code[at & 255];
        switch (operation & 15) {
        case 0:
            value += operand;
            break;
        case 1:
            value ^= list[top & 15];
            break;
        case 2:
            list[top++ & 15] = value;
            break;
        case 3:
            value = list[--top & 15];
            break;
        case 4:
            value = value << (operand & 31) | value >> (-operand & 31);
            break;
        case 5:
            if (value & 1)
                at += operand & 7;
            break;
        case 6:
            value *= operand | 1;
            break;
        case 7:
            value -= list[operand & 15];
            break;
        case 8:
            list[operand & 15] += value;
            break;
        case 9:
            value = ~value;
            break;
        case 10:
            value = value < list[operand & 15];
            break;
        case 11:
            at ^= 1;
            break;
        case 12:
            value += at;
            break;
        case 13:
            value = (word)((int)value >> (operand & 7));
            break;
        case 14:
            value ^= value >> 7;
            break;
        case 15:
            value += 40503;
            break;
        }
    }
    return top ^ list[3] ^ value;
}

EXPORT(conv2d_i32) word conv2d_i32(word state) {
    byte image[20 * 20];
    int weights[9], result[18 * 18];
    word hash = 0;
    for (int at = 0; at < 400; at++) {
        state = next(state);
        image[at] = (byte)(state >> 8);
    }
    for (int at = 0; at < 9; at++) {
        state = next(state);
        weights[at] = (int)(state >> 8 & 15) - 8;
    }
    for (int row = 0; row < 18; row++)
        for (int column = 0; column < 18; column++) {
            int sum = 0;
            for (int y = 0; y < 3; y++)
                for (int x = 0; x < 3; x++)
                    sum += weights[y * 3 + x] * image[(row + y) * 20 + column + x];
            sum >>= 3;
            result[row * 18 + column] = sum < 0 ? 0 : sum > 255 ? 255 : sum;
        }
    for (int at = 0; at < 18 * 18; at++)
        hash = hash * 257 + (word)result[at];
    return hash;
}

/* Processes one bit of the remainder with the reflected polynomial of CRC-32. */
static word crc_bit(word rest) {
    return rest >> 1 ^ (rest & 1 ? 0xedb88320u : 0);
}

EXPORT(crc32_bitwise) word crc32_bitwise(word state) {
    byte data[256];
    word rest = ~0u;
    for (int at = 0; at < 256; at++) {
        state = next(state);
        data[at] = (byte)(state >> 8);
    }
    for (int at = 0; at < 256; at++) {
        rest ^= data[at];
        for (int bit = 0; bit < 8; bit++)
            rest = crc_bit(rest);
    }
    return ~rest;
}

EXPORT(crc32_table) word crc32_table(word state) {
    word table[256], rest = ~0u;
    byte data[512];
    for (word at = 0; at < 256; at++) {
        word entry = at;
        for (int bit = 0; bit < 8; bit++)
            entry = crc_bit(entry);
        table[at] = entry;
    }
    for (int at = 0; at < 512; at++) {
        state = next(state);
        data[at] = (byte)(state >> 8);
    }
    for (int at = 0; at < 512; at++)
        rest = rest >> 8 ^ table[(rest ^ data[at]) & 255];
    return ~rest;
}

/* Cosine transform of eight numbers at this distance; factors have 13 fraction bits. */
static void transform(int *list, int step) {
    int a = list[0], b = list[step], c = list[2 * step], d = list[3 * step];
    int e = list[4 * step], f = list[5 * step], g = list[6 * step], h = list[7 * step];
    int outer = a + h + d + e, inner = b + g + c + f;
    int outside = a + h - d - e, inside = b + g - c - f;
    list[0] = outer + inner;
    list[4 * step] = outer - inner;
    list[2 * step] = (outside * 10703 + inside * 4433) >> 13;
    list[6 * step] = (outside * 4433 - inside * 10703) >> 13;
    a -= h, b -= g, c -= f, d -= e;
    list[1 * step] = (a * 12299 + b * 9633 + c * 6270 + d * 2446) >> 13;
    list[3 * step] = (a * 9633 - b * 2446 - c * 12299 - d * 6270) >> 13;
    list[5 * step] = (a * 6270 - b * 12299 + c * 2446 + d * 9633) >> 13;
    list[7 * step] = (a * 2446 - b * 6270 + c * 9633 - d * 12299) >> 13;
}

EXPORT(dct8x8_i32) word dct8x8_i32(word state) {
    int block[64];
    word hash = 0;
    for (int at = 0; at < 64; at++) {
        state = next(state);
        block[at] = (int)(state >> 8 & 255) - 128;
    }
    for (int row = 0; row < 8; row++)
        transform(block + 8 * row, 1);
    for (int column = 0; column < 8; column++)
        transform(block + column, 8);
    for (int at = 0; at < 64; at++)
        hash = hash * 131 + (word)block[at];
    return hash;
}

EXPORT(div64) word div64(word state) {
    wide hash = 0;
    for (int at = 0; at < 30; at++) {
        word high = next(state), middle = next(high), low = next(middle);
        state = next(low);
        wide number = ((wide)(high >> 8) << 40 | (wide)(middle >> 8) << 16) ^ low >> 8;
        wide divisor = ((wide)(state >> 8) << at) + 1;
        hash = hash * 31 + number / divisor + number % divisor;
        long long signed_number = (long long)(number - (divisor << 20)), by = (long long)divisor;
        hash ^= (wide)(signed_number / by + (signed_number >> at) + signed_number % by + (signed_number < (long long)hash));
    }
    return (word)(hash >> 32 ^ hash);
}

EXPORT(fir_i32) word fir_i32(word state) {
    int input[128], taps[16], output[128];
    word hash = 0;
    for (int at = 0; at < 128; at++) {
        state = next(state);
        input[at] = (int)(state >> 8 & 1023) - 512;
    }
    for (int at = 0; at < 16; at++) {
        state = next(state);
        taps[at] = (int)(state >> 8 & 255) - 128;
    }
    for (int at = 0; at < 128; at++) {
        int sum = 0;
        for (int tap = 0; tap < 16 && tap <= at; tap++)
            sum += input[at - tap] * taps[tap];
        output[at] = sum >> 4;
    }
    for (int at = 0; at < 128; at++)
        hash = hash * 31 + (word)output[at];
    return hash;
}

static word triple(word value) {
    return value * 3 + 1;
}

static word fold(word value) {
    return value >> 3 ^ value;
}

static word less(word value) {
    return value - 77;
}

static word turn(word value) {
    return value << 5 | value >> 27;
}

static word many(word a, word b, word c, word d, word e) {
    return a ^ b * 7 ^ c * 13 ^ d * 23 ^ e * 29 ^ 198;
}

EXPORT(funcptr) word funcptr(word state) {
    static word (*const functions[4])(word) = {triple, fold, less, turn};
    word value = state;
    for (word at = 0; at < 100; at++) {
        state = next(state);
        value = functions[state >> 8 & 3](value);
        value = many(value, at, value >> 3, at << 1, value);
    }
    return value;
}

EXPORT(life) word life(word state) {
    byte cells[18 * 18], after[18 * 18];
    word hash = 0;
    for (int at = 0; at < 18 * 18; at++)
        cells[at] = after[at] = 0;
    for (int row = 1; row < 17; row++)
        for (int column = 1; column < 17; column++) {
            state = next(state);
            cells[row * 18 + column] = state >> 8 & 1;
        }
    for (int generation = 0; generation < 6; generation++) {
        for (int row = 1; row < 17; row++)
            for (int column = 1; column < 17; column++) {
                const byte *cell = cells + row * 18 + column;
                int near = cell[-19] + cell[-18] + cell[-17] + cell[-1] + cell[1] + cell[17] + cell[18] + cell[19];
                after[row * 18 + column] = near == 3 || (near == 2 && *cell);
            }
        for (int at = 0; at < 18 * 18; at++)
            cells[at] = after[at];
    }
    for (int at = 0; at < 18 * 18; at++)
        hash = hash * 3 + cells[at];
    return hash;
}

static word bits_of(float number) {
    union {
        float number;
        word bits;
    } both = {number};
    return both.bits;
}

EXPORT(lu_f32) word lu_f32(word state) {
    float matrix[8][8];
    word hash = 0;
    for (int row = 0; row < 8; row++) {
        for (int column = 0; column < 8; column++) {
            state = next(state);
            matrix[row][column] = (float)(state >> 8 & 255);
        }
        matrix[row][row] += 2048;
    }
    for (int step = 0; step < 7; step++)
        for (int row = step + 1; row < 8; row++) {
            float factor = matrix[row][step] / matrix[step][step];
            matrix[row][step] = factor;
            for (int column = step + 1; column < 8; column++)
                matrix[row][column] -= factor * matrix[step][column];
        }
    for (int row = 0; row < 8; row++)
        for (int column = 0; column < 8; column++)
            hash = hash * 31 + bits_of(matrix[row][column]);
    return hash;
}

EXPORT(lu_fixed) word lu_fixed(word state) {
    int matrix[10][10];
    word hash = 0;
    for (int row = 0; row < 10; row++) {
        int sum = 0;
        for (int column = 0; column < 10; column++) {
            state = next(state);
            matrix[row][column] = (int)(state >> 8 & 63) + 1;
            sum += matrix[row][column];
        }
        matrix[row][row] = sum << 6;
    }
    for (int step = 0; step < 9; step++)
        for (int row = step + 1; row < 10; row++) {
            int factor = (matrix[row][step] << 4) / matrix[step][step];
            matrix[row][step] = factor;
            for (int column = step + 1; column < 10; column++)
                matrix[row][column] -= matrix[step][column] * factor / 16;
        }
    for (int row = 0; row < 10; row++)
        for (int column = 0; column < 10; column++)
            hash = hash * 37 + (word)matrix[row][column];
    return hash;
}

EXPORT(mandelbrot_f32) word mandelbrot_f32(word size) {
    word hash = 0;
    for (word row = 0; row < size; row++)
        for (word column = 0; column < size; column++) {
            float y = (float)row * 2 / (float)size - 1, x = (float)column * 3 / (float)size - 2;
            float real = 0, imaginary = 0;
            word rounds = 0;
            while (rounds < 50) {
                float squares = real * real, others = imaginary * imaginary;
                if (!(squares + others < 4))
                    break;
                imaginary = y + real * 2 * imaginary;
                real = x + (squares - others);
                rounds++;
            }
            hash = hash * 7 + rounds;
        }
    return hash;
}

static void multiply(const int *left, const int *right, int *result) {
    for (int row = 0; row < 16; row++)
        for (int column = 0; column < 16; column++) {
            int sum = 0;
            for (int at = 0; at < 16; at++)
                sum += left[row * 16 + at] * right[at * 16 + column];
            result[row * 16 + column] = sum;
        }
}

EXPORT(matmul_i32) word matmul_i32(word state) {
    int left[256], right[256], result[256];
    word hash = 0;
    for (int at = 0; at < 256; at++) {
        state = next(state);
        left[at] = (int)(state >> 8 & 255) - 128;
        state = next(state);
        right[at] = (int)(state >> 8 & 255) - 128;
    }
    multiply(left, right, result);
    for (int at = 0; at < 256; at++)
        hash = hash * 33 ^ (word)result[at];
    return hash;
}

static word power(word base, word exponent, word modulus) {
    word result = 1;
    for (; exponent; exponent >>= 1) {
        base %= modulus;
        if (exponent & 1)
            result = base * result % modulus;
        base *= base;
    }
    return result;
}

static word gcd(word a, word b) {
    while (b) {
        word rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

EXPORT(modpow) word modpow(word state) {
    word hash = 0;
    for (int round = 0; round < 20; round++) {
        word base = next(state), exponent = next(base), number = next(exponent), other = next(number);
        state = next(other);
        word rest = (number >> 8) % 40000, modulus = rest + 2, divisor = rest - 19999;
        hash = hash * 31 + power((base >> 8) % 40000, exponent >> 8 & 1023, modulus) + gcd(other >> 8, modulus);
        hash += (word)(((int)(state >> 8) - 8000000) / (int)(divisor > 1 ? divisor : 1));
    }
    return hash;
}

EXPORT(nbody_f32) word nbody_f32(word state) {
    float x[6], y[6], speed_x[6], speed_y[6];
    word hash = 0;
    for (int body = 0; body < 6; body++) {
        state = next(state);
        x[body] = (float)(state >> 8 & 255) * 0.0625f;
        state = next(state);
        y[body] = (float)(state >> 8 & 255) * 0.0625f;
        speed_x[body] = speed_y[body] = 0;
    }
    for (int step = 0; step < 8; step++) {
        for (int body = 0; body < 6; body++)
            for (int other = 0; other < 6; other++) {
                if (other == body)
                    continue;
                float right = x[other] - x[body], up = y[other] - y[body];
                float pull = 1 / (right * right + up * up + 0.5f);
                speed_x[body] += right * pull;
                speed_y[body] += up * pull;
            }
        for (int body = 0; body < 6; body++) {
            x[body] += speed_x[body] * 0.01f;
            y[body] += speed_y[body] * 0.01f;
        }
    }
    for (int body = 0; body < 6; body++)
        hash = (hash * 31 + bits_of(x[body])) * 31 + bits_of(y[body]);
    return hash;
}

EXPORT(newton_f64) word newton_f64(word state) {
    wide hash = 0;
    for (word at = 0; at < 10; at++) {
        state = next(state);
        double number = (double)((state >> 8) + 1), root = number * 0.5;
        for (int step = 0; step < 20; step++)
            root = (root + number / root) * 0.5;
        union {
            double number;
            wide bits;
        } both = {root};
        hash = hash * 31 + both.bits + (wide)(long long)(root * 1000) + (root > (double)at);
    }
    return (word)(hash >> 32 ^ hash);
}

EXPORT(transpose) word transpose(word state) {
    word matrix[32][32], hash = 0;
    for (int row = 0; row < 32; row++)
        for (int column = 0; column < 32; column++) {
            state = next(state);
            matrix[row][column] = state >> 8;
        }
    for (int row = 0; row < 32; row++)
        for (int column = 0; column < row; column++) {
            word one = matrix[row][column];
            matrix[row][column] = matrix[column][row];
            matrix[column][row] = one;
        }
    for (int row = 0; row < 32; row++)
        for (int column = 0; column < 32; column++)
            hash = hash * 17 + matrix[row][column];
    return hash;
}

EXPORT(xtea) word xtea(word state) {
    word key[4], hash = 0;
    for (int at = 0; at < 4; at++) {
        word high = next(state);
        state = next(high);
        key[at] = (high & ~255u) | state >> 8;
    }
    for (int block = 0; block < 8; block++) {
        word left = next(state), sum = 0;
        state = next(left);
        word right = state >> 8;
        left >>= 8;
        for (int round = 0; round < 32; round++) {
            left += ((right << 4 ^ right >> 5) + right) ^ (sum + key[sum & 3]);
            sum += 0x9e3779b9;
            right += ((left << 4 ^ left >> 5) + left) ^ (sum + key[sum >> 11 & 3]);
        }
        hash = hash * 31 + (left ^ right);
    }
    return hash;
}
