// test post_ra rotation
// The function returns the old value, so it is live after the loop, and only the test is
// duplicated.
L0:
    movei s0, 0
L1:
    addi s2, s0, 1
    cmpeqi s3, s2, 10
    bnez s3, L3
L2:
    move_i32 s0, s2
    jmp L1
L3:
    jret
// becomes
// L0:
//     movei s0, 0
// L1:
//     addi s2, s0, 1
//     cmpeqi s3, s2, 10
//     bnez s3, L2
// L3:
//     move_i32 s0, s2
//     addi s2, s0, 1
//     cmpeqi s3, s2, 10
//     beqz s3, L3
// L2:
//     jret
