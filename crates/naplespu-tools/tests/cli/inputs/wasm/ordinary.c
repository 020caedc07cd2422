/* An ordinary program: formatted output, the heap, sorting, input, an exit status.

   clang --target=wasm32-wasi -Os -Wl,--strip-all -o ordinary_c.wasm ordinary.c
   (Debian: clang lld wasi-libc libclang-rt-14-dev-wasm32) */

#include <stdio.h>
#include <stdlib.h>

static int compare(const void *a, const void *b) {
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

int main(int count, char **arguments) {
    enum { LENGTH = 20 };
    int *numbers = malloc(LENGTH * sizeof *numbers);
    unsigned random = 1;
    for (int i = 0; i < LENGTH; i++) {
        random = random * 1103515245 + 12345;
        numbers[i] = random >> 16 & 1023;
    }
    qsort(numbers, LENGTH, sizeof *numbers, compare);
    for (int i = 0; i < LENGTH; i++)
        printf("%d%c", numbers[i], i + 1 < LENGTH ? ' ' : '\n');
    free(numbers);
    printf("%.10f %e %g %a\n", 3.14159265358979, 1e-300, 0.1, 1.5);
    printf("%d arguments, the last is %s; %lld\n", count, arguments[count - 1], -123456789012345LL);
    char line[100];
    printf("input: %s\n", fgets(line, sizeof line, stdin) ? line : "none");
    fprintf(stderr, "to standard error\n");
    return 3;
}
