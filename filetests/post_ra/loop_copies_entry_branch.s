// test post_ra loop_copies
// The branch before the loop has another target that reads the register that keeps the value, so
// the move cannot be inserted there.
L0:
    movei s9, 7
    beqz s1, L4
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
L4:
    store32 s50, (s51)
    jret
// becomes
// L0:
//     movei s9, 7
//     beqz s1, L1
// L2:
//     move_i32 s50, s9
//     or_i32 s9, s51, s9
//     store32 s9, (s51)
// L3:
//     addi s51, s51, 1
//     cmpeqi s11, s51, 9
//     move_i32 s9, s50
//     beqz s11, L2
// L4:
//     jret
// L1:
//     store32 s50, (s51)
//     jret
