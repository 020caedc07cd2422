// test post_ra sched
// Independent instructions move between a long operation and its user.
L0:
    mull_i32 s4, s0, s1
    add_i32 s0, s4, s1
    add_i32 s5, s2, s3
    add_i32 s6, s2, s1
    add_i32 s1, s5, s6
    jret
// becomes
// L0:
//     mull_i32 s4, s0, s1
//     add_i32 s5, s2, s3
//     add_i32 s6, s2, s1
//     add_i32 s0, s4, s1
//     add_i32 s1, s5, s6
//     jret
