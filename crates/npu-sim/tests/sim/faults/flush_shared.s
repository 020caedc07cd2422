// cores: 2
// fault: flush_of_shared_line
// instruction: flush s3
// line: 0x00020000
// The store of core 1 waits for an acknowledgment that no core sends.
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
        beqz s20, skip10
        load32 s5, (s3)
        add_i32 s6, s5, s5
skip10:
        barrier s50, s51
        cmpeqi s20, s1, 0
        beqz s20, skip11
        flush s3
skip11:
        barrier s50, s51
        cmpeqi s20, s1, 1
        beqz s20, skip12
        store32 s1, (s3)
        load32 s5, (s3)
        add_i32 s6, s5, s5
skip12:
        barrier s50, s51

        movei   s40, 2
        movei   s41, 11
        write_cr s40, s41
        jmp     .
