// cores: 8
// fault: none
// The program of `late_acknowledgment.s`, in which core 1 alone reads the line.
        .org 0x400
_start:
        movei s0, 0
        read_cr s1, s0
        movei s50, 5
        movei s51, 7
        moveil s3, 0
        moveih s3, 2
        moveil s15, 64
        moveih s15, 3
        movei s12, 1
        movei s13, 8
again:
        barrier s50, s51
        cmpeqi s20, s1, 0
        beqz s20, skip52
        load32 s5, (s15)
        add_i32 s6, s5, s5
skip52:
        cmpeqi s20, s1, 1
        beqz s20, skip53
        load32 s5, (s3)
        add_i32 s6, s5, s5
skip53:
        barrier s50, s51
        cmpeqi s20, s1, 0
        beqz s20, skip54
        store32 s1, (s3)
        load32 s5, (s3)
        add_i32 s6, s5, s5
skip54:
        barrier s50, s51
        cmpeqi s20, s1, 1
        beqz s20, skip55
        load32 s5, (s3)
        add_i32 s6, s5, s5
skip55:
        barrier s50, s51
        cmpeqi s20, s1, 0
        bnez s20, storer
        load32 s5, (s15)
        add_i32 s6, s5, s5
        cmpeqi s20, s1, 1
        beqz s20, skip56
        load32 s5, (s3)
        add_i32 s6, s5, s5
skip56:
        jmp joined
storer:
        or_i32 s14, s12, s12
wait:
        subi s14, s14, 1
        bnez s14, wait
        addi s9, s12, 100
        store32 s9, (s3)
        load32 s5, (s3)
        add_i32 s6, s5, s5
joined:
        barrier s50, s51
        addi s9, s12, 200
        cmpeqi s20, s1, 0
        beqz s20, skip57
        store32 s9, (s3)
        load32 s5, (s3)
        add_i32 s6, s5, s5
skip57:
        barrier s50, s51
        cmpeqi s20, s1, 1
        beqz s20, skip58
        load32 s5, (s3)
        sub_i32 s6, s5, s9
wrong:
        bnez s6, wrong
skip58:
        barrier s50, s51
        addi s3, s3, 64
        addi s15, s15, 64
        addi s12, s12, 1
        subi s13, s13, 1
        bnez s13, again

        movei   s40, 2
        movei   s41, 11
        write_cr s40, s41
        jmp     .
