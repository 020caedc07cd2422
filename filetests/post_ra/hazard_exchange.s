// test post_ra hazard
// The loaded word could be lost before the branch, so the load is exchanged with the addition.
L0:
    add_i32 s3, s0, s1
    load32 s4, 0(s1)
    bnez s2, L1
    move_i32 s0, s3
L1:
    jret
// becomes
// L0:
//     load32 s4, (s1)
//     add_i32 s3, s0, s1
//     bnez s2, L1
//     move_i32 s0, s3
// L1:
//     jret
