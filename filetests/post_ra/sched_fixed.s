// test post_ra sched
// No instruction moves across a branch, a label, or a change of the stack pointer.
L0:
    mull_i32 s4, s0, s1
    add_i32 s0, s4, s1
    subi sp, sp, 64
    movei s5, 1
    bnez s0, L1
    mull_i32 s6, s1, s1
L1:
    movei s7, 2
    jret
// becomes
// L0:
//     mull_i32 s4, s0, s1
//     add_i32 s0, s4, s1
//     subi sp, sp, 64
//     movei s5, 1
//     bnez s0, L1
//     mull_i32 s6, s1, s1
// L1:
//     movei s7, 2
//     jret
