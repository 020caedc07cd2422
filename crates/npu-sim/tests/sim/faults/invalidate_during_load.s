// cores: 2
// fault: eviction_during_load
// line: 0x00020000
// hardware: ends
// Core 0 invalidates a line that it has modified, while core 1 loads it. The
// load is not on its way at the same time, but could be.
        .org 0x400
_start:
        movei s0, 0
        read_cr s1, s0
        movei s50, 5
        movei s51, 1
        moveil s3, 0
        moveih s3, 2
        barrier s50, s51
        cmpeqi s20, s1, 0
        beqz s20, skip33
        store32 s1, (s3)
        load32 s5, (s3)
        add_i32 s6, s5, s5
skip33:
        barrier s50, s51
        cmpeqi s20, s1, 0
        beqz s20, skip34
        dcache_inv s3
skip34:
        cmpeqi s20, s1, 1
        beqz s20, skip35
        load32 s5, (s3)
        add_i32 s6, s5, s5
skip35:
        barrier s50, s51
        cmpeqi s20, s1, 0
        beqz s20, skip36
        moveil s8, 0x1000
        add_i32 s8, s8, s3
        load32 s7, (s8)
        add_i32 s7, s7, s7
skip36:
        barrier s50, s51
        store32 s1, (s3)
        load32 s5, (s3)
        add_i32 s6, s5, s5

        movei   s40, 2
        movei   s41, 11
        write_cr s40, s41
        jmp     .
