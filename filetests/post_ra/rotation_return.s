// test post_ra rotation
// A return is as short as a jump to it. The last block becomes unreachable and is removed.
L0:
    beqz s0, L2
L1:
    movei s0, 1
    jmp L3
L2:
    movei s0, 2
    jmp L3
L4:
    jmp L4
L3:
    jret
// becomes
// L0:
//     beqz s0, L1
// L2:
//     movei s0, 1
//     jret
// L1:
//     movei s0, 2
//     jret
// L4:
//     jmp L4
// L3:
