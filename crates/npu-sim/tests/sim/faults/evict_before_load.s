// cores: 2
// fault: none
// The program of `evict_during_load.s` with a barrier between the eviction and the load.
        .org 0x400
_start:
        movei s0, 0
        read_cr s1, s0
        movei s50, 5
        movei s51, 1
        moveil s3, 0
        moveih s3, 2
        barrier s50, s51
        moveil s8, 0
        moveih s8, 4
        movei s4, 2047
        addi s4, s4, 1
        movei s12, 1
        movei s13, 14
again:
        or_i32 s7, s8, s8
        barrier s50, s51
        cmpeqi s20, s1, 0
        beqz s20, skip29
        store32 s1, (s3)
        load32 s5, (s3)
        add_i32 s6, s5, s5
        load32 s5, (s7)
        add_i32 s6, s5, s5
        add_i32 s7, s7, s4
        load32 s5, (s7)
        add_i32 s6, s5, s5
        add_i32 s7, s7, s4
        load32 s5, (s7)
        add_i32 s6, s5, s5
        add_i32 s7, s7, s4
skip29:
        barrier s50, s51
        cmpeqi s20, s1, 0
        beqz s20, skip30
        load32 s5, (s7)
        add_i32 s6, s5, s5
        add_i32 s7, s7, s4
skip30:
        barrier s50, s51
        cmpeqi s20, s1, 1
        beqz s20, skip31
        load32 s5, (s3)
        add_i32 s6, s5, s5
skip31:
        barrier s50, s51
        cmpeqi s20, s1, 1
        beqz s20, skip32
        store32 s1, (s3)
        load32 s5, (s3)
        add_i32 s6, s5, s5
skip32:
        barrier s50, s51
        load32 s5, (s3)
        add_i32 s6, s5, s5
        barrier s50, s51
        addi s3, s3, 64
        addi s8, s8, 64
        addi s12, s12, 1
        subi s13, s13, 1
        bnez s13, again

        movei   s40, 2
        movei   s41, 11
        write_cr s40, s41
        jmp     .
