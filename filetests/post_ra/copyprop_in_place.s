// test post_ra copyprop
// The product is used in s0 only, so the multiplication writes s0 directly.
L0:
    mull_i32 s7, s0, s1
    move_i32 s0, s7
    jret
// becomes
// L0:
//     mull_i32 s0, s0, s1
//     jret
