// test post_ra rotation
// The tail is too long to duplicate, and a branch to a trap does not change.
L0:
    beqz s1, L2
L1:
    movei s0, 1
    jmp L3
L2:
    movei s0, 2
    bnez s0, L4 ; trap heap_oob
L5:
    jmp L0
L3:
    addi s0, s0, 1
    addi s1, s0, 1
    addi s0, s1, 1
    addi s0, s0, 1
    jret
L4:
    movei s0, 0
    jret
// becomes
// L0:
//     movei s0, 1
//     bnez s1, L3
// L2:
// L1:
//     movei s0, 2
//     bnez s0, L4 ; trap heap_oob
// L5:
//     movei s0, 1
//     beqz s1, L2
// L3:
//     addi s0, s0, 1
//     addi s1, s0, 1
//     addi s0, s1, 1
//     addi s0, s0, 1
//     jret
// L4:
//     movei s0, 0
//     jret
