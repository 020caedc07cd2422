// test post_ra rotation
// The exit is not the next block, so leaving the loop executes the jump.
L0:
    movei s9, 0
L1:
    addi s2, s9, 1
    cmpeqi s3, s2, 10
    bnez s3, L4
L2:
    jmp L1
L3:
    movei s0, 1
    jret
L4:
    movei s0, 2
    store32 s0, (s9)
    jret
// becomes
// L0:
//     movei s9, 0
// L1:
//     addi s2, s9, 1
//     cmpeqi s3, s2, 10
//     beqz s3, L1
// L3:
//     movei s0, 2
//     store32 s0, (s9)
//     jret
// L4:
// L2:
