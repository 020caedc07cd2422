# Takes the lock of atomic operations, if nobody else wants it; else the routine in atomics.clif goes on, which says what the
# lock is. In assembly, because every atomic operation goes through here and the compiler moves nothing across read_cr.
#
#   s0    address of a word; gives the address of the thread's flag
#   s1    gives the word, loaded with the lock

__npu_atomic_enter:
        leah            s2, __npu_atomic_locks
        movei           s3, 2
        read_cr         s4, sp                  # the tile: its register has number 0, as sp in the bits that count
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
        sub_i32         s10, s2, s8             # 4 before the other one
        shl_i32         s7, s3, s7              # 2 at the place of the flag
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
