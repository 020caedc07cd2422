// test post_ra rotation
// The copy in L1 of the jump to L4 needs L4, even though L3 gets a copy of L4.
L0:
    beqz s0, L2
L1:
    movei s0, 1
    jmp L3
L2:
    movei s0, 2
    jret
L3:
    addi s0, s0, 1
    jmp L4
L5:
    jmp L5
L4:
    addi s0, s0, 2
    addi s1, s0, 2
    jret
// becomes
// L0:
//     beqz s0, L1
// L2:
//     movei s0, 1
//     addi s0, s0, 1
//     jmp L4
// L1:
//     movei s0, 2
//     jret
// L3:
// L5:
//     jmp L5
// L4:
//     addi s0, s0, 2
//     addi s1, s0, 2
//     jret
