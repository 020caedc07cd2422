// test finish copyprop
// The product is wanted in s0 only; it is computed there.
L0:
    mull_i32 s7, s0, s1
    move_i32 s0, s7
    jret
// becomes
// L0:
//     mull_i32 s0, s0, s1
//     jret
