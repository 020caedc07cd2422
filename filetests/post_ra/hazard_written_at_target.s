// test post_ra hazard
// The result of the conversion could arrive after the multiplication at the target, and the reader
// of the product would get the old value. So an instruction without effect separates the conversion
// from the branch, although its latency does not exceed that of the branch.
L0:
    ftoi_i32 s2, s2
    bnez s9, L1
    movei s7, 1
L1:
    mulhu_i32 s2, s0, s1
    mull_i32 s4, s2, s1
    jret
// becomes
// L0:
//     ftoi_i32 s2, s2
//     movei tr, 0
//     bnez s9, L1
//     movei s7, 1
// L1:
//     mulhu_i32 s2, s0, s1
//     mull_i32 s4, s2, s1
//     movei tr, 0
//     jret
