// test post_ra rotation
// The back edge writes a register that the branch reads, so its moves are not hoisted. The test is
// short, so it is duplicated after them.
L0:
    movei s1, 0
L1:
    addi s2, s1, 1
    cmpeqi s1, s2, 10
    bnez s1, L3
L2:
    move_i32 s1, s2
    jmp L1
L3:
    jret
// becomes
// L0:
//     movei s1, 0
// L1:
//     addi s2, s1, 1
//     cmpeqi s1, s2, 10
//     bnez s1, L2
// L3:
//     move_i32 s1, s2
//     addi s2, s1, 1
//     cmpeqi s1, s2, 10
//     beqz s1, L3
// L2:
//     jret
