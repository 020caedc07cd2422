/* The check sum of a kilobyte, fifty times, and the well-known one of nine digits.

   clang --target=wasm32 -O2 -nostdlib -Wl,--no-entry,--strip-debug -o crc32.wasm crc32.c */

static unsigned table[256];
static unsigned char bytes[1024];

static void make_table(void) {
    for (unsigned i = 0; i < 256; i++) {
        unsigned crc = i;
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? 0xedb88320u ^ (crc >> 1) : crc >> 1;
        table[i] = crc;
    }
}

static unsigned crc32(const unsigned char *at, int count) {
    unsigned crc = ~0u;
    while (count--)
        crc = table[(crc ^ *at++) & 255] ^ (crc >> 8);
    return ~crc;
}

__attribute__((export_name("bench"))) int bench(void) {
    make_table();
    for (int i = 0; i < 1024; i++)
        bytes[i] = i;
    unsigned sum = 0;
    for (int i = 0; i < 50; i++)
        sum += crc32(bytes, 1024);
    return crc32((const unsigned char *)"123456789", 9) == 0xcbf43926u && sum != 0;
}
