// test post_ra copyprop
// The sum is computed in the register that the next iteration reads.
L0:
    movei s20, 0
L1:
    add_i32 s21, s20, s0
    move_i32 s20, s21
    subi s1, s1, 1
    bnez s1, L1
    move_i32 s0, s20
    jret
// becomes
// L0:
//     movei s20, 0
// L1:
//     add_i32 s20, s20, s0
//     subi s1, s1, 1
//     bnez s1, L1
//     move_i32 s0, s20
//     jret
