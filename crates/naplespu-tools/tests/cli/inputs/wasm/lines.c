/* Reads behind the end of memory, three calls deep.

   clang --target=wasm32 -O1 -g -ffile-compilation-dir=. -nostdlib -Wl,--no-entry -o lines.wasm lines.c */

__attribute__((noinline)) static int element(const int *list, int index) {
    return list[index];
}

__attribute__((noinline)) static int sum_of(const int *list, int first, int last) {
    int sum = 0;
    for (int index = first; index <= last; index += 1 << 20)
        sum += element(list, index);
    return sum;
}

__attribute__((export_name("outer"))) int outer(int last) {
    static int list[4] = {1, 2, 3, 4};
    list[0]++;
    return sum_of(list, 0, last) + 1;
}
