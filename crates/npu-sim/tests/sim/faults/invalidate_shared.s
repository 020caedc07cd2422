// cores: 2
// fault: invalidation_of_read_line
// instruction: dcache_inv s3
// line: 0x00020000
// The load of core 1 takes the write permission of core 0.
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
        beqz s20, skip2
        store32 s1, (s3)
        load32 s5, (s3)
        add_i32 s6, s5, s5
skip2:
        barrier s50, s51
        cmpeqi s20, s1, 1
        beqz s20, skip3
        load32 s5, (s3)
        add_i32 s6, s5, s5
skip3:
        barrier s50, s51
        cmpeqi s20, s1, 0
        beqz s20, skip4
        dcache_inv s3
        moveil s8, 0x1000
        add_i32 s8, s8, s3
        load32 s7, (s8)
        add_i32 s7, s7, s7
skip4:
        barrier s50, s51

        movei   s40, 2
        movei   s41, 11
        write_cr s40, s41
        jmp     .
