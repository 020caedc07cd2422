// cores: 2
// fault: none
// Core 0 has the line to read when it flushes it.
        .org 0x400
_start:
        movei s0, 0
        read_cr s1, s0
        movei s50, 5
        movei s51, 1
        moveil s3, 0
        moveih s3, 2
        barrier s50, s51
        cmpeqi s20, s1, 1
        beqz s20, skip22
        load32 s5, (s3)
        add_i32 s6, s5, s5
skip22:
        barrier s50, s51
        cmpeqi s20, s1, 0
        beqz s20, skip23
        load32 s5, (s3)
        add_i32 s6, s5, s5
        flush s3
skip23:
        barrier s50, s51
        cmpeqi s20, s1, 1
        beqz s20, skip24
        store32 s1, (s3)
        load32 s5, (s3)
        add_i32 s6, s5, s5
skip24:
        barrier s50, s51

        movei   s40, 2
        movei   s41, 11
        write_cr s40, s41
        jmp     .
