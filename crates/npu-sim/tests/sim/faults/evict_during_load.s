// cores: 2
// fault: eviction_during_load
// line: 0x000200
// Core 0 evicts a line that it has modified. Core 1 loads the line earlier or later, by
// an iteration of a loop at a time: one of the loads is on its way during the eviction.
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
        beqz s20, skip25
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
skip25:
        barrier s50, s51
        or_i32 s14, s12, s12
        cmpeqi s20, s1, 0
        beqz s20, skip26
        movei s14, 1
wait0:
        subi s14, s14, 1
        bnez s14, wait0
        load32 s5, (s7)
        add_i32 s6, s5, s5
        add_i32 s7, s7, s4
skip26:
        cmpeqi s20, s1, 1
        beqz s20, skip27
wait1:
        subi s14, s14, 1
        bnez s14, wait1
        load32 s5, (s3)
        add_i32 s6, s5, s5
skip27:
        barrier s50, s51
        cmpeqi s20, s1, 1
        beqz s20, skip28
        store32 s1, (s3)
        load32 s5, (s3)
        add_i32 s6, s5, s5
skip28:
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
