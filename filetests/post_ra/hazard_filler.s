// test post_ra hazard
// No instruction can be exchanged with the load, so an instruction without effect separates it from
// the branch.
L0:
    load32 s4, 0(s1)
    bnez s2, L1
    move_i32 s0, s4
L1:
    jret
// becomes
// L0:
//     load32 s4, (s1)
//     movei tr, 0
//     bnez s2, L1
//     move_i32 s0, s4
// L1:
//     jret
