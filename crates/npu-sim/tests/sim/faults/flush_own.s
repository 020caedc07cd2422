// cores: 3
// fault: none
// Each core flushes its own store before other cores access the line.
        .org 0x400
_start:
        movei s0, 0
        read_cr s1, s0
        movei s50, 5
        movei s51, 2
        moveil s3, 0
        moveih s3, 2
        barrier s50, s51
        cmpeqi s20, s1, 0
        beqz s20, skip18
        store32 s1, (s3)
        load32 s5, (s3)
        add_i32 s6, s5, s5
        flush s3
skip18:
        barrier s50, s51
        cmpeqi s20, s1, 1
        beqz s20, skip19
        store32 s1, (s3)
        load32 s5, (s3)
        add_i32 s6, s5, s5
        flush s3
skip19:
        barrier s50, s51
        cmpeqi s20, s1, 2
        beqz s20, skip20
        load32 s5, (s3)
        add_i32 s6, s5, s5
skip20:
        barrier s50, s51
        cmpeqi s20, s1, 1
        beqz s20, skip21
        store32 s1, (s3)
        load32 s5, (s3)
        add_i32 s6, s5, s5
skip21:
        barrier s50, s51

        movei   s40, 2
        movei   s41, 11
        write_cr s40, s41
        jmp     .
