// test post_ra loop_copies
// One of two latches provides another value, so nothing changes.
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
    movei s9, 3
    bnez s12, L1
L4:
    jret
// becomes
// L0:
//     movei s9, 7
//     jmp L1
// L1:
//     move_i32 s50, s9
//     or_i32 s9, s51, s9
//     store32 s9, (s51)
// L2:
//     addi s51, s51, 1
//     cmpeqi s11, s51, 9
//     move_i32 s9, s50
//     beqz s11, L1
// L3:
//     movei s9, 3
//     bnez s12, L1
// L4:
//     jret
