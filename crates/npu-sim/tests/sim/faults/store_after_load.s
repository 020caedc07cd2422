// cores: 2
// fault: none
// The load brings the line, so the store hits.
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
        moveil s10, 0
        moveih s10, 0x10
        moveil s11, 0x2000
        moveih s11, 0
        barrier s50, s51
        cmpeqi s20, s1, 0
        beqz s20, done
        load32 s4, (s10)
        add_i32 s10, s10, s11
        load32 s5, (s10)
        add_i32 s10, s10, s11
        load32 s6, (s10)
        add_i32 s10, s10, s11
        load32 s7, (s10)
        add_i32 s7, s7, s6
        add_i32 s7, s7, s5
        add_i32 s7, s7, s4
        load32 s9, (s3)
        add_i32 s9, s9, s9
        movei s9, 77
        store32 s9, (s3)
        add_i32 s10, s10, s11
        load32 s8, (s10)
        add_i32 s8, s8, s8
        load32 s8, 64(s10)
        add_i32 s8, s8, s8
        movei s8, 200
wait:
        subi s8, s8, 1
        bnez s8, wait
        load32 s8, 128(s10)
        add_i32 s8, s8, s8
done:
        barrier s50, s51

        movei   s40, 2
        movei   s41, 11
        write_cr s40, s41
        jmp     .
