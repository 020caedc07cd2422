// test post_ra copyprop
// The copy is read while the original still has its value, so the move is redundant.
L0:
    move_i32 s20, s0
    add_i32 s21, s20, s1
    mull_i32 s0, s21, s20
    jret
// becomes
// L0:
//     add_i32 s21, s0, s1
//     mull_i32 s0, s21, s0
//     jret
