// test post_ra loop_copies
// The first value is read after it was changed. The second is read after the loop, so its move
// stays. The third is kept in a register that is live at the start of an iteration.
L0:
    movei s9, 7
    movei s12, 7
    movei s14, 7
L1:
    addi s8, s9, 1
    addi s13, s8, 2
    addi s16, s12, 3
    store32 s9, (s13)
    addi s50, s12, 1
    addi s15, s15, 1
    store32 s14, (s15)
    cmpeqi s11, s51, 9
    move_i32 s9, s8
    move_i32 s12, s50
    move_i32 s14, s15
    beqz s11, L1
L3:
    store32 s12, (s9)
    jret
// becomes
// L0:
//     movei s9, 7
//     movei s12, 7
//     move_i32 s50, s12
//     movei s14, 7
// L1:
//     addi s8, s9, 1
//     addi s13, s8, 2
//     addi s16, s50, 3
//     store32 s9, (s13)
//     addi s50, s50, 1
//     addi s15, s15, 1
//     store32 s14, (s15)
//     cmpeqi s11, s51, 9
//     move_i32 s9, s8
//     move_i32 s12, s50
//     move_i32 s14, s15
//     beqz s11, L1
// L2:
//     store32 s12, (s9)
//     jret
