// cores: 2
// fault: flush_of_shared_line
// line: 0x00020000
// Core 0 stores to a line that it has read, while core 1 flushes it: if the flush comes first, the
// store hangs.
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
        beqz s20, skip62
        load32 s5, (s3)
        add_i32 s6, s5, s5
skip62:
        barrier s50, s51
        cmpeqi s20, s1, 0
        beqz s20, skip63
        addi s21, s21, 1
        addi s21, s21, 1
        addi s21, s21, 1
        addi s21, s21, 1
        addi s21, s21, 1
        addi s21, s21, 1
        addi s21, s21, 1
        addi s21, s21, 1
        store32 s1, (s3)
        load32 s5, (s3)
        add_i32 s6, s5, s5
skip63:
        cmpeqi s20, s1, 1
        beqz s20, skip64
        flush s3
skip64:
        barrier s50, s51

        movei   s40, 2
        movei   s41, 11
        write_cr s40, s41
        jmp     .
