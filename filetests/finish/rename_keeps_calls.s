// test finish rename preserve_all
// What a call reads keeps its register, which no operand names; the value before it does not.
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
