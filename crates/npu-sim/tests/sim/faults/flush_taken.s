// cores: 3
// fault: flush_of_shared_line
// instruction: flush s3
// line: 0x00020000
// Core 0 flushes its store late: core 1 has stored since, and core 2 has loaded.
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
        beqz s20, skip13
        store32 s1, (s3)
        load32 s5, (s3)
        add_i32 s6, s5, s5
skip13:
        barrier s50, s51
        cmpeqi s20, s1, 1
        beqz s20, skip14
        store32 s1, (s3)
        load32 s5, (s3)
        add_i32 s6, s5, s5
skip14:
        barrier s50, s51
        cmpeqi s20, s1, 2
        beqz s20, skip15
        load32 s5, (s3)
        add_i32 s6, s5, s5
skip15:
        barrier s50, s51
        cmpeqi s20, s1, 0
        beqz s20, skip16
        flush s3
skip16:
        barrier s50, s51
        cmpeqi s20, s1, 1
        beqz s20, skip17
        store32 s1, (s3)
        load32 s5, (s3)
        add_i32 s6, s5, s5
skip17:
        barrier s50, s51

        movei   s40, 2
        movei   s41, 11
        write_cr s40, s41
        jmp     .
