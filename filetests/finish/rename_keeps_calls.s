// test finish rename preserve_all
// A block that calls keeps its registers: the callee reads what no operand names.
L0:
    add_i32 s0, s0, s1
    add_i32 s4, s2, s3
    add_i32 s1, s4, s3
    jmpsr 0 ; call
    jret
// becomes
// L0:
//     add_i32 s0, s0, s1
//     add_i32 s4, s2, s3
//     add_i32 s1, s4, s3
//     jmpsr 0 ; call
//     jret
