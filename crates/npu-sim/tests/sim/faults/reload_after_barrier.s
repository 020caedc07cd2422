// cores: 2
// fault: none
// A barrier of the thread alone is long enough.
        .org 0x400
_start:
        movei s0, 0
        read_cr s1, s0
        movei s50, 5
        movei s51, 1
        moveil s3, 0
        moveih s3, 0x800
        moveil s30, 65
        moveih s30, 1
        movei s31, 19
        write_cr s30, s31
        barrier s50, s51
        cmpeqi s20, s1, 0
        beqz s20, skip46
        movei s9, 77
        store32 s9, (s3)
        load32 s5, (s3)
        add_i32 s6, s5, s5
        dcache_inv s3
        movei s52, 7
        movei s53, 0
        barrier s52, s53
        load32 s8, (s3)
wrong:
        sub_i32 s6, s8, s9
        bnez s6, wrong
skip46:
        barrier s50, s51

        movei   s40, 2
        movei   s41, 11
        write_cr s40, s41
        jmp     .
