// test post_ra copyprop
// `pc` has another value at every instruction, so the copy is read.
L0:
    move_i32 s20, pc
    add_i32 s21, s20, s0
    add_i32 s0, s21, s20
    jret
// becomes
// L0:
//     move_i32 s20, pc
//     add_i32 s21, s20, s0
//     add_i32 s0, s21, s20
//     jret
