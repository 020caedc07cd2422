// cores: 2
// fault: none
// The program of `evict_during_store.s` with a barrier between the eviction and the store.
        .org 0x400
_start:
        movei s0, 0
        read_cr s1, s0
        movei s50, 5
        movei s51, 1
        moveil s3, 0
        moveih s3, 2
        moveil s10, 0
        moveih s10, 0x10
        shli s11, s1, 20
        add_i32 s10, s10, s11
        moveil s11, 0x2000
        moveih s11, 0
        movei s13, 14
again:
        load32 s4, (s3)
        add_i32 s4, s4, s4
        barrier s50, s51
        add_i32 s12, s10, s11
        load32 s5, (s10)
        add_i32 s5, s5, s5
        load32 s5, (s12)
        add_i32 s5, s5, s5
        add_i32 s12, s12, s11
        bnez s1, store
        load32 s5, (s12)
        add_i32 s5, s5, s5
        barrier s50, s51
        jmp next
store:
        barrier s50, s51
        store32 s1, (s3)
        load32 s5, (s3)
        add_i32 s5, s5, s5
next:
        barrier s50, s51
        addi s3, s3, 64
        addi s10, s10, 64
        subi s13, s13, 1
        bnez s13, again

        movei   s40, 2
        movei   s41, 11
        write_cr s40, s41
        jmp     .
