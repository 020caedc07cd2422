// test post_ra hazard
// An instruction that reads pc keeps its position, and so does one that is glued to the next
// instruction. Another instruction is inserted.
L0:
    addi s3, pc, 8
    load32 s4, 0(s1)
    bnez s2, L1
    move_i32 s0, s3
L1:
    moveih s5, 1 ; glued
    add_i32 s3, s0, s1
    load32 s4, 0(s1)
    bnez s2, L2
    move_i32 s0, s3
L2:
    jret
// becomes
// L0:
//     addi s3, pc, 8
//     load32 s4, (s1)
//     movei tr, 0
//     bnez s2, L1
//     move_i32 s0, s3
// L1:
//     moveih s5, 1 ; glued
//     add_i32 s3, s0, s1
//     load32 s4, (s1)
//     movei tr, 0
//     bnez s2, L2
//     move_i32 s0, s3
// L2:
//     jret
