// test post_ra loop_copies
// A write of one half reads the other half of the same register, so the value must be in it.
L0:
    movei s9, 7
    jmp L1
L1:
    move_i32 s50, s9
    moveil s9, 5
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
//     jmp L1
// L1:
//     move_i32 s50, s9
//     moveil s9, 5
//     store32 s9, (s51)
// L2:
//     addi s51, s51, 1
//     cmpeqi s11, s51, 9
//     move_i32 s9, s50
//     beqz s11, L1
// L3:
//     jret
