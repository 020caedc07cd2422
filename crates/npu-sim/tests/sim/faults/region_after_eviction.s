// cores: 2
// fault: eviction_before_non_coherent_load
// instruction: load32 s4, (s3)
// line: 0x08000000
// hardware: ends
// The region begins directly after the eviction of the line. No run of this program meets the order of the fault.
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
        moveil s10, 0
        moveih s10, 0x10
        moveil s11, 0x2000
        moveih s11, 0
        cmpeqi s20, s1, 0
        beqz s20, done
        store32 s1, (s3)
        load32 s4, (s3)
        add_i32 s4, s4, s4
        movei s9, 3
again:
        load32 s5, (s10)
        add_i32 s5, s5, s5
        add_i32 s10, s10, s11
        subi s9, s9, 1
        bnez s9, again
        write_cr s30, s31
        movei s9, 0
        movei s9, 0
        load32 s4, (s3)
        add_i32 s4, s4, s4
done:
        barrier s50, s51

        movei   s40, 2
        movei   s41, 11
        write_cr s40, s41
        jmp     .
