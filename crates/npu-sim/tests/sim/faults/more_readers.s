// cores: 4
// fault: late_acknowledgment
// instruction: store32 s1, (s3)
// line: 0x00020000
// hardware: ends
// Core 0 stores to a line with one reader, then with three. The fault needs acknowledgments that
// overtake the line; here they do not.
        .org 0x400
_start:
        movei s0, 0
        read_cr s1, s0
        movei s50, 5
        movei s51, 3
        moveil s3, 0
        moveih s3, 2
        barrier s50, s51
        cmpeqi s20, s1, 0
        beqz s20, skip37
        store32 s1, (s3)
        load32 s5, (s3)
        add_i32 s6, s5, s5
skip37:
        barrier s50, s51
        cmpeqi s20, s1, 1
        beqz s20, skip38
        load32 s5, (s3)
        add_i32 s6, s5, s5
skip38:
        barrier s50, s51
        cmpeqi s20, s1, 0
        beqz s20, skip39
        store32 s1, (s3)
        load32 s5, (s3)
        add_i32 s6, s5, s5
skip39:
        barrier s50, s51
        load32 s5, (s3)
        add_i32 s6, s5, s5
        barrier s50, s51
        cmpeqi s20, s1, 0
        beqz s20, skip40
        store32 s1, (s3)
        load32 s5, (s3)
        add_i32 s6, s5, s5
skip40:
        barrier s50, s51

        movei   s40, 2
        movei   s41, 11
        write_cr s40, s41
        jmp     .
