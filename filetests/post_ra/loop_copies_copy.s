// test post_ra loop_copies
// The iteration begins with a move to the register that keeps the value. This move is redundant,
// too.
L0:
    movei s9, 7
    jmp L1
L1:
    move_i32 s50, s9
    or_i32 s9, s51, s9
    store32 s9, (s51)
L2:
    addi s51, s51, 1
    cmpeqi s11, s51, 9
    move_i32 s9, s50
    beqz s11, L1
L3:
    jret
// becomes
// L0:
//     movei s9, 7
//     move_i32 s50, s9
//     jmp L1
// L1:
//     or_i32 s9, s51, s50
//     store32 s9, (s51)
// L2:
//     addi s51, s51, 1
//     cmpeqi s11, s51, 9
//     beqz s11, L1
// L3:
//     jret
