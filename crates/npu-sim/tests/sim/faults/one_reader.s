// cores: 4
// fault: none
// Core 0 stores to a line for each reader.
        .org 0x400
_start:
        movei s0, 0
        read_cr s1, s0
        movei s50, 5
        movei s51, 3
        moveil s3, 0
        moveih s3, 2
        barrier s50, s51
        shli s4, s1, 6
        cmpeqi s20, s1, 0
        beqz s20, skip41
        store32 s1, 64(s3)
        store32 s1, 128(s3)
        store32 s1, 192(s3)
skip41:
        barrier s50, s51
        add_i32 s9, s3, s4
        load32 s5, (s9)
        add_i32 s6, s5, s5
        barrier s50, s51
        cmpeqi s20, s1, 0
        beqz s20, skip42
        store32 s1, 64(s3)
        store32 s1, 128(s3)
        store32 s1, 192(s3)
skip42:
        barrier s50, s51
        add_i32 s9, s3, s4
        load32 s5, (s9)
        add_i32 s6, s5, s5
        barrier s50, s51
        cmpeqi s20, s1, 0
        beqz s20, skip43
        store32 s1, 64(s3)
        store32 s1, 128(s3)
        store32 s1, 192(s3)
skip43:
        barrier s50, s51
        add_i32 s9, s3, s4
        load32 s5, (s9)
        add_i32 s6, s5, s5
        barrier s50, s51

        movei   s40, 2
        movei   s41, 11
        write_cr s40, s41
        jmp     .
