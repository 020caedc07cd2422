// test post_ra rename preserve_all
// An argument of a call keeps its register, because no operand names it. The value before it is
// renamed.
L0:
    add_i32 s4, s2, s3
    add_i32 s4, s4, s3
    mull_i32 s0, s4, s4
    jmpsr 0 ; call
    jret
// becomes
// L0:
//     add_i32 s0, s2, s3
//     add_i32 s4, s0, s3
//     mull_i32 s0, s4, s4
//     jmpsr 0 ; call
//     jret
