// test post_ra rename preserve_all
// The second value gets a register that was not used recently, so it does not wait for the first
// value.
L0:
    add_i32 s12, s0, s1
    mull_i32 s0, s12, s1
    add_i32 s12, s2, s3
    mull_i32 s1, s12, s3
    jret
// becomes
// L0:
//     add_i32 s0, s0, s1
//     mull_i32 s0, s0, s1
//     add_i32 s6, s2, s3
//     mull_i32 s1, s6, s3
//     jret
