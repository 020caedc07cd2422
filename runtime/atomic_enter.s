# Acquires the lock of atomic operations, if no other thread wants it. Otherwise, the routine in
# atomics.clif continues; it describes the lock. This is assembly because every atomic operation
# executes it, and the compiler moves nothing across read_cr.
#
#   s0    in: address of a word; out: address of the thread's flag
#   s1    out: the word, loaded under the lock

__npu_atomic_enter:
        leah            s2, __npu_atomic_locks
        movei           s3, 2
        read_cr         s4, sp                  # the tile: control register 0; the low bits of sp are 0
        move_i32        s5, s0
        leal            s2, __npu_atomic_locks
        read_cr         s6, s3                  # the thread
        shli            s4, s4, 6
        shli            s7, s6, 3
        add_i32         s2, s2, s4              # the line
        andi            s8, s6, 4
        andi            s7, s7, 31
        add_i32         s0, s2, s6              # the flag
        add_i32         s9, s2, s8              # its word
        sub_i32         s10, s2, s8             # 4 before the other word
        shl_i32         s7, s3, s7              # 2 at the position of the flag
        store32_8       s3, (s0)
        load32          s9, (s9)
        load32          s10, 4(s10)
        load32          s1, (s5)
        xor_i32         s9, s9, s7
        bnez            s10, wait
        bnez            s9, wait
        jret
wait:   move_i32        s1, s2
        move_i32        s2, s6
        move_i32        s3, s7
        move_i32        s4, s5
        jmp             __npu_atomic_wait
