/* Finds the longest of the first Collatz sequences. Threads take numbers from a counter, eight at a
   time. A blocking lock protects the best result. The last thread to finish wakes the others.

   clang --target=wasm32 -O2 -matomics -mbulk-memory -nostdlib -Wl,--no-entry,--strip-debug,--shared-memory,--max-memory=131072 -o collatz.wasm collatz.c
   clif-util wasm collatz.wasm --threads 8 --invoke longest 1000 8 */

static int next = 1, ended, lock;
static int best_start, best_steps = -1;

/* 0: free, 1: taken, 2: taken, and other threads may be waiting. */
static void take(int *lock) {
    int before = 0;
    if (__atomic_compare_exchange_n(lock, &before, 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        return;
    while (__atomic_exchange_n(lock, 2, __ATOMIC_SEQ_CST) != 0)
        __builtin_wasm_memory_atomic_wait32(lock, 2, -1);
}

static void give(int *lock) {
    if (__atomic_exchange_n(lock, 0, __ATOMIC_SEQ_CST) == 2)
        __builtin_wasm_memory_atomic_notify(lock, 1);
}

static int steps_of(unsigned number) {
    int steps = 0;
    for (; number != 1; steps++)
        number = number % 2 ? 3 * number + 1 : number / 2;
    return steps;
}

__attribute__((export_name("longest"))) int longest(int last, int threads) {
    enum { TAKEN = 8 };
    for (;;) {
        int first = __atomic_fetch_add(&next, TAKEN, __ATOMIC_SEQ_CST);
        if (first > last)
            break;
        int start = first, steps = -1;
        for (int number = first; number < first + TAKEN && number <= last; number++) {
            int own = steps_of(number);
            if (own > steps) {
                steps = own;
                start = number;
            }
        }
        take(&lock);
        if (steps > best_steps || (steps == best_steps && start < best_start)) {
            best_steps = steps;
            best_start = start;
        }
        give(&lock);
    }
    int before = __atomic_fetch_add(&ended, 1, __ATOMIC_SEQ_CST);
    if (before + 1 == threads)
        __builtin_wasm_memory_atomic_notify(&ended, -1);
    for (int now = before + 1; now != threads; now = __atomic_load_n(&ended, __ATOMIC_SEQ_CST))
        __builtin_wasm_memory_atomic_wait32(&ended, now, -1);
    return best_start;
}
